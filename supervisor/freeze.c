/*
 * A tree that makes threads and processes as fast as it can is a moving target: what a
 * listing shows may have forked since. Seizing with PTRACE_O_TRACECLONE and its like attaches
 * every new task as it appears; and only when two passes in a row have found nothing new, and
 * the kernel has given out no process id between them, is nothing left that was missed
 * (doc/decisions/freeze.md).
 */
#include "supervisor/freeze.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/frozen.h"
#include "supervisor/lower/lower.h"
#include "supervisor/syscall/restart.h"
#include "supervisor/thaw.h"

/* How long a thread may take to stop before it is asked what it waits for. */
#define STOP_SLICE_NS 2000000ull

struct freezer {
	const struct freeze_target *target;
	struct tree *tree;
	bool found_new; /* in this pass */
};

static struct thread *find_thread(struct process *p, pid_t tid)
{
	for (size_t i = 0; i < p->thread_count; i++)
		if (p->threads[i].tracee.tid == tid)
			return &p->threads[i];
	return NULL;
}

static struct process *add_process(struct freezer *f, pid_t pid, pid_t parent)
{
	struct process *p = xcalloc(1, sizeof(*p));
	struct tree *tree = f->tree;

	p->pid = pid;
	p->parent = parent;
	p->mem_fd = -1;
	tree->processes = xrealloc(tree->processes, (tree->count + 1) * sizeof(p));
	tree->processes[tree->count++] = p;
	return p;
}

static struct thread *add_thread(struct freezer *f, struct process *p, pid_t tid)
{
	struct thread *t;

	if (p->thread_count == p->thread_room) {
		p->thread_room = p->thread_room ? 2 * p->thread_room : 8;
		p->threads = xrealloc(p->threads, p->thread_room * sizeof(*t));
	}
	t = &p->threads[p->thread_count++];
	memset(t, 0, sizeof(*t));
	t->tracee.pid = p->pid;
	t->tracee.tid = tid;
	t->tracee.is_child = f->target->root_is_child && tid == f->target->root;
	return t;
}

/* A task that is seized by its parent's seizing already says EPERM. The tracer is a thread. */
static bool traced_by_us(pid_t pid, pid_t tid)
{
	cleanup_free char *status = procfs_status(pid, tid, NULL);

	return status && status_number(status, "TracerPid", 10) == (uint64_t)gettid();
}

static int refuse_debugger(struct process *p, pid_t tid, struct err *e)
{
	cleanup_free char *status = procfs_status(p->pid, tid, NULL);
	pid_t tracer = status ? (pid_t)status_number(status, "TracerPid", 10) : 0;

	if (tracer)
		return err_set(e, 0, "process %d is being traced by process %d (a debugger?)",
			p->pid, tracer);
	return -1;
}

/* Is @tid still there, and more than a zombie? */
static bool task_alive(pid_t pid, pid_t tid)
{
	struct proc_stat st;

	return !procfs_stat(pid, tid, &st, NULL) && st.state != 'Z' && st.state != 'X';
}

/* A main thread that has ended cannot be attached to, and by the time that we look a thread
 * that executes a program has taken its id. */
#define SEIZE_ATTEMPTS 20

/* Attach to @tid; 1: it has ended. */
static int attach(struct freezer *f, struct process *p, pid_t tid, struct err *e)
{
	struct thread *t = add_thread(f, p, tid);
	int attempt = 0;

	while (tracee_seize(&t->tracee, false, e)) {
		if (!task_alive(p->pid, tid)) {
			p->thread_count--;
			return 1;
		}
		t->tracee.state = TRACEE_RUNNING;
		if (traced_by_us(p->pid, tid))
			break;
		if (++attempt == SEIZE_ATTEMPTS)
			return refuse_debugger(p, tid, e);
		sched_yield();
	}
	/* It runs on until it is interrupted. */
	syscall_before_freeze(t);
	f->found_new = true;
	return 0;
}

static int seize_thread(struct freezer *f, struct process *p, pid_t tid, struct err *e)
{
	int r = attach(f, p, tid, e);
	struct thread *t;

	if (r)
		return r < 0 ? -1 : 0;
	t = &p->threads[p->thread_count - 1];
	if (tracee_interrupt(&t->tracee, e) && t->tracee.state != TRACEE_GONE)
		return -1;
	return 0;
}

