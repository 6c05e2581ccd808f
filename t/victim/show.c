/*
 * What a program can see of the world around it, as text to be compared: with and without
 * trecr-run it has to be the same. Not a victim of checkpoints: it prints and ends.
 */
#include <dirent.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "victim.h"

void victim_hurt(void)
{
}

static void descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		int fd = atoi(e->d_name);

		if (e->d_name[0] != '.' && fd != dirfd(d))
			printf("descriptor %d flags %x %x\n", fd, fcntl(fd, F_GETFD),
				fcntl(fd, F_GETFL));
	}
	closedir(d);
}

/* Addresses differ by chance: kinds, sizes of files' mappings and protections do not. */
static void mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		char prot[8], path[256] = "";
		unsigned long a, b, offset;

		sscanf(line, "%lx-%lx %7s %lx %*s %*s %255[^\n]", &a, &b, prot, &offset, path);
		printf("mapping %s %lx %s\n", prot, offset, path);
	}
	fclose(f);
}

static void status(void)
{
	static const char *const keys[] = {"Umask", "State", "TracerPid", "Uid", "Gid",
		"Groups", "Threads", "SigQ", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt",
		"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp",
		"Cpus_allowed", "Mems_allowed"};
	FILE *f = fopen("/proc/self/status", "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
			if (!strncmp(line, keys[i], strlen(keys[i])) &&
				line[strlen(keys[i])] == ':' && strcmp(keys[i], "SigQ"))
				fputs(line, stdout);
	fclose(f);
}

int main(int argc, char **argv, char **envp)
{
	char path[PATH_MAX] = "";
	struct rlimit r;
	int v = 0;

	for (int i = 0; i < argc; i++)
		printf("argument %s\n", i ? argv[i] : "-");
	for (char **e = envp; *e; e++)
		if (strncmp(*e, "_=", 2))
			printf("environment %s\n", *e);
	descriptors();
	mappings();
	status();
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		getrlimit(i, &r);
		printf("limit %d %llx %llx\n", i, (long long)r.rlim_cur, (long long)r.rlim_max);
	}
	if (readlink("/proc/self/exe", path, sizeof(path) - 1) > 0)
		printf("exe %s\n", path);
	printf("execfn %s\n", (char *)getauxval(AT_EXECFN));
	printf("secure %lu flags %lx\n", getauxval(AT_SECURE), getauxval(AT_FLAGS));
	printf("personality %x\n", personality(0xffffffff));
	printf("own group %d, leads session %d\n", getpgrp() == getpid(),
		getsid(0) == getpid());
	printf("group of the parent %d\n", getpgrp() == getpgid(getppid()));
	printf("session of the parent %d\n", getsid(0) == getsid(getppid()));
	prctl(PR_GET_PDEATHSIG, &v);
	printf("parent-death signal %d\n", v);
	printf("dumpable %d\n", prctl(PR_GET_DUMPABLE));
	prctl(PR_GET_CHILD_SUBREAPER, &v);
	printf("subreaper %d, timer slack %d\n", v, prctl(PR_GET_TIMERSLACK));
	printf("nice %d policy %d\n", getpriority(PRIO_PROCESS, 0), sched_getscheduler(0));
	for (int n = 1; n <= 64; n++) {
		struct sigaction a = {.sa_flags = 0};

		if (!sigaction(n, NULL, &a) && a.sa_handler != SIG_DFL)
			printf("signal %d is not at its default\n", n);
	}
	return 0;
}
