/*
 * All that the processes have in common is made by the first of them, before it forks. Then
 * they act in step: when all are there, each founds its process group if it has one, then
 * joins the one that it is to be in, and then helpers and zombies end.
 *
 * Processes that share their memory run this code in the same memory, each on a stack of its
 * own: the C library takes them for one thread. So only one of them acts at a time, the one
 * that has the turn, and gives it up where it waits. That this is enough:
 *
 *	- What the library keeps for a thread (errno, caches of malloc(3), owners of locks) is
 *	  used in turn, and nothing of it is kept over a wait: no lock is held then, and errno
 *	  has been read. Without the turn nothing but wait_call() is called, which writes no
 *	  errno: another one may be about to read it.
 *	- There are no handlers of signals, which would run without the turn.
 *	- The kernel forgets for the new one what belongs to the thread that made it (rseq, the
 *	  robust list, the address to be cleared at its end), as it does for each CLONE_VM.
 *	- A copy made by fork(2) is made in turn, so all in it is consistent; it has a turn of
 *	  its own, and has it.
 *	- None of them executes a program (birth_order.h). One that ends with the turn leaves
 *	  the others waiting: the supervisor, which traces all, hears of it and ends them.
 *
 * Why the loader does not make them, as it makes threads: doc/decisions/births.md.
 *
 * Of processes that share a table of descriptors, the first puts those of all to their places,
 * when the others need them no more.
 */
#include "supervisor/restore/birth.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/limits.h"
#include "supervisor/restore/zombie_end.h"
#include "supervisor/target/clone.h"

/* Where helpers' ids are looked for. */
#define HELPER_PID_FIRST 300

/* How often all wait for each other, before helpers may end. */
#define MEETINGS 4

struct birth_meeting {
	_Atomic uint32_t arrived;
	_Atomic uint32_t settled;    /* that leave their descriptors to another */
	_Atomic uint32_t helper_pid; /* the next to try */
	_Atomic bool failed;
};

/* ---- in the supervisor ---- */

static void collect_ids(struct birth *b)
{
	for (size_t i = 0; i < birth_order_count(&b->order); i++) {
		const struct birth_node *n = birth_order_at(&b->order, i);

		buf_push(&b->ids, pid_t, &n->pid);
		buf_push(&b->ids, pid_t, &n->pgid);
		buf_push(&b->ids, pid_t, &n->sid);
	}
	for (size_t i = 0; i < b->c->process_count; i++) {
		const struct image_thread *t;
		size_t count;

		t = image_note_array(
			b->c->processes[i], IMAGE_NOTE_THREADS, struct image_thread, &count);
		for (size_t k = 0; k < count; k++)
			buf_push(&b->ids, pid_t, &t[k].tid);
	}
	qsort(b->ids.data, buf_count(&b->ids, pid_t), sizeof(pid_t), compare_ints);
}

