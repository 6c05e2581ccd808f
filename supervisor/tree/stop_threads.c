/*
 * Seized threads are brought to a stop, whatever they are doing.
 */
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/tree/freeze_private.h"

/* How long a thread may take to stop before it is asked what it waits for. */
#define STOP_SLICE_NS 2000000ull

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

/* Both lists are in the order in which threads have been made, but for a main thread that was found late. */
static bool is_listed(pid_t tid, const pid_t *tids, size_t count, size_t *at)
{
	for (size_t i = 0; i < count; i++, *at = (*at + 1) % count)
		if (tids[*at] == tid)
			return true;
	return false;
}

int freezer_recheck_missing(
	struct freezer *f, struct process *p, const pid_t *tids, size_t count, struct err *e)
{
	size_t at = 0;

	for (size_t i = 0; i < p->thread_count; i++) {
		struct thread *t = &p->threads[i];

		if (is_listed(t->tracee.tid, tids, count, &at))
			continue;
		if (freezer_recheck(f, t, e))
			return -1;
		/* Something of the process ran. */
		f->found_new |= t->tracee.state == TRACEE_GONE;
	}
	return 0;
}

static int recheck_all(struct freezer *f, struct process *p, struct err *e)
{
	for (size_t i = 0; i < p->thread_count; i++)
		if (freezer_recheck(f, &p->threads[i], e))
			return -1;
	return 0;
}

/* Threads that we do not know yet, and that have ended: made, and traced from their creation, while the process was
 * looked at. */
static void take_note_of_ends(struct process *p, const struct thread *t)
{
	cleanup_free pid_t *tids = NULL;
	struct proc_stat st;
	size_t count;

	if (procfs_stat(p->pid, t->tracee.tid, &st, NULL) || st.state != 'D' ||
		procfs_tasks(p->pid, &tids, &count, NULL))
		return;
	for (size_t i = 0; i < count; i++) {
		siginfo_t info;

		if (tids[i] != p->pid && !freezer_find_thread(p, tids[i]))
			(void)waitid(P_PID, tids[i], &info, WEXITED | WNOHANG | __WALL);
	}
}

/* Few calls take that long without minding signals: a thread that sleeps does so where no signal wakes it, and
 * a thread that runs has much to do there (seen with 32 processes that map memory with MAP_POPULATE). */
static int fail_to_stop(const struct tracee *t, struct err *e)
{
	struct proc_stat st;
	bool runs = !procfs_stat(t->pid, t->tid, &st, NULL) && st.state == 'R';

	return err_set(e, 0, "cannot stop thread %d of process %d in time: %s; try again later",
		t->tid, t->pid,
		runs ? "it is busy in a system call, as when much memory is mapped with "
		       "MAP_POPULATE, or other programs keep the processors from it"
		     : "it does not leave the kernel, as when it waits for a disk");
}

/* Nothing from @t for a while. A thread that executes a program waits for the ends of all
 * others, and these for us to take note. */
int freezer_nothing_heard(struct freezer *f, struct process *p, struct thread *t, struct err *e)
{
	if (recheck_all(f, p, e))
		return -1;
	take_note_of_ends(p, t);
	if (!freezer_task_alive(t->tracee.pid, t->tracee.tid)) {
		t->tracee.state = TRACEE_GONE;
		return 0;
	}
	if (clock_ns(CLOCK_MONOTONIC) < f->target->deadline_ns)
		return freezer_end_vfork(f, t, e);
	return fail_to_stop(&t->tracee, e);
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
