/*
 * Seized threads are brought to a stop, whatever they are about.
 */
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/syscall/blocking.h"
#include "supervisor/target/x86_64.h"
#include "supervisor/tree/freeze_private.h"

/* How long a thread may take to stop before it is asked what it waits for. */
#define STOP_SLICE_NS 2000000ull

/* Let a child that shares its parent's memory run until it no longer does: it executes a
 * program, or ends. */
static int run_to_exec(struct freezer *f, struct process *child, struct err *e)
{
	struct tracee_report report;
	struct thread *t;
	int r = 0;

	if (!freezer_find_thread(child, child->pid))
		r = freezer_attach(f, child, child->pid, e);
	if (r)
		return r < 0 ? -1 : 0;
	t = freezer_find_thread(child, child->pid);
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

static int end_vfork_of(struct freezer *f, pid_t pid, pid_t parent, struct err *e)
{
	struct process *child = tree_find(f->tree, pid);

	if (!child)
		child = freezer_add_process(f, pid, parent);
	return run_to_exec(f, child, e);
}

static bool is_in_clone(pid_t pid, pid_t tid)
{
	struct user_regs_struct regs;
	long nr = blocked_in_call(pid, tid, &regs) ? x86_64_syscall_number(&regs) : -1;

	return nr == SYS_clone || nr == SYS_clone3 || nr == SYS_vfork;
}

/* A thread in vfork(2) cannot be stopped before its child has let go of its memory; or, with
 * CLONE_VFORK alone, of the copy of its own, which the child has that was made last. */
static int end_vfork(struct freezer *f, struct thread *t, struct err *e)
{
	cleanup_free pid_t *pids = NULL, *own = NULL;
	pid_t pid = t->tracee.pid, tid = t->tracee.tid;
	bool shared = false;
	struct proc_stat st;
	size_t count;

	if (procfs_stat(pid, tid, &st, NULL) || st.state != 'D' ||
		procfs_children(pid, &pids, &count, NULL))
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (syscall(SYS_kcmp, tid, pids[i], KCMP_VM, 0L, 0L))
			continue;
		shared = true;
		if (end_vfork_of(f, pids[i], pid, e))
			return -1;
	}
	if (shared || !is_in_clone(pid, tid))
		return 0;
	if (procfs_thread_children(pid, tid, &own, &count, NULL) || !count)
		return 0;
	return end_vfork_of(f, own[count - 1], pid, e);
}

int freezer_recheck(struct freezer *f, struct thread *t, struct err *e)
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
		if (freezer_recheck(f, &p->threads[i], e))
			return -1;
	return 0;
}

/* Nothing from @t for a while. A thread that executes a program waits for the ends of all
 * others, and these for us to take note. */
int freezer_nothing_heard(struct freezer *f, struct process *p, struct thread *t, struct err *e)
{
	if (recheck_all(f, p, e))
		return -1;
	if (!freezer_task_alive(t->tracee.pid, t->tracee.tid)) {
		t->tracee.state = TRACEE_GONE;
		return 0;
	}
	if (clock_ns(CLOCK_MONOTONIC) < f->target->deadline_ns)
		return end_vfork(f, t, e);
	return err_set(e, 0,
		"cannot stop thread %d of process %d in time: it does not leave the kernel, "
		"as when it waits for a disk; try again later",
		t->tracee.tid, t->tracee.pid);
}

static uint64_t next_look(const struct freezer *f)
{
	uint64_t at = clock_ns(CLOCK_MONOTONIC) + STOP_SLICE_NS;

	return at < f->target->deadline_ns ? at : f->target->deadline_ns;
}

int freezer_stop_thread(struct freezer *f, struct process *p, struct thread *t, struct err *e)
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
			if (freezer_nothing_heard(f, p, t, e))
				return -1;
			break;
		default:
			if (report.event == TRACEE_EVENT_NEW)
				f->found_new = true;
			/* Any stop also consumes a requested interrupt (PTRACE_INTERRUPT). */
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