int birth_init(struct birth *b, const struct checkpoint *c, struct err *e)
{
	const struct image_job_process *list;
	const struct image_sharing *sharing;
	size_t count, sharers;

	memset(b, 0, sizeof(*b));
	b->c = c;
	b->error_pipe[0] = b->error_pipe[1] = -1;
	list = image_note_array(c->job, IMAGE_NOTE_PROCESSES, struct image_job_process, &count);
	sharing = image_note_array(c->job, IMAGE_NOTE_SHARING, struct image_sharing, &sharers);
	if (birth_order_plan(&b->order, list, sharers ? sharing : NULL, count, e))
		return -1;
	collect_ids(b);
	b->children = xcalloc(c->process_count, sizeof(*b->children));
	for (size_t i = 0; i < c->process_count; i++)
		if (restore_child_init(&b->children[i], c, i, e))
			return -1;
	b->meeting = mmap(NULL, sizeof(*b->meeting), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (b->meeting == MAP_FAILED) {
		b->meeting = NULL;
		return err_set(e, errno, "cannot map shared memory");
	}
	b->meeting->helper_pid = HELPER_PID_FIRST;
	for (size_t i = 0; i < c->process_count; i++) {
		b->children[i].stays = birth_order_at(&b->order, i)->stays;
		b->followers += checkpoint_owner(c, i, IMAGE_SHARED_FILES) != i;
	}
	return pipe2(b->error_pipe, O_CLOEXEC) ? err_set(e, errno, "cannot make a pipe") : 0;
}

void birth_free(struct birth *b)
{
	for (int i = 0; i < 2; i++)
		util_close(&b->error_pipe[i]);
	for (size_t i = 0; b->children && i < b->c->process_count; i++)
		restore_child_free(&b->children[i]);
	if (b->meeting)
		munmap(b->meeting, sizeof(*b->meeting));
	free(b->children);
	buf_free(&b->ids);
	birth_order_free(&b->order);
}

pid_t birth_id_in_use(const struct birth *b)
{
	for (size_t i = 0; i < buf_count(&b->ids, pid_t); i++) {
		pid_t id = *buf_at(&b->ids, pid_t, i);
		cleanup_free char *path = xasprintf("/proc/%d", id);

		if (id && (!access(path, F_OK) || !kill(-id, 0) || errno == EPERM))
			return id;
	}
	return 0;
}

bool birth_done(const struct birth *b)
{
	return b->meeting->arrived >= MEETINGS * birth_order_count(&b->order) &&
	       !b->meeting->failed;
}

int birth_error(struct birth *b, struct err *e)
{
	util_close(&b->error_pipe[1]);
	b->error_pipe[1] = -1;
	if (read_all(b->error_pipe[0], e, sizeof(*e), "the error pipe", NULL))
		return err_set(e, 0, "the new process ended early");
	return -1;
}

/* ---- in the new processes ---- */

static void __attribute__((noreturn)) live(struct birth *b, size_t node);

/* ---- in step ---- */

/* A system call without the C library, whose errno is somebody else's just now. */
static long wait_call(long nr, long a, long b, long c, long d, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = f;
	register long r9 __asm__("r9") = 0;
	long result = nr;

	__asm__ volatile("syscall"
			 : "+a"(result)
			 : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static void wait_while(_Atomic uint32_t *word, uint32_t is)
{
	(void)wait_call(SYS_futex, (long)word, FUTEX_WAIT, is, 0, 0);
}

static void wake(_Atomic uint32_t *word, int count)
{
	(void)wait_call(SYS_futex, (long)word, FUTEX_WAKE, count, 0, 0);
}

/* One at a time in one memory; a process made by fork(2) has its own turn, and has it. */
static void take_turn(struct birth *b)
{
	uint32_t taken = 0;

	while (!atomic_compare_exchange_strong(&b->turn, &taken, 1)) {
		wait_while(&b->turn, 1);
		taken = 0;
	}
}

static void give_turn(struct birth *b)
{
	atomic_store(&b->turn, 0);
	wake(&b->turn, 1);
}

static void add_one(_Atomic uint32_t *count)
{
	atomic_fetch_add(count, 1);
	wake(count, INT_MAX);
}

static void await(struct birth *b, _Atomic uint32_t *count, uint32_t all)
{
	uint32_t now;

	give_turn(b);
	while ((now = atomic_load(count)) < all)
		wait_while(count, now);
	take_turn(b);
}

/* Return when all have come this far, for the @nth time. */
static void meet(struct birth *b, unsigned nth)
{
	add_one(&b->meeting->arrived);
	await(b, &b->meeting->arrived, nth * birth_order_count(&b->order));
}

/* ---- making children ---- */

/* What a child is told. Of the child's own from when it has begun. */
struct start {
	struct birth *b;
	size_t node;
};

static void __attribute__((noreturn)) start(void *arg)
{
	struct start s = *(struct start *)arg;

	if (birth_order_at(&s.b->order, s.node)->shares & CLONE_VM) {
		take_turn(s.b);
		free(arg);
	}
	live(s.b, s.node);
}

static pid_t clone_node(struct birth *b, size_t node, pid_t pid)
{
	const struct birth_node *n = birth_order_at(&b->order, node);
	struct start *s = xmalloc(sizeof(*s));
	pid_t made;

	*s = (struct start){b, node};
	made = clone_and_run(n->shares, pid, n->exit_signal, start, s);
	if (made < 0 || !(n->shares & CLONE_VM))
		free(s);
	return made;
}

/* Any id will do for a helper that is in nobody's way: what the kernel would choose may be an
 * id that a process or thread to come has to get. */
static pid_t make_helper(struct birth *b, size_t node)
{
	for (;;) {
		pid_t pid = atomic_fetch_add(&b->meeting->helper_pid, 1), made;

		if (bsearch(&pid, b->ids.data, buf_count(&b->ids, pid_t), sizeof(pid_t),
			    compare_ints))
			continue;
		made = clone_node(b, node, pid);
		if (made >= 0 || errno != EEXIST)
			return made;
	}
}

static int make_child(struct birth *b, size_t node, struct err *e)
{
	pid_t pid = birth_order_at(&b->order, node)->pid;
	pid_t made = pid ? clone_node(b, node, pid) : make_helper(b, node);

	b->made[node] = made;
	if (made > 0)
		return 0;
	if (errno == EEXIST)
		return err_with(e, ERR_ID_TAKEN, "process id %d is in use", pid);
	return limit_err(e, errno, SYS_clone3, "cannot make a process with id %d", pid);
}

static int make_children(struct birth *b, size_t node, bool early, struct err *e)
{
	for (size_t i = 1; i < birth_order_count(&b->order); i++) {
		const struct birth_node *n = birth_order_at(&b->order, i);

		if (n->creator == node && n->early == early && make_child(b, i, e))
			return -1;
	}
	return 0;
}

/* The terminal comes with it: children have theirs from their parents. */
static int found_session(struct birth *b, size_t node, struct err *e)
{
	uint32_t terminal = node < b->order.count ? b->order.list[node].terminal : 0;

	if (setsid() < 0)
		return err_set(e, errno, "cannot found a session");
	if (terminal && !b->fd_options.alive &&
		ioctl(fd_restore_terminal(b->fds, terminal - 1), TIOCSCTTY, 0))
		return err_set(e, errno, "cannot make /dev/pts/%u the session's terminal",
			terminal - 1);
	return 0;
}

static int grow(struct birth *b, size_t node, struct err *e)
{
	const struct birth_node *n = birth_order_at(&b->order, node);

	/* Its children are to know of it from the start; add_prctls() has the final word. */
	if (n->adopts && prctl(PR_SET_CHILD_SUBREAPER, 1))
		return err_set(e, errno, "cannot become the parent of orphans");
	if (make_children(b, node, true, e))
		return -1;
	if (n->pid && n->sid == n->pid && found_session(b, node, e))
		return -1;
	return make_children(b, node, false, e);
}

static int join_group(const struct birth_node *n, struct err *e)
{
	if (n->pgid && n->pgid != getpgrp() && setpgid(0, n->pgid))
		return err_set(e, errno, "cannot join process group %d", n->pgid);
	return 0;
}

/* A process that has founded a group and left it since stays in it until the others are there.
 */
static int find_group(struct birth *b, size_t node, struct err *e)
{
	const struct birth_node *n = birth_order_at(&b->order, node);

	meet(b, 1);
	if (n->leads && setpgid(0, 0))
		return err_set(e, errno, "cannot found a process group");
	meet(b, 2);
	if (!n->leads && join_group(n, e))
		return -1;
	meet(b, 3);
	if (n->leads && join_group(n, e))
		return -1;
	meet(b, MEETINGS);
	return 0;
}

/* As the process did by itself (TIOCNOTTY), where its session has one. */
static int give_terminal_up(struct err *e)
{
	cleanup_fd int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return errno == ENXIO ? 0 : err_set(e, errno, "cannot open /dev/tty");
	return ioctl(fd, TIOCNOTTY) ? err_set(e, errno, "cannot give a terminal up") : 0;
}

static int settle_terminal(const struct birth *b, size_t node, struct err *e)
{
	const struct image_job_process *entry = &b->order.list[node];
	sigset_t out;

	/* A zombie has none any more, whatever its session has. */
	if (b->fd_options.alive || !entry->sid ||
		birth_order_at(&b->order, node)->kind != BIRTH_LIVING)
		return 0;
	if (!entry->terminal)
		return entry->sid == entry->pid ? 0 : give_terminal_up(e);
	/* A group in the background is stopped otherwise. */
	sigemptyset(&out);
	sigaddset(&out, SIGTTOU);
	(void)sigprocmask(SIG_BLOCK, &out, NULL);
	if (entry->flags & IMAGE_JOB_PROCESS_FOREGROUND &&
		tcsetpgrp(fd_restore_terminal(b->fds, entry->terminal - 1), getpgrp()))
		return err_set(e, errno, "cannot become the foreground group of /dev/pts/%u",
			entry->terminal - 1);
	(void)sigprocmask(SIG_UNBLOCK, &out, NULL);
	return 0;
}

/* Helpers are to be gone, and zombies to be there, before the program could see otherwise; and
 * the SIGCHLD that says so comes now, when it is ignored. */
static int await_ended(struct birth *b, size_t node, struct err *e)
{
	for (size_t i = 1; i < birth_order_count(&b->order); i++) {
		const struct birth_node *n = birth_order_at(&b->order, i);
		int keep = n->kind == BIRTH_ZOMBIE ? WNOWAIT : 0;
		siginfo_t info = {0};

		if (n->creator != node || n->kind == BIRTH_LIVING)
			continue;
		while (!waitid(P_PID, b->made[i], &info, WEXITED | WNOHANG | __WALL | keep) &&
			!info.si_pid) {
			give_turn(b);
			/* Only what is done in turn tells. */
			(void)wait_call(SYS_waitid, P_PID, b->made[i], (long)&info,
				WEXITED | WNOWAIT | __WALL, 0);
			take_turn(b);
			info.si_pid = 0;
		}
		if (!info.si_pid)
			return err_set(e, errno, "cannot wait for process %d", b->made[i]);
	}
	return 0;
}

/* The last steps of a process that lives on: its descriptors, when nobody else needs them here
 * any more, and its program. */
static int become(struct birth *b, size_t node, int *error_fd, struct err *e)
{
	struct restore_child *child = &b->children[node];
	bool follows = checkpoint_owner(b->c, node, IMAGE_SHARED_FILES) != node;

	if (restore_child_enter(child, b->fds, e))
		return -1;
	if (follows) {
		add_one(&b->meeting->settled);
	} else {
		if (b->followers)
			await(b, &b->meeting->settled, b->followers);
		if (restore_child_place(b->children, node, b->fds, error_fd, e))
			return -1;
	}
	child->fds->placed = true;
	if (!child->stays)
		return restore_child_exec(child, e);
	if (restore_child_prepare_stop(child, follows, e))
		return -1;
	give_turn(b);
	restore_child_stop();
}

/* The rest of what node @node does; returns in case of failure. */
static int run_node(struct birth *b, size_t node, int *error_fd, struct err *e)
{
	const struct birth_node *n = birth_order_at(&b->order, node);
	const struct image_job_process *entry = &b->order.list[node];

	if (grow(b, node, e) || find_group(b, node, e))
		return -1;
	if (n->kind == BIRTH_HELPER) {
		/* Its helpers are not to be left to who adopts its other children. */
		if (await_ended(b, node, e))
			return -1;
		give_turn(b);
		_exit(0);
	}
	if (n->kind == BIRTH_ZOMBIE && b->fd_options.alive)
		_exit(0);
	if (n->kind == BIRTH_ZOMBIE)
		return restore_die(entry, image_string(b->c->job, entry->comm), e);
	if (settle_terminal(b, node, e) || await_ended(b, node, e))
		return -1;
	return become(b, node, error_fd, e);
}

/* The other end reads the error as one piece, or finds the pipe empty. */
static void __attribute__((noreturn)) fail(struct birth *b, int error_fd, const struct err *e)
{
	(void)write_all(error_fd, e, sizeof(*e), "the error pipe", NULL);
	b->meeting->failed = true;
	_exit(1);
}

static void live(struct birth *b, size_t node)
{
	struct err e = ERR_INIT;
	int error_fd = b->error_pipe[1];

	(void)run_node(b, node, &error_fd, &e);
	if (node && node < b->order.count)
		err_prefix(&e, "process %d (%s)", b->order.list[node].pid,
			image_string(b->c->job, b->order.list[node].comm));
	fail(b, error_fd, &e);
}

/* The ends of helpers and zombies: their parents wait for them, and are told by a signal that
 * they ignore, as it is not blocked. */
static void settle_end_signals(const struct birth *b)
{
	const struct image_sharing *sharing = b->order.sharing;
	sigset_t set;

	for (size_t i = 0; sharing && i < b->order.count; i++)
		if (sharing[i].exit_signal && sharing[i].exit_signal != SIGCHLD)
			/* SIGKILL and SIGSTOP cannot be, and do what they always do. */
			(void)sigaction(sharing[i].exit_signal,
				&(struct sigaction){.sa_handler = SIG_IGN}, NULL);

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	(void)sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

void birth_main(void *arg)
{
	static const int std[3] = {0, 1, 2};
	struct birth *b = arg;
	struct err e = ERR_INIT;

	b->turn = 1;
	settle_end_signals(b);
	/* To be told of too large a file by an error. The program's action is set later. */
	(void)sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	b->made = xcalloc(birth_order_count(&b->order), sizeof(*b->made));
	b->fds = fd_restore_new(b->c, &b->fd_options, std, &e);
	if (!b->fds)
		fail(b, b->error_pipe[1], &e);
	live(b, 0);
}
