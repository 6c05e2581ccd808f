/*
 * await - wait for an event, not for a time.
 *
 *	await [-t SECONDS] [-p PID] FILE REGEX	until FILE (which may not exist yet) has a line
 *						that matches; prints that line
 *	await [-t SECONDS] [-p PID] -e FILE	until FILE exists, or has been there meanwhile
 *	await [-t SECONDS] -p PID		until process PID has ended
 *
 * With -p and FILE it gives up when PID has ended and the line is not there. Exit status 0,
 * or 1 with what was waited for on stderr (60 seconds unless told otherwise). TEST_SLOW, when set, is how
 * many times as long it waits (t/lib.sh).
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "t/tool/time_limit.h"

static int has_line(const char *file, const regex_t *re)
{
	FILE *f = fopen(file, "re");
	char *line = NULL;
	size_t size = 0;
	ssize_t n;
	int found = 0;

	if (!f)
		return 0;
	while (!found && (n = getline(&line, &size, f)) > 0) {
		if (line[n - 1] != '\n')
			break;
		line[n - 1] = '\0';
		found = !regexec(re, line, 0, NULL, 0);
		if (found)
			puts(line);
	}
	free(line);
	fclose(f);
	return found;
}

/* The directory is watched, so that a file that appears or is renamed is seen too. */
static void watch(int fd, const char *file)
{
	char *copy = strdup(file);

	/* One that is not there yet is tried again. */
	inotify_add_watch(
		fd, dirname(copy), IN_CREATE | IN_MODIFY | IN_MOVED_TO | IN_CLOSE_WRITE);
	free(copy);
}

/* Takes all events; whether one says that @file has appeared. */
static int has_appeared(int fd, const char *file)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	const char *name = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
	int appeared = 0;
	ssize_t n;

	while ((n = read(fd, events, sizeof(events))) > 0)
		for (char *p = events; p < events + n;) {
			const struct inotify_event *event = (const void *)p;

			if (event->mask & (IN_CREATE | IN_MOVED_TO) && event->len)
				appeared |= !strcmp(event->name, name);
			p += sizeof(*event) + event->len;
		}
	return appeared;
}

int main(int argc, char **argv)
{
	double limit = 60, end;
	const char *file, *pattern;
	struct pollfd p[2] = {{-1, POLLIN, 0}, {-1, POLLIN, 0}};
	int pid = 0, option, over = 0, existence = 0, appeared = 0;
	regex_t re;

	while ((option = getopt(argc, argv, "t:p:e")) != -1) {
		if (option == 't')
			limit = atof(optarg);
		else if (option == 'p')
			pid = atoi(optarg);
		else if (option == 'e')
			existence = 1;
		else
			return 2;
	}
	end = now() + limit * slowness();
	if (pid > 0) {
		p[1].fd = syscall(SYS_pidfd_open, pid, 0);
		over = p[1].fd < 0;
	}
	if (optind == argc && pid > 0) {
		while (!over && now() < end)
			over = poll(&p[1], 1, 100) > 0;
		if (!over)
			fprintf(stderr, "await: process %d has not ended\n", pid);
		return !over;
	}
	if (argc - optind != (existence ? 1 : 2))
		return 2;
	file = argv[optind];
	pattern = existence ? "" : argv[optind + 1];
	if (regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB))
		return 2;
	p[0].fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	for (;;) {
		watch(p[0].fd, file);
		if (existence ? appeared || !access(file, F_OK) : has_line(file, &re))
			return 0;
		if (over || now() > end)
			break;
		/* The limit on one wait covers writers on the far side of a mount, which raise
		 * no event here. */
		poll(p, 2, 250);
		if (p[1].revents)
			over = 1;
		appeared |= has_appeared(p[0].fd, file);
	}
	fprintf(stderr, "await: %s: %s%s%s\n", file,
		existence ? "does not appear" : "no line that matches ", pattern,
		over ? ", and the process has ended" : "");
	return 1;
}
