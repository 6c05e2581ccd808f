/*
 * nest - run a command, and leave no process behind.
 *
 *	nest [-t SECONDS] COMMAND [ARG...]
 *		run it; when it has ended, or the time is up (then it tells what all are
 *		doing), end every process that came from it
 *	nest --sweep [-g SECONDS]
 *		called from inside: end every process of the nest that is not an ancestor of
 *		the caller; prints what had not ended by itself after SECONDS
 *	nest --list
 *		the same processes, untouched
 *
 * A supervisor that is killed leaves its program behind, and a detached one leaves its
 * caller: as subreaper of its command, the nest still finds them all. TEST_SLOW, when set, is how many times
 * as long all limits are (t/lib.sh).
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t/tool/time_limit.h"

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

struct task {
	pid_t pid, parent;
	char comm[32], state;
	signed char in; /* of the family: 1, 0, or -1: not known yet */
};

/* All processes; a machine can be full of zombies. */
static struct task *all_tasks(size_t *count)
{
	struct task *tasks = NULL;
	size_t n = 0, room = 0;
	struct dirent *d;
	DIR *proc = opendir("/proc");

	if (!proc)
		abort();
	while ((d = readdir(proc))) {
		pid_t pid = atoi(d->d_name);

		if (pid <= 0)
			continue;
		if (n == room) {
			room = room ? 2 * room : 256;
			tasks = realloc(tasks, room * sizeof(*tasks));
			if (!tasks)
				abort();
		}
		tasks[n].pid = pid;
		tasks[n].in = -1;
		tasks[n].parent = parent_of(pid, tasks[n].comm, &tasks[n].state);
		if (tasks[n].parent >= 0)
			n++;
	}
	closedir(proc);
	*count = n;
	return tasks;
}

static int by_pid(const void *a, const void *b)
{
	return ((const struct task *)a)->pid - ((const struct task *)b)->pid;
}

static struct task *find(struct task *tasks, size_t count, pid_t pid)
{
	struct task key = {.pid = pid};

	return bsearch(&key, tasks, count, sizeof(key), by_pid);
}

static int is_in(struct task *tasks, size_t count, struct task *t, pid_t root)
{
	struct task *parent;

	if (t->in < 0 && t->parent == root) {
		t->in = 1;
	} else if (t->in < 0) {
		t->in = 0; /* Ids may have changed hands: no circle is to hold us up. */
		parent = find(tasks, count, t->parent);
		t->in = parent && is_in(tasks, count, parent, root);
	}
	return t->in;
}

/* Living descendants of @root but @spare and its ancestors; to be freed. */
static struct task *family(pid_t root, pid_t spare, size_t *count)
{
	size_t n, kept = 0;
	struct task *tasks = all_tasks(&n);

	qsort(tasks, n, sizeof(*tasks), by_pid);
	for (size_t i = 0; i < n; i++)
		is_in(tasks, n, &tasks[i], root);
	for (struct task *t = find(tasks, n, spare); t && t->in; t = find(tasks, n, t->parent))
		t->in = 0;
	for (size_t i = 0; i < n; i++)
		if (tasks[i].in && tasks[i].state != 'Z' && tasks[i].state != 'X')
			tasks[kept++] = tasks[i];
	*count = kept;
	return tasks;
}

/* How many there were, which are killed; they are named first if @say. All are stopped before:
 * as when the machine loses its power, none is to see the end of another and tidy up. */
static size_t kill_family(pid_t root, pid_t spare, int say)
{
	size_t n;
	struct task *left = family(root, spare, &n);

	for (size_t i = 0; i < n; i++)
		kill(left[i].pid, SIGSTOP);
	for (size_t i = 0; i < n; i++) {
		if (say)
			printf("%d (%s)\n", left[i].pid, left[i].comm);
		kill(left[i].pid, SIGKILL);
	}
	free(left);
	return n;
}

static void pause_ms(int ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

static int sweep(double grace)
{
	const char *nest = getenv("TRECR_NEST");
	pid_t root = nest ? atoi(nest) : 0;
	double end = now() + grace * slowness();
	int said = 0;
	size_t n;

	if (root <= 1)
		return 2;
	for (;;) {
		free(family(root, getpid(), &n));
		if (!n || now() >= end)
			break;
		pause_ms(5);
	}
	for (end = now() + 10; now() < end && kill_family(root, getpid(), !said);) {
		said = 1;
		pause_ms(5);
	}
	return said;
}

static int list(void)
{
	const char *nest = getenv("TRECR_NEST");
	struct task *left;
	size_t n;

	if (!nest)
		return 2;
	left = family(atoi(nest), getpid(), &n);
	for (size_t i = 0; i < n; i++)
		printf("%d (%s)\n", left[i].pid, left[i].comm);
	free(left);
	return 0;
}

/* What a file of /proc/@pid says, on one line; "" when it cannot be read. */
static void first_line(pid_t pid, const char *name, char *line, int size)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	f = fopen(path, "re");
	if (!f || !fgets(line, size, f))
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (f)
		fclose(f);
}

/* For a reader who has to find out why the time was not enough. */
static void tell_of_all(void)
{
	size_t n;
	struct task *left = family(getpid(), 0, &n);

	for (size_t i = 0; i < n; i++) {
		char where[128], call[256];

		first_line(left[i].pid, "wchan", where, sizeof(where));
		first_line(left[i].pid, "syscall", call, sizeof(call));
		fprintf(stderr, "# %d of %d (%s) is %c in %s, call %s\n", left[i].pid,
			left[i].parent, left[i].comm, left[i].state, where, call);
	}
	free(left);
}

static void end_all(void)
{
	while (kill_family(getpid(), 0, 0)) {
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
		/* What the caller has open or ignores by chance would be the programs' too;
		 * a shell lets its background jobs ignore ^C. */
		for (int s = 1; s < 32; s++)
			signal(s, SIG_DFL);
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
			fprintf(stderr, "# not done after %.0f s\n", limit);
			tell_of_all();
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
	return nest(limit * slowness(), argv + i);
}
