/*
 * spawn.c - a new program by execve(2); a restored one with its id here, or in new namespaces
 * under an init of its own.
 */
#include "supervisor/start/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/limits.h"
#include "lib/procfs.h"
#include "lib/shown_path.h"
#include "lib/util.h"
#include "supervisor/start/exec_child.h"
#include "supervisor/start/job_control.h"
#include "supervisor/start/namespace_init.h"
#include "supervisor/start/namespace_setup.h"
#include "supervisor/start/signal_forwarding.h"
#include "supervisor/target/clone.h"

/* ---- a new program ---- */

/* What the shell and env(1) return. */
static int exec_status(int error)
{
	return error == ENOENT || error == ENOTDIR ? 127 : 126;
}

/* Wait until @child has executed its program: then the pipe ends. Returns 0, or the error that
 * it reports there. A child that is stopped before it comes to that is let be, so that its
 * stop is seen by the shell; its exit status will tell. */
static int await_exec(int fd, pid_t child)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	int error;

	while (poll(&pfd, 1, 50) <= 0) {
		if (job_control_stopped(child))
			return 0;
	}
	return read(fd, &error, sizeof(error)) == sizeof(error) ? error : 0;
}

/* By fork(2) and execvp(3). @stopped_by: the child is first stopped by that signal, as one before it
 * was; 0: it is not. */
static int fork_program(
	struct supervisor *s, char *const argv[], int stopped_by, int *status, struct err *e)
{
	int ends[2], error = 0;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(e, errno, "cannot create a pipe");
	s->root = fork();
	if (s->root == 0) {
		signals_give_back();
		if (stopped_by)
			(void)raise(stopped_by);
		execvp(argv[0], argv);
		error = errno;
		/* A supervisor that is gone needs no report. */
		(void)!write(ends[1], &error, sizeof(error));
		_exit(exec_status(error));
	}
	close(ends[1]);
	if (s->root < 0) {
		close(ends[0]);
		return limit_err(e, errno, SYS_fork, "cannot create a process");
	}
	error = await_exec(ends[0], s->root);
	if (error) {
		(void)waitpid(s->root, NULL, 0);
		*status = exec_status(error);
		err_set(e, error, "cannot execute %s", argv[0]);
	}
	close(ends[0]);
	return error ? -1 : 0;
}

int spawn_program(struct supervisor *s, char *const argv[], int *status, struct err *e)
{
	int stopped_by;

	*status = 125;
	if (exec_child(argv, &s->root, &stopped_by) == EXEC_CHILD_STARTED)
		return 0;
	return fork_program(s, argv, stopped_by, status, e);
}

/* ---- a program that is brought back ---- */

struct held_child {
	pid_t supervisor; /* 0: its parent is an init that dies with the supervisor */
	int hold[2];      /* pipe; a byte lets go, its end means that the supervisor is gone */
	void (*child)(void *arg);
	void *arg;
};

static void run_held(void *arg)
{
	struct held_child *held = arg;
	char byte;

	close(held->hold[1]);
	signals_give_back();
	if (held->supervisor &&
		(prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != held->supervisor))
		_exit(125);
	/* A checkpointed stop or a tracer's interruption may cut the read short. */
	for (;;) {
		ssize_t n = read(held->hold[0], &byte, 1);

		if (n == 1)
			break;
		if (n == 0 || errno != EINTR)
			_exit(125);
	}
	close(held->hold[0]);
	if (prctl(PR_SET_PDEATHSIG, 0) < 0)
		_exit(125);
	held->child(held->arg);
	_exit(125);
}

/* The process @between, a child of ours, has made another one and told its id, or -errno, by the pipe @ends; both end now.
 * Returns that id, or -1 with errno. */
static pid_t await_between(pid_t between, int ends[2])
{
	int error = errno, answer = -EIO;

	close(ends[1]);
	if (between > 0) {
		/* Whatever it could not tell has failed. */
		(void)!read(ends[0], &answer, sizeof(answer));
		(void)waitpid(between, NULL, 0);
		error = answer < 0 ? -answer : 0;
	}
	close(ends[0]);
	errno = error;
	return between < 0 || answer < 0 ? -1 : answer;
}

/* In a time namespace: by a process between us, that makes it our child. All that we made would
 * have the program's clocks, too, if we did it ourselves. Returns its id, or -1 with errno. */
