/*
 * namespace_init.c - how this process makes the program's, what it sets up before, then its loop, which
 * reports the ends of children.
 */
#include "supervisor/start/namespace_init.h"

#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/util.h"
#include "supervisor/start/namespace_setup.h"
#include "supervisor/target/clone.h"

/* Keep what it takes to choose thread ids and memory layout through execve(2), which drops
 * the capabilities of all users but root. The restart puts the program's own back. */
static void keep_capabilities(void)
{
	static const int kept[] = {
		CAP_SYS_ADMIN, CAP_CHECKPOINT_RESTORE, CAP_SYS_RESOURCE, CAP_SETPCAP};
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data) < 0)
		BUG();
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		data[kept[i] / 32].inheritable |= 1u << kept[i] % 32;
	/* Where this is refused the restart's first use of one says so. */
	if (syscall(SYS_capset, &head, data) < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, kept[i], 0, 0);
}

static pid_t make_child(const struct namespace_plan *plan)
{
	pid_t init = getpid(), pid = clone_process(0, plan->pid);

	if (pid < 0)
		namespace_fail(plan, errno == EINVAL
					     ? "cannot create a process with an id above "
					       "/proc/sys/kernel/pid_max"
					     : "cannot create a process with the id it had");
	if (pid)
		return pid;
	if (plan->user_namespace)
		keep_capabilities();
	/* The end of a first process is that of its namespace. */
	if (plan->shared && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != init))
		_exit(125);
	/* Our end is the namespace's, which is heard of. */
	if (namespace_report(plan->socket, NAMESPACE_READY, 0, NULL))
		_exit(125);
	close(plan->socket);
	plan->child(plan->arg);
	_exit(125);
}

/* ---- the loop ---- */

/* Reap and report. Returns whether any child is left. */
static bool look_after(int socket, pid_t root)
{
	siginfo_t info;

	for (;;) {
		int status;

		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | __WALL) < 0)
			return errno != ECHILD;
		if (!info.si_pid)
			return true;
		if (info.si_pid != root)
			continue;
		if (info.si_code == CLD_STOPPED) {
			(void)namespace_report(socket, NAMESPACE_STOPPED, info.si_status, NULL);
		} else if (info.si_code != CLD_TRAPPED) {
			status = info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0)
							    : W_EXITCODE(0, info.si_status);
			(void)namespace_report(socket, NAMESPACE_ENDED, status, NULL);
		}
	}
}

/* Orphans are to come to us, and the first process to know of us. */
static void join_shared(const struct namespace_plan *plan)
{
	pid_t pid = getpid();

	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ||
		write(plan->hold, &pid, sizeof(pid)) != sizeof(pid))
		namespace_fail(plan, "cannot join a pid namespace");
}

static void set_up(const struct namespace_plan *plan)
{
	struct pollfd fd = {.fd = plan->socket, .events = POLLIN};

	/* Signals are blocked (signal_forwarding.h), and those without a handler do not reach
	 * the first process of a namespace anyway, but for the supervisor's death. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_NAME, "trecr-init") < 0)
		namespace_fail(plan, "cannot set up the first process of a new namespace");
	if (poll(&fd, 1, 0) > 0)
		_exit(125); /* the supervisor died before it could be noticed */
	if (plan->shared)
		join_shared(plan);
	else if (plan->user_namespace)
		namespace_map_ids(plan);
	namespace_mount_proc(plan);
	if (plan->terminals)
		namespace_mount_terminals(plan);
	if (plan->clocks && clocks_set(plan->clocks) < 0)
		namespace_fail(plan, errno == EINVAL
					     ? "cannot set clocks: this kernel has no time "
					       "namespaces"
					     : "cannot set the clocks of a new time namespace");
}

void namespace_init(const struct namespace_plan *plan)
{
	struct pollfd fds[2] = {{.fd = plan->socket, .events = POLLIN}, {.events = POLLIN}};
	sigset_t all;
	pid_t root;

	set_up(plan);
	root = make_child(plan);
	namespace_close_all_but(plan->socket);
	sigfillset(&all);
	fds[1].fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fds[1].fd < 0)
		namespace_fail(plan, "cannot create a signalfd");
	while (look_after(plan->socket, root)) {
		struct signalfd_siginfo info;
		char byte;

		if (poll(fds, 2, -1) < 0)
			continue;
		while (read(fds[1].fd, &info, sizeof(info)) > 0)
			;
		if (!fds[0].revents)
			continue;
		if (recv(fds[0].fd, &byte, 1, MSG_DONTWAIT) == 1)
			(void)prctl(PR_SET_PDEATHSIG, 0);
		else
			fds[0].fd = -1; /* the supervisor is gone */
	}
	_exit(0);
}
