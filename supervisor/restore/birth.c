/*
 * All that the processes have in common is made by the first of them, before it forks. Then
 * they act in step: when all are there, each founds its process group if it has one, then
 * joins that which it is to be in, and then those that only helped, and the zombies, end.
 */
#include "supervisor/restore/birth.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "supervisor/clone.h"

/* Where helpers' ids are looked for. */
#define HELPER_PID_FIRST 300

struct birth_meeting {
	_Atomic uint32_t arrived;
	_Atomic uint32_t helper_pid; /* the next to try */
	_Atomic bool failed;
};

/* ---- in the supervisor ---- */

static int compare_ids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

static void collect_ids(struct birth *b)
{
	for (size_t i = 0; i < forest_count(&b->forest); i++) {
		const struct forest_node *n = forest_at(&b->forest, i);

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
	qsort(b->ids.data, buf_count(&b->ids, pid_t), sizeof(pid_t), compare_ids);
}

int birth_init(struct birth *b, const struct checkpoint *c, struct err *e)
{
	const struct image_job_process *list;
	size_t count;

	memset(b, 0, sizeof(*b));
	b->c = c;
	b->error_pipe[0] = b->error_pipe[1] = -1;
	list = image_note_array(c->job, IMAGE_NOTE_PROCESSES, struct image_job_process, &count);
	if (forest_plan(&b->forest, list, count, e))
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
	forest_free(&b->forest);
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

bool birth_failed(const struct birth *b)
{
	return b->meeting->failed;
}

int birth_error(struct birth *b, struct err *e)
{
	util_close(&b->error_pipe[1]);
	b->error_pipe[1] = -1;
	if (read_all(b->error_pipe[0], e, sizeof(*e), "the error pipe", NULL))
		return err_set(e, 0, "the new process has ended before its time");
	return -1;
}

/* ---- in the new processes ---- */

static void __attribute__((noreturn)) live(struct birth *b, size_t node);

/* Go on when all have come this far, for the @nth time. */
static void meet(struct birth *b, unsigned nth)
{
	uint32_t all = nth * forest_count(&b->forest), now;
	_Atomic uint32_t *arrived = &b->meeting->arrived;

	if (atomic_fetch_add(arrived, 1) + 1 == all)
		syscall(SYS_futex, arrived, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	while ((now = atomic_load(arrived)) < all)
		syscall(SYS_futex, arrived, FUTEX_WAIT, now, NULL, NULL, 0);
}

/* Any id will do for a helper that is in nobody's way: what the kernel would choose may be an
 * id that a process or thread to come has to get. */
static pid_t make_helper(struct birth *b)
{
	for (;;) {
		pid_t pid = atomic_fetch_add(&b->meeting->helper_pid, 1), made;

		if (bsearch(&pid, b->ids.data, buf_count(&b->ids, pid_t), sizeof(pid_t),
			    compare_ids))
			continue;
		made = clone_process(0, pid);
		if (made >= 0 || errno != EEXIST)
			return made;
	}
}

static int make_child(struct birth *b, size_t node, struct err *e)
{
	pid_t pid = forest_at(&b->forest, node)->pid;
	pid_t made = pid ? clone_process(0, pid) : make_helper(b);

	if (!made)
		live(b, node);
	b->made[node] = made;
	if (made > 0)
		return 0;
	return err_set(e, errno, "cannot make a process with id %d", pid);
}

static int make_children(struct birth *b, size_t node, bool early, struct err *e)
{
	for (size_t i = 1; i < forest_count(&b->forest); i++) {
		const struct forest_node *n = forest_at(&b->forest, i);

		if (n->creator == node && n->early == early && make_child(b, i, e))
			return -1;
	}
	return 0;
}

/* The terminal comes with it: children have theirs from their parents. */
static int found_session(struct birth *b, size_t node, struct err *e)
{
	uint32_t terminal = node < b->forest.count ? b->forest.list[node].terminal : 0;

	if (setsid() < 0)
		return err_set(e, errno, "cannot found a session");
	if (terminal && ioctl(fd_restore_terminal(b->fds, terminal - 1), TIOCSCTTY, 0))
		return err_set(e, errno, "cannot make /dev/pts/%u the session's terminal",
			terminal - 1);
	return 0;
}

static int grow(struct birth *b, size_t node, struct err *e)
{
	const struct forest_node *n = forest_at(&b->forest, node);

	if (make_children(b, node, true, e))
		return -1;
	if (n->pid && n->sid == n->pid && found_session(b, node, e))
		return -1;
	return make_children(b, node, false, e);
}

static int join_group(struct birth *b, size_t node, struct err *e)
{
	const struct forest_node *n = forest_at(&b->forest, node);

	meet(b, 1);
	if (n->leads && setpgid(0, 0))
		return err_set(e, errno, "cannot found a process group");
	meet(b, 2);
	if (n->pgid && n->pgid != getpgrp() && setpgid(0, n->pgid))
		return err_set(e, errno, "cannot join process group %d", n->pgid);
	meet(b, 3);
	return 0;
}

static int settle_terminal(const struct birth *b, size_t node, struct err *e)
{
	const struct image_job_process *entry = &b->forest.list[node];
	sigset_t out;
	int fd;

	/* A zombie has none any more, whatever its session has. */
	if (!entry->sid || forest_at(&b->forest, node)->kind != FOREST_LIVING)
		return 0;
	if (!entry->terminal) {
		/* One that gave it up by itself (TIOCNOTTY), where its session has one. */
		fd = entry->sid == entry->pid ? -1 : open("/dev/tty", O_RDWR | O_CLOEXEC);
		if (fd >= 0)
			(void)ioctl(fd, TIOCNOTTY);
		util_close(&fd);
		return 0;
	}
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

/* End as @entry did, without a core file. */
static int die(const struct image_job_process *entry, const char *comm, struct err *e)
{
	static const struct rlimit none;
	int signal = entry->status & 0x7f;
	sigset_t set;

	/* All of these are for looks, or to be on the safe side. */
	(void)prctl(PR_SET_NAME, comm);
	(void)setrlimit(RLIMIT_CORE, &none);
	if (entry->uid != getuid())
		(void)!setresuid(entry->uid, entry->uid, entry->uid);
	if (!signal)
		_exit(entry->status >> 8);
	(void)prctl(PR_SET_DUMPABLE, 0);
	if (signal != SIGKILL)
		(void)sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	sigemptyset(&set);
	sigaddset(&set, signal);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)kill(getpid(), signal);
	return err_set(e, 0, "cannot end by signal %d", signal);
}

/* Those that end are to be there, or gone, before the program could see otherwise; and the
 * SIGCHLD that says so comes now, when it is ignored. */
static int await_ended(struct birth *b, size_t node, struct err *e)
{
	for (size_t i = 1; i < forest_count(&b->forest); i++) {
		const struct forest_node *n = forest_at(&b->forest, i);
		int keep = n->kind == FOREST_ZOMBIE ? WNOWAIT : 0;
		siginfo_t info;

		if (n->creator != node || n->kind == FOREST_LIVING)
			continue;
		while (waitid(P_PID, b->made[i], &info, WEXITED | keep))
			if (errno != EINTR)
				return err_set(
					e, errno, "cannot wait for process %d", b->made[i]);
	}
	return 0;
}

/* The rest of what node @node does; returns in case of failure. */
static int go_on(struct birth *b, size_t node, struct err *e)
{
	const struct forest_node *n = forest_at(&b->forest, node);
	const struct image_job_process *entry = &b->forest.list[node];

	if (grow(b, node, e) || join_group(b, node, e))
		return -1;
	if (n->kind == FOREST_HELPER)
		_exit(0);
	if (n->kind == FOREST_ZOMBIE)
		return die(entry, image_string(b->c->job, entry->comm), e);
	if (settle_terminal(b, node, e) || await_ended(b, node, e))
		return -1;
	return restore_child_exec(&b->children[node], b->fds, &b->error_pipe[1], e);
}

/* The other end reads the error as one piece, or finds the pipe empty. */
static void __attribute__((noreturn)) fail(struct birth *b, const struct err *e)
{
	(void)write_all(b->error_pipe[1], e, sizeof(*e), "the error pipe", NULL);
	b->meeting->failed = true;
	_exit(1);
}

static void live(struct birth *b, size_t node)
{
	struct err e = ERR_INIT;

	(void)go_on(b, node, &e);
	if (node && node < b->forest.count)
		err_prefix(&e, "process %d (%s)", b->forest.list[node].pid,
			image_string(b->c->job, b->forest.list[node].comm));
	fail(b, &e);
}

/* The ends of helpers and zombies: their parents wait for them, and are told by a signal that
 * they ignore, as it is not blocked. */
static void settle_sigchld(void)
{
	sigset_t set;

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

	settle_sigchld();
	b->made = xcalloc(forest_count(&b->forest), sizeof(*b->made));
	b->fds = fd_restore_new(b->c, std, &e);
	if (!b->fds)
		fail(b, &e);
	live(b, 0);
}
