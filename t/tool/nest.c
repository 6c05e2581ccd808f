/*
 * nest - run a command, and leave no process behind.
 *
 *	nest [-t SECONDS] COMMAND [ARG...]	run it; when it has ended, or the time is up,
 *end every process that came from it
 *	nest --sweep [-g SECONDS]		called from inside: end every process of the
 *nest that is not an ancestor of the caller; prints what had not ended by itself after SECONDS
 *
 *	nest --list				the same processes, untouched
 *
 * A supervisor that is killed leaves its program behind, and a detached one leaves its
 * caller: as subreaper of its command, the nest still finds them all.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST 4096

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Parent of @pid and whether it is dead; -1 when there is no such process. */
static pid_t parent_of(pid_t pid, char *comm, char *state)
{
	char path[64], line[512], *p;
	int parent = -1, threads = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	p = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	fclose(f);
	if (!p)
		return -1;
	*p = '\0';
	/* A leader that has ended while its threads go on is no dead process. */
	if (sscanf(p + 2,
		    "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d",
		    &threads) == 1 &&
		threads > 1)
		p[2] = 'S';
	snprintf(comm, 32, "%s", strchr(line, '(') ? strchr(line, '(') + 1 : "");
	sscanf(p + 2, "%c %d", state, &parent);
	return parent;
}

/* Living descendants of @root but @spare and its ancestors. */
static int family(pid_t root, pid_t spare, pid_t *out, char names[][32])
{
	static pid_t pids[MOST], parents[MOST];
	static char comms[MOST][32], states[MOST];
	static char in[MOST];
	int n = 0, count = 0, grown = 1;
	struct dirent *d;
	DIR *proc = opendir("/proc");

	if (!proc)
		return 0;
	while ((d = readdir(proc)) && n < MOST) {
		pid_t pid = atoi(d->d_name);

		if (pid <= 0)
			continue;
		pids[n] = pid;
		parents[n] = parent_of(pid, comms[n], &states[n]);
		in[n] = 0;
		if (parents[n] >= 0)
			n++;
	}
	closedir(proc);
	while (grown) {
		grown = 0;
		for (int i = 0; i < n; i++) {
			int child = parents[i] == root;

			for (int j = 0; j < n && !child; j++)
				child = in[j] && pids[j] == parents[i];
			if (child && !in[i])
				in[i] = 1, grown = 1;
		}
	}
	for (pid_t p = spare; p > 0 && p != root;) {
		pid_t up = -1;

		for (int i = 0; i < n; i++)
			if (pids[i] == p)
				in[i] = 0, up = parents[i];
		p = up;
	}
	for (int i = 0; i < n; i++)
		if (in[i] && states[i] != 'Z' && states[i] != 'X') {
			if (names)
				snprintf(names[count], 32, "%s", comms[i]);
			out[count++] = pids[i];
		}
	return count;
}

static void pause_ms(int ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

static int sweep(double grace)
{
	static pid_t left[MOST];
	static char names[MOST][32];
	const char *nest = getenv("TRECR_NEST");
	pid_t root = nest ? atoi(nest) : 0;
	double end = now() + grace;
	int n, said = 0;

	if (root <= 1)
		return 2;
	while ((n = family(root, getpid(), left, names)) && now() < end)
		pause_ms(5);
	for (end = now() + 10; n && now() < end; n = family(root, getpid(), left, names)) {
		for (int i = 0; i < n; i++) {
			if (!said)
				printf("%d (%s)\n", left[i], names[i]);
			kill(left[i], SIGKILL);
		}
		said = 1;
		pause_ms(5);
	}
	return said;
}

static int list(void)
{
	static pid_t left[MOST];
	static char names[MOST][32];
	const char *nest = getenv("TRECR_NEST");
	int n = nest ? family(atoi(nest), getpid(), left, names) : 0;

	for (int i = 0; i < n; i++)
		printf("%d (%s)\n", left[i], names[i]);
	return 0;
}

static void end_all(void)
{
	static pid_t left[MOST];
	int n;

	while ((n = family(getpid(), 0, left, NULL))) {
		for (int i = 0; i < n; i++)
			kill(left[i], SIGKILL);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		pause_ms(2);
	}
}

static int nest(double limit, char **argv)
{
	struct timespec tick = {0, 200000000};
	double end = now() + limit;
	sigset_t set;
	char self[32];
	int status;
	pid_t child;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	snprintf(self, sizeof(self), "%d", getpid());
	setenv("TRECR_NEST", self, 1);
	child = fork();
	if (child == 0) {
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		/* What the caller has open by chance would be the programs' too. */
		close_range(3, ~0u, 0);
		execvp(argv[0], argv);
		fprintf(stderr, "nest: cannot run %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	for (;;) {
		int signal = sigtimedwait(&set, NULL, &tick);
		pid_t gone;

		while ((gone = waitpid(-1, &status, WNOHANG)) > 0)
			if (gone == child) {
				end_all();
				return WIFEXITED(status) ? WEXITSTATUS(status)
							 : 128 + WTERMSIG(status);
			}
		if (now() > end || signal == SIGTERM || signal == SIGINT) {
			printf("\n# not done after %.0f s\n", limit);
			fflush(stdout);
			end_all();
			return 124;
		}
	}
}

int main(int argc, char **argv)
{
	double limit = 300;
	int i = 1;

	if (argc > 1 && !strcmp(argv[1], "--list"))
		return list();
	if (argc > 1 && !strcmp(argv[1], "--sweep"))
		return sweep(argc > 3 ? atof(argv[3]) : 0);
	if (argc > 3 && !strcmp(argv[1], "-t"))
		limit = atof(argv[2]), i = 3;
	if (i >= argc)
		return 125;
	return nest(limit, argv + i);
}