static pid_t make_in_time_namespace(
	pid_t pid, struct held_child *held, const struct clock_shifts *clocks)
{
	int ends[2], answer;
	pid_t between, made;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	between = clone_process(0, 0);
	if (!between) {
		made = clocks_set(clocks) < 0 ? -1 : clone_process(CLONE_PARENT, pid);
		if (!made) {
			close(ends[0]);
			close(ends[1]);
			run_held(held);
		}
		answer = made < 0 ? -errno : made;
		/* A supervisor that is gone needs no answer. */
		(void)!write(ends[1], &answer, sizeof(answer));
		_exit(0);
	}
	return await_between(between, ends);
}

/* Make it our child. 0: done, 1: impossible here for the reason in *why, -1: failure. */
static int make_here(struct supervisor *s, pid_t pid, struct held_child *held,
	const struct clock_shifts *clocks, char **why, struct err *e)
{
	pid_t made = clocks ? make_in_time_namespace(pid, held, clocks) : clone_process(0, pid);

	if (made == 0)
		run_held(held);
	if (made > 0) {
		s->root = made;
		return 0;
	}
	switch (errno) {
	case EEXIST:
		*why = xasprintf("process id %d is in use", pid);
		return 1;
	case EPERM:
		*why = xasprintf("choosing process ids requires CAP_CHECKPOINT_RESTORE here");
		return 1;
	case EINVAL:
		return err_set(e, 0,
			"cannot create a process with id %d: it is above "
			"/proc/sys/kernel/pid_max, or the kernel is older than 5.5",
			pid);
	default:
		return limit_err(
			e, errno, SYS_clone3, "cannot create a process with id %d", pid);
	}
}

static pid_t make_init(struct namespace_plan *plan, const struct spawn_request *request,
	int ours, struct err *e)
{
	uint64_t flags = CLONE_NEWPID | CLONE_NEWNS |
			 (request->ipc || request->ipc_apart ? CLONE_NEWIPC : 0);
	pid_t init;

	if (plan->user_namespace)
		flags |= CLONE_NEWUSER;
	init = clone_process(flags, 0);
	if (init == 0) {
		close(ours);
		namespace_init(plan);
	}
	return init < 0 ? namespace_refused(plan->user_namespace, e) : init;
}

/* By a process between us, which enters the namespace in our place, and makes it our child. */
static pid_t make_init_in(
	const struct shared_namespace *ns, struct namespace_plan *plan, int ours, struct err *e)
{
	int ends[2], answer;
	pid_t between, init;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(e, errno, "cannot create a pipe");
	between = clone_process(0, 0);
	if (!between) {
		close(ours);
		init = shared_namespace_enter(ns) < 0
			       ? -1
			       : clone_process(CLONE_PARENT | CLONE_NEWNS, 0);
		if (!init) {
			close(ends[0]);
			close(ends[1]);
			namespace_init(plan);
		}
		answer = init < 0 ? -errno : init;
		/* A supervisor that is gone needs no answer. */
		(void)!write(ends[1], &answer, sizeof(answer));
		_exit(0);
	}
	init = await_between(between, ends);
	return init < 0 ? limit_err(e, errno, SYS_clone3,
				  "cannot create a process in the namespace of the other ranks "
				  "of this node")
			: init;
}

const char *spawn_init_name(const struct supervisor *s)
{
	return s->init_is_first ? "the first process of the new namespace"
				: "the init of the program (trecr-init)";
}

static void end_init(struct supervisor *s)
{
	(void)kill(s->init, SIGKILL);
	(void)waitpid(s->init, NULL, 0);
	close(s->init_fd);
	s->init = 0;
	s->init_fd = -1;
}

static bool has_user_namespace(const struct spawn_request *request)
{
	return request->shared ? request->shared->plan.user
			       : request->user || !procfs_has_capability(CAP_SYS_ADMIN);
}