static int seize_new_threads(struct freezer *f, struct process *p, struct err *e)
{
	cleanup_free pid_t *tids = NULL;
	size_t count;

	if (procfs_tasks(p->pid, &tids, &count, e))
		return task_alive(p->pid, p->pid) ? -1 : 0;
	/* A lower half has threads of its own. Memory of a process that forks cannot be read
	 * before it has: those that do nothing else are not to hold us up. */
	if (count > 1)
		lower_find(p);
	for (size_t i = 0; i < count; i++)
		if (!find_thread(p, tids[i]) && !lower_owns(p, tids[i]) &&
			!lower_sleeps(p, tids[i]) && seize_thread(f, p, tids[i], e))
			return -1;
	return 0;
}

static void drop_process(struct tree *tree, size_t i)
{
	struct process *p = tree->processes[i];

	tree->count--;
	memmove(&tree->processes[i], &tree->processes[i + 1],
		(tree->count - i) * sizeof(*tree->processes));
	process_free(p);
}

/* Add a process, and attach to it at once: there may be little time. */
static int take_in(struct freezer *f, pid_t pid, pid_t parent, struct err *e)
{
	struct process *p = add_process(f, pid, parent);

	/* Also one that is dead by now: it may have made another. */
	f->found_new = true;
	return seize_thread(f, p, pid, e);
}

static bool is_stranger(const struct freeze_target *target, pid_t pid)
{
	for (size_t i = 0; i < target->stranger_count; i++)
		if (target->strangers[i] == pid)
			return true;
	return false;
}

/* Whether it has ended and, if that is for us to do, been waited for: one call, as there may be
 * thousands. */
static bool reap(const struct freezer *f, pid_t pid)
{
	return f->target->reaper == getpid() && waitpid(pid, NULL, __WALL | WNOHANG) == pid;
}

/* Children of processes that have ended. Those that have ended, too, are nobody's to wait for
 * but the reaper's: if that is us they have to go now, as a long list of children would never
 * be read in time. The youngest stand at its end, and are the ones that may still live. */
static int look_for_orphans(struct freezer *f, bool *late, struct err *e)
{
	cleanup_free pid_t *pids = NULL;
	size_t count;

	*late = false;
	if (procfs_children(f->target->reaper, &pids, &count, e))
		return -1;
	for (size_t i = count; i-- > 0;) {
		if (tree_find(f->tree, pids[i]) || is_stranger(f->target, pids[i]))
			continue;
		if (reap(f, pids[i])) {
			f->found_new = *late = true;
			continue;
		}
		if (take_in(f, pids[i], 0, e))
			return -1;
		if (f->tree->processes[f->tree->count - 1]->thread_count)
			continue;
		drop_process(f->tree, f->tree->count - 1);
		*late = true;
		(void)reap(f, pids[i]); /* or the loop does */
	}
	return 0;
}

/* One that was dead when we came may have made another, which is an orphan now: at once after
 * it, as that will do the same. */
static int add_orphans(struct freezer *f, struct err *e)
{
	bool late;

	do {
		if (look_for_orphans(f, &late, e))
			return -1;
	} while (late && clock_ns(CLOCK_MONOTONIC) < f->target->deadline_ns);
	return 0;
}

static int add_children(struct freezer *f, struct process *p, struct err *e)
{
	cleanup_free pid_t *pids = NULL;
	size_t count;

	if (procfs_children(p->pid, &pids, &count, e))
		return task_alive(p->pid, p->pid) ? -1 : 0;
	for (size_t i = 0; i < count; i++)
		if (!tree_find(f->tree, pids[i]) && take_in(f, pids[i], p->pid, e))
			return -1;
	return 0;
}

/* Let a child that shares its parent's memory run until it no longer does: it executes a
 * program, or ends. */
static int run_to_exec(struct freezer *f, struct process *child, struct err *e)
{
	struct tracee_report report;
	struct thread *t;
	int r = 0;

	if (!find_thread(child, child->pid))
		r = attach(f, child, child->pid, e);
	if (r)
		return r < 0 ? -1 : 0;
	t = find_thread(child, child->pid);
	if (t->tracee.state == TRACEE_STOPPED && tracee_continue(&t->tracee, 0, e))
		return t->tracee.state == TRACEE_GONE ? 0 : -1;
	for (;;) {
		if (tracee_wait(&t->tracee, f->target->deadline_ns, &report, e))
			return t->tracee.state == TRACEE_GONE ? 0 : -1;
		if (report.event == TRACEE_EVENT_GONE)
			return 0;
		if (report.event == TRACEE_EVENT_NONE)
			return err_set(e, 0,
				"process %d, made by vfork, executes no program, and its "
				"parent waits for that",
				child->pid);
		if (tracee_continue(&t->tracee,
			    report.event == TRACEE_EVENT_SIGNAL ? report.signal : 0, e))
			return t->tracee.state == TRACEE_GONE ? 0 : -1;
		if (report.event == TRACEE_EVENT_EXEC)
			return tracee_interrupt(&t->tracee, e) && t->tracee.state != TRACEE_GONE
				       ? -1
				       : 0;
	}
}

