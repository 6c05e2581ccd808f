/*
 * namespace_init.c - what this process sets up (ids, /proc, terminals), then its loop, which
 * reports the ends of children.
 */
#include "supervisor/start/namespace_init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/util.h"
#include "supervisor/target/clone.h"

/* A supervisor that is gone needs no report: failure matters only to a reader that waits for an
 * answer.
 */
static int send_report(int socket, enum namespace_report_kind kind, int value, const char *text)
{
	struct namespace_report r = {.kind = kind, .value = value};

	if (text)
		snprintf(r.text, sizeof(r.text), "%s", text);
	return send(socket, &r, sizeof(r), MSG_NOSIGNAL) < 0 ? -1 : 0;
}

static void __attribute__((noreturn))
fail_namespace(const struct namespace_plan *plan, const char *what)
{
	(void)send_report(plan->socket, NAMESPACE_FAILED, errno, what);
	_exit(125);
}

/* ---- setting up ---- */

static void write_text(const struct namespace_plan *plan, const char *path, const char *text)
{
	cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fail_namespace(plan, "cannot map the user into a user namespace");
}

/* The one mapping that needs no privilege: our own user and group (man user_namespaces). */
static void map_ids(const struct namespace_plan *plan)
{
	char line[64];

	write_text(plan, "/proc/self/setgroups", "deny");
	snprintf(line, sizeof(line), "%u %u 1", plan->uid, plan->uid);
	write_text(plan, "/proc/self/uid_map", line);
	snprintf(line, sizeof(line), "%u %u 1", plan->gid, plan->gid);
	write_text(plan, "/proc/self/gid_map", line);
}

/* What we mount at @where is not to be seen outside; mounts made later outside still come in.
 * The root directory of a chroot is nothing that is mounted (EINVAL), but what lies below may
 * be. */
static void keep_inside(const struct namespace_plan *plan, const char *where)
{
	if (!mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		return;
	if (errno != EINVAL || mount(NULL, where, NULL, MS_SLAVE, NULL) < 0)
		fail_namespace(
			plan, "cannot detach the mounts of a new namespace from the old ones");
}

/* A proc file system that shows this namespace's ids. */
static void mount_proc(const struct namespace_plan *plan)
{
	keep_inside(plan, "/proc");
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		fail_namespace(plan,
			"cannot mount /proc in a new pid namespace (a container whose /proc is "
			"partly hidden does not allow it)");
}

/* All numbers of terminals are free in it. /dev/ptmx leads to the instance that is mounted beside it
 * (devpts of Linux 4.7). */
static void mount_terminals(const struct namespace_plan *plan)
{
	keep_inside(plan, "/dev/pts");
	if (mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		    "newinstance,ptmxmode=0666,mode=0620") < 0)
		fail_namespace(plan, "cannot mount a new /dev/pts");
}

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
	pid_t pid = clone_process(0, plan->pid);

	if (pid < 0)
		fail_namespace(plan, errno == EINVAL
					     ? "cannot create a process with an id above "
					       "/proc/sys/kernel/pid_max"
					     : "cannot create a process with the id it had");
	if (pid)
		return pid;
	if (plan->user_namespace)
		keep_capabilities();
	/* Our end is the namespace's, which is heard of. */
	if (send_report(plan->socket, NAMESPACE_READY, 0, NULL))
		_exit(125);
	close(plan->socket);
	plan->child(plan->arg);
	_exit(125);
}

/* The init outlives the supervisor, so it must hold nothing of its: not the control socket,
 * not the lock on the store, not the caller's streams. */
static void close_all_but(int socket)
{
	int null = open("/dev/null", O_RDWR);

	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
		_exit(125);
	if (socket > 3)
		(void)close_range(3, socket - 1, 0); /* fails for an empty range only */
	(void)close_range(socket + 1, ~0u, 0);
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
			(void)send_report(socket, NAMESPACE_STOPPED, info.si_status, NULL);
		} else if (info.si_code != CLD_TRAPPED) {
			status = info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0)
							    : W_EXITCODE(0, info.si_status);
			(void)send_report(socket, NAMESPACE_ENDED, status, NULL);
		}
	}
}

void namespace_init(const struct namespace_plan *plan)
{
	struct pollfd fds[2] = {{.fd = plan->socket, .events = POLLIN}, {.events = POLLIN}};
	sigset_t all;
	pid_t root;

	/* Signals are blocked (signal_forwarding.h), and those without a handler do not reach
	 * the first process of a namespace anyway, but for the supervisor's death. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_NAME, "trecr-init") < 0)
		fail_namespace(plan, "cannot set up the first process of a new namespace");
	if (poll(fds, 1, 0) > 0)
		_exit(125); /* the supervisor died before it could be noticed */
	if (plan->user_namespace)
		map_ids(plan);
	mount_proc(plan);
	if (plan->terminals)
		mount_terminals(plan);
	if (plan->clocks && clocks_set(plan->clocks) < 0)
		fail_namespace(plan, errno == EINVAL
					     ? "cannot set clocks: this kernel has no time "
					       "namespaces"
					     : "cannot set the clocks of a new time namespace");
	root = make_child(plan);
	close_all_but(plan->socket);
	sigfillset(&all);
	fds[1].fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fds[1].fd < 0)
		fail_namespace(plan, "cannot create a signalfd");
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
