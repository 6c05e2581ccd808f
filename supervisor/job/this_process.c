/*
 * this_process.c - the machine's id, the id of its boot, and when the process was started.
 */
#include "supervisor/job/this_process.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

static void boot_id(char *id, size_t size)
{
	cleanup_file FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	/* Without one, each is as every other; then locks and answers decide. */
	if (!f || !fgets(id, size, f))
		snprintf(id, size, "unknown");
	id[strcspn(id, "\n")] = 0;
}

void this_machine(char *text, size_t size)
{
	char boot[48];
	struct stat ns = {0};

	boot_id(boot, sizeof(boot));
	(void)stat("/proc/self/ns/pid", &ns);
	snprintf(text, size, "%s:%lu", boot, (unsigned long)ns.st_ino);
}

bool this_boot(const char *machine)
{
	char boot[48];

	boot_id(boot, sizeof(boot));
	return !strncmp(machine, boot, strlen(boot)) && machine[strlen(boot)] == ':';
}

unsigned long long process_start_time(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/stat", pid);
	cleanup_free char *text = NULL;
	unsigned long long time;
	const char *end;
	size_t length;
	char state;

	if (read_file(path, &text, &length, NULL))
		return 0;
	/* The name may have blanks and parentheses. */
	end = strrchr(text, ')');
	if (!end || sscanf(end + 1,
			    " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
			    "%*d %*d %*d %llu",
			    &state, &time) != 2)
		return 0;
	/* Its parent may be slow to ask for it, or never ask. */
	return state == 'Z' || state == 'X' ? 0 : time;
}

void this_process(struct job_member *m)
{
	struct utsname host;

	/* Fails for a bad address only. */
	(void)uname(&host);
	snprintf(m->host, sizeof(m->host), "%s", host.nodename);
	m->supervisor = getpid();
	m->start_time = process_start_time(getpid());
	this_machine(m->machine, sizeof(m->machine));
}