/* A thread in vfork(2) cannot be stopped before its child has let go of its memory. */
static int end_vfork(struct freezer *f, struct thread *t, struct err *e)
{
	cleanup_free pid_t *pids = NULL;
	pid_t pid = t->tracee.pid, tid = t->tracee.tid;
	struct proc_stat st;
	size_t count;

	if (procfs_stat(pid, tid, &st, NULL) || st.state != 'D' ||
		procfs_children(pid, &pids, &count, NULL))
		return 0;
	for (size_t i = 0; i < count; i++) {
		struct process *child;

		if (syscall(SYS_kcmp, tid, pids[i], KCMP_VM, 0L, 0L))
			continue;
		child = tree_find(f->tree, pids[i]);
		if (!child)
			child = add_process(f, pids[i], pid);
		if (run_to_exec(f, child, e))
			return -1;
	}
	return 0;
}

/* A thread that was stopped is so no more when another of its process executes a program: it
 * has been killed, or it is the main thread, whose id the other one has got. */
static int recheck(struct freezer *f, struct thread *t, struct err *e)
{
	struct tracee_report report;
	uint64_t mask;

	if (t->tracee.state != TRACEE_STOPPED)
		return 0;
	if (tracee_wait(&t->tracee, 0, &report, e))
		return t->tracee.state == TRACEE_GONE ? 0 : -1;
	if (report.event == TRACEE_EVENT_GONE || report.event == TRACEE_EVENT_TRAP)
		return 0;
	if (report.event == TRACEE_EVENT_NONE &&
		(!tracee_get_sigmask(&t->tracee, &mask, NULL) ||
			t->tracee.state == TRACEE_GONE))
		return 0;
	f->found_new = true;
	t->tracee.state = TRACEE_RUNNING;
	if (tracee_interrupt(&t->tracee, e) ||
		(report.event != TRACEE_EVENT_NONE && tracee_continue(&t->tracee, 0, e)))
		return t->tracee.state == TRACEE_GONE ? 0 : -1;
	return 0;
}

static int recheck_all(struct freezer *f, struct process *p, struct err *e)
{
	for (size_t i = 0; i < p->thread_count; i++)
		if (recheck(f, &p->threads[i], e))
			return -1;
	return 0;
}

/* Nothing from @t for a while. A thread that executes a program waits for the ends of all
 * others, and these for us to take note. */
static int nothing_heard(struct freezer *f, struct process *p, struct thread *t, struct err *e)
{
	if (recheck_all(f, p, e))
		return -1;
	if (!task_alive(t->tracee.pid, t->tracee.tid)) {
		t->tracee.state = TRACEE_GONE;
		return 0;
	}
	if (clock_ns(CLOCK_MONOTONIC) < f->target->deadline_ns)
		return end_vfork(f, t, e);
	return err_set(e, 0,
		"cannot stop thread %d of process %d in time: it does not leave the kernel",
		t->tracee.tid, t->tracee.pid);
}

static uint64_t next_look(const struct freezer *f)
{
	uint64_t at = clock_ns(CLOCK_MONOTONIC) + STOP_SLICE_NS;

	return at < f->target->deadline_ns ? at : f->target->deadline_ns;
}

/* Bring one seized thread into a trap stop. Signals on their way are let through, as they
 * would have been a moment earlier. */
static int stop_thread(struct freezer *f, struct process *p, struct thread *t, struct err *e)
{
	struct tracee_report report;

	while (t->tracee.state == TRACEE_RUNNING) {
		if (tracee_wait(&t->tracee, next_look(f), &report, e))
			return t->tracee.state == TRACEE_GONE ? 0 : -1;
		switch (report.event) {
		case TRACEE_EVENT_TRAP:
		case TRACEE_EVENT_GONE:
			return 0;
		case TRACEE_EVENT_NONE:
			if (nothing_heard(f, p, t, e))
				return -1;
			break;
		default:
			if (report.event == TRACEE_EVENT_NEW)
				f->found_new = true;
			/* Any stop takes the one that was asked for with it. */
			if ((tracee_interrupt(&t->tracee, e) ||
				    tracee_continue(&t->tracee,
					    report.event == TRACEE_EVENT_SIGNAL ? report.signal
										: 0,
					    e)) &&
				t->tracee.state != TRACEE_GONE)
				return -1;
		}
	}
	return 0;
}

/* ---- a process with a lower half ---- */