static int make_in_namespace(struct supervisor *s, pid_t pid, struct held_child *held,
	const struct spawn_request *request, struct err *e)
{
	const struct shared_namespace *shared = request->shared;
	struct namespace_plan plan = {
		.pid = pid,
		.user_namespace = has_user_namespace(request),
		.uid = geteuid(),
		.gid = getegid(),
		.terminals = request->terminals,
		.clocks = request->clocks,
		.shared = shared,
		.hold = shared ? shared->hold : -1,
		.child = run_held,
		.arg = held,
	};
	struct namespace_report report;
	int ends[2];

	if (namespace_sockets(ends, e))
		return -1;
	plan.socket = ends[1];
	held->supervisor = 0;
	s->init = shared ? make_init_in(shared, &plan, ends[0], e)
			 : make_init(&plan, request, ends[0], e);
	close(ends[1]);
	if (s->init < 0) {
		s->init = 0;
		close(ends[0]);
		return -1;
	}
	s->init_fd = ends[0];
	s->init_is_first = !shared;
	if (namespace_await_report(s->init_fd, spawn_init_name(s), &report, &s->root, e) < 0) {
		end_init(s);
		return -1;
	}
	shown_paths_of(s->init);
	return 0;
}

/* What a program cannot do in a user namespace, it finds out much later: chown(2) to another group of its user's, say. */
static char *notice_of(const struct spawn_request *request, const char *why)
{
	cleanup_free char *ids = NULL;

	if (has_user_namespace(request))
		ids = xasprintf(
			"; for it only user %u and group %u exist there, see RESTART IN "
			"A NAMESPACE in trecr(7)",
			geteuid(), getegid());
	return xasprintf("the program is brought back in a pid namespace %s: %s%s",
		request->shared ? "with the other ranks of this node" : "of its own",
		why ? why : request->reason, ids ? ids : "");
}

int spawn_restored(struct supervisor *s, pid_t pid, void (*child)(void *arg), void *arg,
	const struct spawn_request *request, char **notice, struct err *e)
{
	struct held_child held = {.supervisor = getpid(), .child = child, .arg = arg};
	cleanup_free char *why = NULL;
	int r = 1;

	*notice = NULL;
	if (pid == 1)
		return err_set(e, 0,
			"the program was process 1, the init of a container, and cannot be "
			"brought back");
	if (pipe2(held.hold, O_CLOEXEC) < 0)
		return err_set(e, errno, "cannot create a pipe");
	if (!request->reason && !request->shared)
		r = make_here(s, pid, &held, request->clocks, &why, e);
	if (r == 1)
		r = make_in_namespace(s, pid, &held, request, e);
	if (r == 0 && s->init)
		*notice = notice_of(request, why);
	close(held.hold[0]);
	if (r < 0)
		close(held.hold[1]);
	else
		s->release_fd = held.hold[1];
	return r;
}

/* The privilege is looked for first, and then whether the id is free: ours is not. */
bool spawn_may_choose_ids(void)
{
	pid_t made = clone_process(0, getpid());

	if (made == 0)
		_exit(0);
	if (made > 0)
		(void)waitpid(made, NULL, 0);
	return made > 0 || errno != EPERM;
}

static void end_at_once(void *arg)
{
	_exit(0);
}

int spawn_check(pid_t pid, struct err *e)
{
	struct held_child held = {.child = end_at_once};
	static const struct spawn_request request;
	struct supervisor s = SUPERVISOR_INIT("");
	pid_t made = clone_process(0, pid);
	int failed;

	if (made == 0)
		_exit(0);
	if (made > 0)
		return waitpid(made, NULL, 0) < 0 ? err_set(e, errno, "cannot wait") : 0;
	/* The privilege is looked for first, and then whether the id is free. */
	if (errno != EPERM)
		return 0;
	if (pipe2(held.hold, O_CLOEXEC) < 0)
		return err_set(e, errno, "cannot create a pipe");
	failed = make_in_namespace(&s, pid, &held, &request, e);
	if (!failed)
		end_init(&s);
	close(held.hold[0]);
	close(held.hold[1]);
	return failed;
}

int spawn_release(struct supervisor *s, struct err *e)
{
	/* The init first: with the program let go, its namespace must not die with us. */
	if (s->init && send(s->init_fd, "", 1, MSG_NOSIGNAL) < 0)
		return err_set(e, errno, "cannot reach %s", spawn_init_name(s));
	if (write_all(s->release_fd, "", 1, "to the new process", e) < 0)
		return -1;
	close(s->release_fd);
	s->release_fd = -1;
	return 0;
}
