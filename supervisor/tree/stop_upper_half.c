/*
 * A process with a lower half is stopped where no thread is inside of that
 * (doc/split-process.md).
 */
#include <time.h>

#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/split/lower_half.h"
#include "supervisor/syscall/interrupted_call.h"
#include "supervisor/tree/freeze_private.h"

/* How often threads that did not stop outside of it are asked again. */
#define AGAIN_NS 2000000ull

/* Whether another thread is inside. */
static bool is_waited_for(const struct process *p, const struct thread *t)
{
	for (size_t k = 0; k < p->thread_count; k++)
		if (&p->threads[k] != t && p->threads[k].in_lower_half &&
			p->threads[k].tracee.state == TRACEE_RUNNING)
			return true;
	return false;
}

/* @t is in a trap stop. A thread inside may wait, by way of the GPU, for what it does: then it
 * runs on. Not if it has been inside: somebody would be there at any time. */
static int look_at(struct freezer *f, struct process *p, struct thread *t, struct err *e)
{
	enum lower_verdict verdict;

	if (lower_judge(p, t, &verdict, e))
		return -1;
	t->let_run = f->target->gpu_wait->let_run && verdict == LOWER_FROZEN && !t->came_out &&
		     !t->tracee.group_stopped && is_waited_for(p, t);
	if (!t->let_run)
		return 0;
	syscall_undo_eintr(t);
	syscall_note_restart(t);
	return tracee_continue(&t->tracee, 0, e);
}

/* Handle the next report of @t, if there is one, which *heard says. */
static int handle_report(
	struct freezer *f, struct process *p, struct thread *t, bool *heard, struct err *e)
{
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
		return look_at(f, p, t, e);
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
	if (t->in_lower_half)
		return tracee_continue_to_syscall(&t->tracee, signal, e);
	if (t->let_run)
		return tracee_continue(&t->tracee, signal, e);
	/* Any stop also consumes a requested interrupt (PTRACE_INTERRUPT). */
	return tracee_interrupt(&t->tracee, e) || tracee_continue(&t->tracee, signal, e) ? -1
											 : 0;
}

static bool is_to_be_stopped(const struct process *p, const struct thread *t)
{
	return t->tracee.state == TRACEE_RUNNING && !(t->helper && !p->lower->drained);
}

/* A signal stops threads of the lower half, too, and a thread that waits for them there does
 * not come out. */
static bool is_stopped_in_lower_half(const struct process *p)
{
	struct proc_stat st;

	for (size_t i = 0; i < buf_count(&p->lower->tids, pid_t); i++)
		if (!procfs_stat(p->pid, *buf_at(&p->lower->tids, pid_t, i), &st, NULL) &&
			st.state == 'T')
			return true;
	return false;
}

int freezer_refuse_stopped(const struct process *p, struct err *e)
{
	return err_set(e, 0,
		"process %d is stopped by a signal, and with it its threads that serve the "
		"GPU: send it SIGCONT first",
		p->pid);
}

/* Nothing was heard of threads that still run. */
static int wait_for_some(struct freezer *f, struct process *p, uint64_t *again, struct err *e)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	cleanup_free pid_t *tids = NULL;
	size_t count;

	if (now < *again) {
		tracee_pause(*again);
		return 0;
	}
	if (is_stopped_in_lower_half(p))
		return freezer_refuse_stopped(p, e);
	*again = now + AGAIN_NS;
	/* Its threads may wait for a thread that the lower half has created meanwhile. */
	if (freezer_seize_threads(f, p, &tids, &count, e))
		return -1;
	for (size_t k = 0; k < p->thread_count; k++) {
		struct thread *t = &p->threads[k];

		if (!is_to_be_stopped(p, t))
			continue;
		/* Before it is interrupted again, note how long it has slept. */
		if (t->let_run && is_waited_for(p, t))
			continue;
		if (t->let_run)
			syscall_before_freeze(t);
		t->let_run = false;
		if (freezer_nothing_heard(f, p, t, e))
			return -1;
		if (t->tracee.state == TRACEE_RUNNING && tracee_interrupt(&t->tracee, e) &&
			t->tracee.state != TRACEE_GONE)
			return -1;
	}
	return 0;
}

/* A thread that has been inside for longer than that may wait for what stands still. */
static int check_gpu_wait(
	struct freezer *f, const struct process *p, uint64_t began, struct err *e)
{
	struct gpu_wait *gpu_wait = f->target->gpu_wait;

	if (clock_ns(CLOCK_MONOTONIC) - began < gpu_wait->ns)
		return 0;
	for (size_t k = 0; k < p->thread_count; k++) {
		const struct thread *t = &p->threads[k];

		if (t->tracee.state != TRACEE_RUNNING || !t->in_lower_half)
			continue;
		gpu_wait->restless = p->pid;
		gpu_wait->in_driver = true;
		return err_set(e, 0,
			"thread %d of process %d is in a call of the GPU driver, or of MPI, "
			"that does not finish: it takes long, or waits for something that the "
			"program would do",
			t->tracee.tid, p->pid);
	}
	return 0;
}

/* A thread may wait in the lower half for another that has stopped already but has not been looked
 * at: so all threads are looked at in turn until the last one has left the lower half. */
int freezer_stop_above(struct freezer *f, struct process *p, struct err *e)
{
	uint64_t began = clock_ns(CLOCK_MONOTONIC), again = began + AGAIN_NS;
	bool running;

	do {
		bool heard = false;

		running = false;
		for (size_t k = 0; k < p->thread_count; k++) {
			struct thread *t = &p->threads[k];

			if (t->tracee.state == TRACEE_RUNNING &&
				handle_report(f, p, t, &heard, e) &&
				t->tracee.state != TRACEE_GONE)
				return -1;
			running |= is_to_be_stopped(p, t);
		}
		if (running && (check_gpu_wait(f, p, began, e) ||
				       (!heard && wait_for_some(f, p, &again, e))))
			return -1;
	} while (running);
	return 0;
}