/* How often threads that did not stop outside of it are asked again. */
#define AGAIN_NS 2000000ull

/* Deal with what @t has to report, if anything. *heard: it had something. */
static int attend(
	struct freezer *f, struct process *p, struct thread *t, bool *heard, struct err *e)
{
	enum lower_verdict verdict;
	struct tracee_report report;
	int signal = 0, r;

	if (tracee_wait(&t->tracee, 0, &report, e))
		return -1;
	*heard |= report.event != TRACEE_EVENT_NONE;
	switch (report.event) {
	case TRACEE_EVENT_NONE:
	case TRACEE_EVENT_GONE:
		return 0;
	case TRACEE_EVENT_TRAP:
		return lower_judge(p, t, &verdict, e);
	case TRACEE_EVENT_SYSCALL:
		r = lower_comes_out(p, t, e);
		if (r)
			return r < 0 ? -1 : 0;
		break;
	case TRACEE_EVENT_SIGNAL:
		signal = report.signal;
		break;
	case TRACEE_EVENT_NEW:
		f->found_new = true;
		break;
	default:
		break;
	}
	if (t->below)
		return tracee_continue_to_syscall(&t->tracee, signal, e);
	/* Any stop takes the one that was asked for with it. */
	return tracee_interrupt(&t->tracee, e) || tracee_continue(&t->tracee, signal, e) ? -1
											 : 0;
}

static bool is_to_be_stopped(const struct process *p, const struct thread *t)
{
	return t->tracee.state == TRACEE_RUNNING && !(t->helper && !p->lower->drained);
}

/* A signal stops threads of the lower half, too, and who waits for them down there does not
 * come out. */
static bool is_stopped_below(const struct process *p)
{
	struct proc_stat st;

	for (size_t i = 0; i < buf_count(&p->lower->tids, pid_t); i++)
		if (!procfs_stat(p->pid, *buf_at(&p->lower->tids, pid_t, i), &st, NULL) &&
			st.state == 'T')
			return true;
	return false;
}

static int refuse_stopped(const struct process *p, struct err *e)
{
	return err_set(
		e, 0, "process %d is stopped by a signal, and its lower half with it", p->pid);
}

/* Nothing was heard of those that still run. */
static int wait_for_some(struct freezer *f, struct process *p, uint64_t *again, struct err *e)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (now < *again) {
		tracee_pause(*again);
		return 0;
	}
	if (is_stopped_below(p))
		return refuse_stopped(p, e);
	*again = now + AGAIN_NS;
	/* They may wait for one that the lower half has made meanwhile. */
	if (seize_new_threads(f, p, e))
		return -1;
	for (size_t k = 0; k < p->thread_count; k++) {
		struct thread *t = &p->threads[k];

		if (!is_to_be_stopped(p, t))
			continue;
		if (nothing_heard(f, p, t, e))
			return -1;
		if (t->tracee.state == TRACEE_RUNNING && tracee_interrupt(&t->tracee, e) &&
			t->tracee.state != TRACEE_GONE)
			return -1;
	}
	return 0;
}

/* One may wait down there for another that has stopped already, but has not been looked at: so
 * all get their turn until the last has come out. */
static int stop_above(struct freezer *f, struct process *p, struct err *e)
{
	uint64_t again = clock_ns(CLOCK_MONOTONIC) + AGAIN_NS;
	bool running;

	do {
		bool heard = false;

		running = false;
		for (size_t k = 0; k < p->thread_count; k++) {
			struct thread *t = &p->threads[k];

			if (t->tracee.state == TRACEE_RUNNING && attend(f, p, t, &heard, e) &&
				t->tracee.state != TRACEE_GONE)
				return -1;
			running |= is_to_be_stopped(p, t);
		}
		if (running && !heard && wait_for_some(f, p, &again, e))
			return -1;
	} while (running);
	return 0;
}

/* ---- */

static int stop_threads(struct freezer *f, struct process *p, struct err *e)
{
	if (p->lower)
		return stop_above(f, p, e);
	for (size_t k = 0; k < p->thread_count; k++)
		if (stop_thread(f, p, &p->threads[k], e))
			return -1;
	return 0;
}

static void forget_gone(struct process *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->thread_count; i++)
		if (p->threads[i].tracee.state != TRACEE_GONE)
			p->threads[kept++] = p->threads[i];
	p->thread_count = kept;
}

/* Those that nobody waits for would make each pass longer than the one before. */
static void drop_gone(struct freezer *f)
{
	for (size_t i = f->tree->count; i-- > 1;) {
		const struct process *p = f->tree->processes[i];
		struct proc_stat st;

		if (p->thread_count)
			continue;
		if (procfs_stat(p->pid, p->pid, &st, NULL) ||
			(pid_t)st.field[4] == f->target->reaper)
			drop_process(f->tree, i);
	}
}

