/*
 * shared_namespace.c - the first process, which hears by a pipe of each program's init, and waits for the ends of all; then
 * what supervisors do.
 */
#include "supervisor/start/shared_namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/util.h"
#include "supervisor/start/namespace_setup.h"
#include "supervisor/target/clone.h"

/* The first process's descriptor of the pipe: who opens it by /proc for writing is at its other end. */
#define DOOR 3

/* ---- the first process ---- */

struct first {
	int door;         /* -1: no supervisor is left at the other end */
	struct buf inits; /* int: pidfds of the inits that are alive */
};

/* An id is that of an init, which its supervisor has made while it held the other end. */
static void hear_of_inits(struct first *f)
{
	pid_t pid;
	int pidfd;

	if (read(f->door, &pid, sizeof(pid)) != sizeof(pid)) {
		close(f->door);
		f->door = -1;
		return;
	}
	/* One that has ended already has left its orphans to us. */
	pidfd = pidfd_open(pid, 0);
	if (pidfd >= 0)
		buf_push(&f->inits, int, &pidfd);
}

/* @fds: in the order of the inits. */
static void forget_ended(struct first *f, const struct pollfd *fds)
{
	size_t left = 0;

	for (size_t i = 0; i < buf_count(&f->inits, int); i++) {
		int pidfd = *buf_at(&f->inits, int, i);

		if (fds[i].revents)
			close(pidfd);
		else
			*buf_at(&f->inits, int, left++) = pidfd;
	}
	f->inits.len = left * sizeof(int);
}

/* Orphans come to us only where their init has been killed, which their supervisor takes for the end of the program.
 * Returns whether any is left. */
static bool end_orphans(void)
{
	cleanup_free pid_t *pids = NULL;
	size_t count;

	while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
		;
	if (procfs_children(getpid(), &pids, &count, NULL))
		return false;
	for (size_t i = 0; i < count; i++)
		(void)kill(pids[i], SIGKILL);
	return count;
}

/* By the time that a pidfd tells of its end, a process has left its children to us. */
static void look_after_inits(struct first *f, int signal_fd)
{
	while (end_orphans() || f->door >= 0 || f->inits.len) {
		size_t count = buf_count(&f->inits, int);
		cleanup_free struct pollfd *fds = xcalloc(count + 2, sizeof(*fds));
		struct signalfd_siginfo info;

		for (size_t i = 0; i < count; i++)
			fds[i] = (struct pollfd){
				.fd = *buf_at(&f->inits, int, i), .events = POLLIN};
		fds[count] = (struct pollfd){.fd = f->door, .events = POLLIN};
		fds[count + 1] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
		if (poll(fds, count + 2, -1) < 0)
			continue;
		while (read(signal_fd, &info, sizeof(info)) > 0)
			;
		forget_ended(f, fds);
		if (fds[count].revents)
			hear_of_inits(f);
	}
}

/* Ids that the kernel chooses are to be none that a program has to get. */
static int begin_ids_at(pid_t first)
{
	cleanup_fd int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	cleanup_free char *text = xasprintf("%d", first - 1);

	return fd < 0 || write(fd, text, strlen(text)) < 0 ? -1 : 0;
}

/* But for the door and the socket it has nothing of the supervisor's, which it outlives. */
static void move_descriptors(struct namespace_plan *plan, int door)
{
	cleanup_buf struct buf stay = {0};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	plan->socket = fcntl(plan->socket, F_DUPFD_CLOEXEC, DOOR + 1);
	if (null < 0 || plan->socket < 0 || dup2(door, DOOR) < 0)
		_exit(125);
	for (int fd = 0; fd < 3; fd++) {
		if (dup2(null, fd) < 0)
			_exit(125);
		buf_push(&stay, int, &fd);
	}
	buf_push(&stay, int, &(int){DOOR});
	buf_push(&stay, int, &plan->socket);
	if (close_all_except(&stay))
		namespace_fail(plan, "cannot close descriptors");
}

/* In a session of its own, so that signals for the supervisor's process group do not end the other programs. */
static void __attribute__((noreturn))
be_first(struct namespace_plan *plan, pid_t first_free, int door)
{
	struct first f = {.door = DOOR};
	int signal_fd;
	sigset_t all;

	move_descriptors(plan, door);
	sigfillset(&all);
	signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	/* A new process leads no group, so setsid(2) cannot fail. */
	(void)setsid();
	if (signal_fd < 0 || sigprocmask(SIG_SETMASK, &all, NULL) < 0 ||
		prctl(PR_SET_NAME, "trecr-namespace") < 0 || chdir("/") < 0)
		namespace_fail(plan, "cannot set up the first process of a new namespace");
	if (plan->user_namespace)
		namespace_map_ids(plan);
	namespace_mount_proc(plan);
	if (namespace_report(plan->socket, NAMESPACE_READY, begin_ids_at(first_free), NULL))
		_exit(125);
	close(plan->socket);
	look_after_inits(&f, signal_fd);
	_exit(0);
}

