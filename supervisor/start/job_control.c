/*
 * job_control.c - how a process is seen to be stopped, and how the supervisor stops itself and
 * is woken.
 */
#include "supervisor/start/job_control.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "lib/util.h"

#define WAKEUP_VALUE 0x74726563 /* "trec" */
#define WATCH_MS     50

static char thread_state(pid_t pid, pid_t tid)
{
	struct proc_stat st;

	return procfs_stat(pid, tid, &st, NULL) < 0 ? 'X' : st.state;
}

bool job_control_stopped(pid_t pid)
{
	cleanup_free pid_t *tids = NULL;
	char state = thread_state(pid, pid);
	size_t count;

	/* A leader that has ended says nothing about the threads that run on. */
	if (state != 'Z' || procfs_tasks(pid, &tids, &count, NULL) < 0)
		return state == 'T';
	for (size_t i = 0; i < count; i++) {
		if (tids[i] != pid)
			return thread_state(pid, tids[i]) == 'T';
	}
	return false;
}

bool job_control_still_stopped(pid_t pid)
{
	for (int i = 0; i < 10; i++) {
		if (job_control_stopped(pid))
			return true;
		sleep_ns(2 * 1000000ull);
	}
	return false;
}

int job_control_wake(pid_t supervisor)
{
	return sigqueue(supervisor, SIGCONT, (union sigval){.sival_int = WAKEUP_VALUE});
}

bool job_control_is_wakeup(const struct signalfd_siginfo *info)
{
	return info->ssi_signo == SIGCONT && info->ssi_code == SI_QUEUE &&
	       info->ssi_int == WAKEUP_VALUE;
}

/* The helper. It lives only while its parent is stopped, as a stopped process can neither
 * take a request nor see that somebody continues or kills the program alone. */
static void __attribute__((noreturn))
watch(pid_t parent, pid_t root, struct pollfd *fds, size_t count)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(0);
	for (;;) {
		int n = poll(fds, count, WATCH_MS);

		/* A SIGCONT that comes before the stop would be lost. */
		if ((n || !job_control_stopped(root)) && thread_state(parent, parent) == 'T')
			(void)job_control_wake(parent); /* our parent, same user */
		if (n)
			sleep_ns(1 * 1000000ull);
	}
}

static bool continue_pending(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 && sigismember(&pending, SIGCONT);
}

/* Stop by @signal: its action is the default one, it is blocked. */
static void stop_by(int signal)
{
	sigset_t set, mask;

	sigemptyset(&set);
	sigaddset(&set, signal);
	/* To the process, so that it merges with one from the terminal that waits already. */
	if (kill(getpid(), signal) < 0 || sigprocmask(SIG_UNBLOCK, &set, &mask) < 0)
		BUG();
	if (sigprocmask(SIG_SETMASK, &mask, NULL) < 0)
		BUG();
}

void job_control_stop(int signal, pid_t root, struct pollfd *fds, size_t count)
{
	pid_t parent = getpid(), helper = fork();

	if (!helper)
		watch(parent, root, fds, count);
	/* No helper: the shell can still continue us. Without one a client's SIGCONT does. */
	stop_by(signal);
	/* The kernel ignores the terminal's stop signals in an orphaned process group. */
	if (signal != SIGSTOP && !continue_pending())
		stop_by(SIGSTOP);
	if (helper > 0) {
		(void)kill(helper, SIGKILL);
		(void)waitpid(helper, NULL, 0);
	}
}
