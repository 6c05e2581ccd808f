/*
 * The process that a trial runs in is a child of the supervisor. All that it makes lives in a
 * pid namespace whose init dies with it, and is the supervisor's child then.
 */
#include "supervisor/restore/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/limits.h"
#include "lib/procfs.h"
#include "lib/util.h"

struct answer {
	enum restore_trial result;
	struct err e;
};

/* If memory runs out, the kernel is to kill the trial, not the program. Failure to raise the score
 * only makes that less likely. */
static void raise_oom_score(void)
{
	cleanup_fd int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)!write(fd, "1000", 4);
}

/* The supervisor has the program's descriptors as well as long as it stands still: they would
 * count for what the trial may have. */
static int close_others(const struct checkpoint *c, int fd)
{
	cleanup_buf struct buf stay = {0};

	for (int i = 0; i <= STDERR_FILENO; i++)
		buf_push(&stay, int, &i);
	buf_push(&stay, int, &fd);
	checkpoint_descriptors(c, &stay);
	return close_all_except(&stay);
}

static void __attribute__((noreturn))
answer_parent(const struct checkpoint *c, pid_t parent, int fd)
{
	struct supervisor s = SUPERVISOR_INIT("trecr");
	struct answer a = {.e = ERR_INIT};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent || close_others(c, fd))
		_exit(1);
	raise_oom_score();
	a.result = restore_try(&s, c, &a.e);
	_exit(write_all(fd, &a, sizeof(a), "the trial's pipe", NULL) ? 1 : 0);
}

static void await_end(pid_t pid)
{
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

/* The first process of a pid namespace below ours. */
static bool is_init(pid_t pid)
{
	cleanup_free char *status = procfs_status(pid, pid, NULL);

	return status && pid != 1 && status_last_number(status, "NSpid") == 1;
}

/* Kill the first processes of namespaces that the trial has made: our children but for @before. */
static void end_namespaces(const pid_t *before, size_t count)
{
	cleanup_free pid_t *now = NULL;
	size_t left;

	if (procfs_children(getpid(), &now, &left, NULL))
		return;
	for (size_t i = 0; i < left; i++) {
		size_t k = 0;

		while (k < count && before[k] != now[i])
			k++;
		if (k < count || !is_init(now[i]))
			continue;
		(void)kill(now[i], SIGKILL); /* it may be dead already */
		await_end(now[i]);
	}
}

/* 1: there is an answer, or its writer has ended; 0: there is no more time. */
static int await_answer(int fd, uint64_t deadline_ns)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int n;

	do {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		int ms = -1;

		if (deadline_ns && now >= deadline_ns)
			return 0;
		if (deadline_ns)
			ms = (deadline_ns - now) / 1000000 < 1000
				     ? (deadline_ns - now) / 1000000 + 1
				     : 1000;
		n = poll(&p, 1, ms);
	} while (n <= 0);
	return 1;
}

static enum restore_trial read_result(int fd, uint64_t deadline_ns, struct err *e)
{
	uint64_t began = clock_ns(CLOCK_MONOTONIC);
	struct answer a;

	if (!await_answer(fd, deadline_ns)) {
		err_set(e, 0,
			"a restart had been tried for %.1f s when the time given for the "
			"checkpoint was over (--timeout gives more time, --no-try leaves the "
			"trial out)",
			(clock_ns(CLOCK_MONOTONIC) - began) / 1e9);
		return RESTORE_LATE;
	}
	if (read_all(fd, &a, sizeof(a), "the trial's pipe", NULL)) {
		err_set(e, 0, "the process that tried it was killed");
		return RESTORE_UNKNOWN;
	}
	*e = a.e;
	return a.result;
}

enum restore_trial trial_run(const struct checkpoint *c, uint64_t deadline_ns, struct err *e)
{
	cleanup_free pid_t *before = NULL;
	pid_t parent = getpid(), child;
	enum restore_trial result;
	size_t count;
	int ends[2];

	if (procfs_children(parent, &before, &count, e))
		return RESTORE_UNKNOWN;
	if (pipe2(ends, O_CLOEXEC)) {
		err_set(e, errno, "cannot create a pipe");
		return RESTORE_UNKNOWN;
	}
	child = fork();
	if (!child) {
		close(ends[0]);
		answer_parent(c, parent, ends[1]);
	}
	close(ends[1]);
	if (child < 0) {
		limit_err(e, errno, SYS_fork, "cannot create a process");
		close(ends[0]);
		return RESTORE_UNKNOWN;
	}
	result = read_result(ends[0], deadline_ns, e);
	close(ends[0]);
	(void)kill(child, SIGKILL); /* it has nothing to do any more */
	await_end(child);
	end_namespaces(before, count);
	return result;
}