/* ---- supervisors ---- */

static pid_t make_first(
	const struct shared_namespace_plan *plan, int socket, int door, struct err *e)
{
	struct namespace_plan setup = {
		.user_namespace = plan->user,
		.uid = geteuid(),
		.gid = getegid(),
		.socket = socket,
	};
	pid_t pid =
		clone_process(CLONE_NEWPID | CLONE_NEWNS | (plan->user ? CLONE_NEWUSER : 0), 0);

	if (!pid)
		be_first(&setup, plan->first_free, door);
	return pid < 0 ? namespace_refused(plan->user, e) : pid;
}

static int identify(struct shared_namespace *ns, pid_t pid, struct err *e)
{
	struct proc_stat st;

	ns->pidfd = pidfd_open(pid, 0);
	if (ns->pidfd < 0)
		return err_set(e, errno, "cannot refer to process %d", pid);
	if (procfs_stat(pid, pid, &st, e))
		return -1;
	ns->first = (struct proc_identity){.pid = pid, .start_time = st.field[STAT_START_TIME]};
	return 0;
}

static int await_first(struct shared_namespace *ns, pid_t pid, int socket, struct err *e)
{
	struct namespace_report report;
	pid_t sender;

	if (namespace_await_report(
		    socket, "the first process of the new namespace", &report, &sender, e))
		return -1;
	return report.value ? 0 : identify(ns, pid, e);
}

int shared_namespace_make(
	const struct shared_namespace_plan *plan, struct shared_namespace *ns, struct err *e)
{
	int sockets[2], door[2];
	int failed = -1;
	pid_t pid;

	*ns = (struct shared_namespace)SHARED_NAMESPACE_NONE;
	ns->plan = *plan;
	if (namespace_sockets(sockets, e))
		return -1;
	if (pipe2(door, O_CLOEXEC) < 0) {
		err_set(e, errno, "cannot create a pipe");
	} else {
		pid = make_first(plan, sockets[1], door[0], e);
		close(sockets[1]);
		sockets[1] = -1;
		close(door[0]);
		ns->hold = door[1];
		failed = pid < 0 ? -1 : await_first(ns, pid, sockets[0], e);
	}
	util_close(&sockets[0]);
	util_close(&sockets[1]);
	/* It ends then. */
	if (failed || !ns->first.pid)
		shared_namespace_leave(ns);
	return failed;
}

/* Its id may have become another process's before its door was opened, but not while it has not ended. */
static int check_door(const struct shared_namespace *ns, struct err *e)
{
	struct pollfd end = {.fd = ns->pidfd, .events = POLLIN};
	struct stat st;

	if (poll(&end, 1, 0))
		return err_set(e, 0, "process %d has ended", ns->first.pid);
	if (fstat(ns->hold, &st) < 0 || !S_ISFIFO(st.st_mode))
		return err_set(
			e, 0, "descriptor %d of process %d is no pipe", DOOR, ns->first.pid);
	return 0;
}

int shared_namespace_open(const struct shared_namespace_plan *plan,
	const struct proc_identity *first, struct shared_namespace *ns, struct err *e)
{
	cleanup_free char *door = xasprintf("/proc/%d/fd/%d", first->pid, DOOR);
	int failed;

	*ns = (struct shared_namespace)SHARED_NAMESPACE_NONE;
	ns->plan = *plan;
	failed = identify(ns, first->pid, e);
	if (!failed && ns->first.start_time != first->start_time)
		failed = err_set(e, 0, "process %d is another one by now", first->pid);
	if (!failed && (ns->hold = open(door, O_WRONLY | O_CLOEXEC)) < 0)
		failed = err_set(e, errno, "cannot open %s", door);
	if (!failed)
		failed = check_door(ns, e);
	if (!failed)
		return 0;
	shared_namespace_leave(ns);
	return err_prefix(e, "cannot enter the namespace of the other ranks of this node");
}

static int enter(int fd, bool user)
{
	return setns(fd, CLONE_NEWPID | (user ? CLONE_NEWUSER : 0));
}

/* A filter answers before the kernel sees that there is no such descriptor. */
bool shared_namespace_allowed(bool user)
{
	return !enter(-1, user) || errno == EBADF;
}

int shared_namespace_enter(const struct shared_namespace *ns)
{
	return enter(ns->pidfd, ns->plan.user);
}

void shared_namespace_leave(struct shared_namespace *ns)
{
	util_close(&ns->pidfd);
	util_close(&ns->hold);
	*ns = (struct shared_namespace)SHARED_NAMESPACE_NONE;
}
