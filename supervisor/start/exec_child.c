/*
 * exec_child.c - clone(2) with CLONE_VM, as posix_spawn(3) does, but without CLONE_VFORK: a child that is
 * stopped before it has executed its program would hold us with it, and a shell would never hear
 * of the stop.
 *
 * Until then the child runs beside us in our memory. It must not call the C library, whose errno and
 * locks are ours.
 */
#include "supervisor/start/exec_child.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/kernel_release.h"
#include "lib/test_hooks.h"
#include "lib/util.h"
#include "shared/raw.h"
#include "supervisor/start/job_control.h"
#include "supervisor/start/signal_forwarding.h"

#define STACK_SIZE      8192
#define KERNEL_SET_SIZE 8 /* of a signal set, in bytes */

struct plan {
	const char *path;
	char *const *argv;
	sigset_t mask;
	int report; /* a byte tells that it has failed; its end alone, that it has not */
	bool stops_early;
};

/* The child. */
static int execute_program(void *arg)
{
	const struct plan *p = arg;

	if (p->stops_early)
		raw(SYS_kill, raw(SYS_getpid), SIGSTOP);
	raw(SYS_rt_sigprocmask, SIG_SETMASK, &p->mask, NULL, KERNEL_SET_SIZE);
	raw(SYS_execve, p->path, p->argv, environ);
	raw(SYS_write, p->report, "", 1);
	raw(SYS_exit_group, 125);
	__builtin_unreachable();
}

/* ---- the file ---- */

static bool is_program(const char *path)
{
	struct stat st;

	return !faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) && !stat(path, &st) &&
	       S_ISREG(st.st_mode);
}

/* As execvp(3) searches PATH, into @path. */
static bool find_program(const char *name, char path[PATH_MAX])
{
	const char *folders = getenv("PATH");

	if (strchr(name, '/'))
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
	while (folders && *name) {
		const char *end = strchrnul(folders, ':');
		int n = end - folders;

		if (snprintf(path, PATH_MAX, "%.*s%s%s", n, folders, n ? "/" : "", name) <
				PATH_MAX &&
			is_program(path))
			return true;
		folders = *end ? end + 1 : NULL;
	}
	return false;
}

/* ---- its start ---- */

/* By which signal @child is stopped; 0: it is not. */
static int stop_signal(pid_t child)
{
	siginfo_t info = {0};

	if (!job_control_stopped(child) ||
		waitid(P_PID, child, &info, WSTOPPED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
		return 0;
	return info.si_status;
}

/* Until @child no longer uses our memory. */
static enum exec_child_end await_exec(int report, pid_t child, int *stopped_by)
{
	struct pollfd pfd = {.fd = report, .events = POLLIN};
	char byte;

	while (poll(&pfd, 1, 50) <= 0) {
		int signal = stop_signal(child);

		/* Not one that it has sent itself as the program, a moment after the look at the pipe. */
		if (signal && poll(&pfd, 1, 0) == 0) {
			*stopped_by = signal;
			(void)kill(child, SIGKILL);
			break;
		}
	}
	if (!*stopped_by && read(report, &byte, 1) != 1)
		return EXEC_CHILD_STARTED;
	(void)waitpid(child, NULL, 0);
	return EXEC_CHILD_FAILED;
}

enum exec_child_end exec_child(char *const argv[], pid_t *pid, int *stopped_by)
{
	__attribute__((aligned(16))) char stack[STACK_SIZE];
	char path[PATH_MAX];
	struct plan plan = {.path = path, .argv = argv, .stops_early = test_stops_early()};
	enum exec_child_end end = EXEC_CHILD_FAILED;
	int ends[2];

	*stopped_by = 0;
	/* Before 5.16 a core dump of the child's would end us, too: all processes with its memory. */
	if (!kernel_is_at_least(5, 16) || !signals_mask_suffices(&plan.mask) ||
		!find_program(argv[0], path) || pipe2(ends, O_CLOEXEC) < 0)
		return EXEC_CHILD_FAILED;
	plan.report = ends[1];
	*pid = clone(execute_program, stack + STACK_SIZE, CLONE_VM | SIGCHLD, &plan);
	close(ends[1]);
	if (*pid > 0)
		end = await_exec(ends[0], *pid, stopped_by);
	close(ends[0]);
	return end;
}