/* One pass: seize what is new, stop it. The list of processes grows while it is walked. */
static int freeze_pass(struct freezer *f, struct err *e)
{
	struct tree *tree = f->tree;

	f->found_new = false;
	if (add_orphans(f, e))
		return -1;
	for (size_t i = 0; i < tree->count; i++) {
		struct process *p = tree->processes[i];

		if (seize_new_threads(f, p, e))
			return -1;
		if (p->thread_count && recheck(f, &p->threads[0], e))
			return -1;
		if (stop_threads(f, p, e))
			return -1;
		forget_gone(p);
		if (add_children(f, p, e))
			return -1;
	}
	drop_gone(f);
	return 0;
}

/* Passes in a row without anything new: with no process id given out meanwhile, or, where
 * others make processes all the time, without regard to that. */
#define QUIET_PASSES      2
#define QUIET_PASSES_BUSY 6

static int freeze_all(struct freezer *f, struct err *e)
{
	pid_t last_pid = 0;
	int quiet = 0, silent = 0;

	while (silent < QUIET_PASSES && quiet < QUIET_PASSES_BUSY) {
		pid_t now;

		if (freeze_pass(f, e))
			return -1;
		now = procfs_last_pid();
		quiet = f->found_new ? 0 : quiet + 1;
		silent = f->found_new || now != last_pid ? 0 : silent + 1;
		last_pid = now;
		if (!quiet && clock_ns(CLOCK_MONOTONIC) > f->target->deadline_ns)
			return err_set(e, 0,
				"cannot freeze process %d: it makes new processes faster than "
				"they can be stopped",
				f->target->root);
	}
	return 0;
}

/* All threads above stand still but for the helpers. Let what is below come to rest; then the
 * helpers are stopped, too, and what they have set off meanwhile. */
static int drain(struct freezer *f, struct err *e)
{
	bool any = false;

	for (size_t i = 0; i < f->tree->count; i++) {
		struct process *p = f->tree->processes[i];

		if (!p->lower || !p->thread_count)
			continue;
		any = true;
		if (p->threads[0].tracee.group_stopped)
			return refuse_stopped(p, e);
		if (p->lower->state != RECORDS_UP)
			return err_set(
				e, 0, "process %d could not bring its lower half up", p->pid);
		if (lower_order(p, LOWER_DRAIN, NULL, 0, f->target->deadline_ns, e))
			return -1;
		p->lower->drained = true;
	}
	return any ? freeze_all(f, e) : 0;
}

int freeze(const struct freeze_target *target, struct tree *tree, struct err *e)
{
	struct freezer f = {.target = target, .tree = tree};

	memset(tree, 0, sizeof(*tree));
	add_process(&f, target->root, 0);
	if (freeze_all(&f, e) || drain(&f, e))
		goto out_thaw;
	if (frozen_read(tree, target->root, e))
		goto out_thaw;
	return 0;

out_thaw:
	for (size_t i = 0; i < tree->count; i++)
		for (size_t k = 0; k < tree->processes[i]->thread_count; k++)
			syscall_go_on(&tree->processes[i]->threads[k]);
	/* The first error is the one to tell. */
	thaw(tree, NULL);
	return -1;
}

/* The thread that @freezer tries to attach to and has to wait for; 0: it does not. */
static pid_t blocked_on(pid_t freezer)
{
	cleanup_free char *path = xasprintf("/proc/self/task/%d/syscall", freezer);
	cleanup_free char *text = NULL;
	unsigned long tid;
	size_t len;
	long nr;

	/* Number and arguments of a system call, or "running". */
	if (read_file(path, &text, &len, NULL) || sscanf(text, "%ld %*x %lx", &nr, &tid) != 2 ||
		nr != SYS_ptrace)
		return 0;
	return tid;
}

void freeze_unblock(pid_t freezer)
{
	pid_t tid = blocked_on(freezer);
	cleanup_free char *status = tid ? procfs_status(tid, tid, NULL) : NULL;
	pid_t pid = status ? (pid_t)status_number(status, "Tgid", 10) : 0;
	cleanup_free pid_t *tids = NULL;
	size_t count;

	if (!pid || procfs_tasks(pid, &tids, &count, NULL))
		return;
	/* Not the main thread: its end is the process's, and in nobody's way. */
	for (size_t i = 0; i < count; i++)
		if (tids[i] != pid && !task_alive(pid, tids[i]))
			(void)waitpid(tids[i], NULL, __WALL | WNOHANG);
}
