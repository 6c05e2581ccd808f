/*
 * A process that is merely sent SIGSTOP and let go would handle other pending signals
 * first, which may end it; its parent would get another SIGCHLD, and a second report of the stop, or
 * one with the wrong signal. So it is stopped while it is traced, with all other signals blocked;
 * then the parent itself waits for the reports that it had waited for before.
 */
#include "supervisor/state/stopped_processes.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "supervisor/target/remote.h"

#define PATIENCE_NS 10000000000ull

/* Resume @t with @signal, until @event. */
static int continue_until(struct tracee *t, int signal, enum tracee_event event, struct err *e)
{
	struct tracee_report report;

	if (tracee_continue(t, signal, e) ||
		tracee_wait(t, clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS, &report, e))
		return -1;
	return report.event == event ? 0 : err_set(e, 0, "thread %d cannot be stopped", t->tid);
}

/* Deliver @signal to @t, which is in a trap stop, so that its process stops. Some signals do not stop
 * a process, such as SIGTTIN in an orphaned group (get_signal(), kernel/signal.c): for these an
 * interrupt is requested, too, and @t is in a trap stop again before it runs any of the program. */
static int stop_by_signal(struct tracee *t, int signal, struct err *e)
{
	if (tgkill(t->pid, t->tid, SIGSTOP))
		return err_set(e, errno, "cannot send a signal to thread %d", t->tid);
	if (tracee_set_sigmask(t, ~0ull, e) || continue_until(t, 0, TRACEE_EVENT_SIGNAL, e) ||
		tracee_set_sigmask(t, ~(1ull << (signal - 1)), e) || tracee_interrupt(t, e))
		return -1;
	return continue_until(t, signal, TRACEE_EVENT_TRAP, e);
}

static int stop_first(struct tracee *t, int signal, struct err *e)
{
	uint64_t mask;

	if (tracee_get_sigmask(t, &mask, e) || stop_by_signal(t, signal, e) ||
		(!t->group_stopped && stop_by_signal(t, SIGSTOP, e)))
		return -1;
	if (!t->group_stopped)
		return err_set(e, 0, "process %d does not stop", t->pid);
	return tracee_set_sigmask(t, mask, e);
}

/* The first thread that lives. */
static struct thread *first_thread(struct new_process *np)
{
	struct thread *t = np->process.threads;

	return t->tracee.state == TRACEE_GONE ? t + 1 : t;
}

static int stop_process(struct new_process *np, int signal, struct err *e)
{
	struct thread *first = first_thread(np);

	if (stop_first(&first->tracee, signal, e))
		return -1;
	/* They take part in the stop before they look at any signal. */
	for (struct thread *t = first + 1; t < np->process.threads + np->thread_count; t++)
		if (continue_until(&t->tracee, 0, TRACEE_EVENT_TRAP, e))
			return -1;
	return 0;
}

/* ---- signals that only we have caused ---- */

static bool was_pending(const struct new_process *np, int signal)
{
	const struct image_pending *pending;
	size_t count;

	pending = image_note_array(np->img, IMAGE_NOTE_PENDING, struct image_pending, &count);
	for (size_t i = 0; i < count; i++) {
		siginfo_t info;

		memcpy(&info, pending[i].siginfo, sizeof(info));
		if (info.si_signo == signal)
			return true;
	}
	return false;
}

/* EAGAIN: no signal is pending, as the parent has set SA_NOCLDSTOP. */
static int dequeue_signal(const struct new_process *np, struct remote *remote, uint64_t scratch,
	int signal, struct err *e)
{
	struct {
		uint64_t set;
		struct timespec now;
	} arg = {.set = 1ull << (signal - 1)};
	int64_t result;

	if (was_pending(np, signal))
		return 0;
	if (tracee_write(remote->process->mem_fd, scratch, &arg, sizeof(arg), e) ||
		REMOTE_CALL(remote, &result, e, SYS_rt_sigtimedwait, scratch, 0,
			scratch + sizeof(arg.set), sizeof(arg.set)))
		return -1;
	return result > 0 || result == -EAGAIN
		       ? 0
		       : err_set(e, -result, "cannot take a signal out of process %d",
				 remote->process->pid);
}

/* Let process @np lose what the new stop of its child has brought it: it waits for the report of
 * @child (0: it keeps that), and @signal is no longer pending. */
static int take_report(struct new_process *np, pid_t child, int signal, struct err *e)
{
	struct remote remote;
	uint64_t scratch;
	int64_t result;
	int failed;

	if (remote_begin(&remote, &np->process, first_thread(np), e))
		return -1;
	scratch = remote_scratch(&remote, 4096, e);
	failed = !scratch ||
		 (child && REMOTE_CALL(&remote, &result, e, SYS_waitid, P_PID, child, 0,
				   WSTOPPED | WNOHANG | __WALL, 0)) ||
		 dequeue_signal(np, &remote, scratch, signal, e);
	if (remote_end(&remote, failed ? NULL : e))
		return -1;
	return failed;
}

/* ---- all of them ---- */

static struct new_process *parent_of(
	struct new_process *all, size_t count, const struct image_job_process *entry)
{
	for (size_t i = 0; entry->ppid && i < count; i++)
		if (all[i].process.vpid == entry->ppid)
			return &all[i];
	return NULL;
}

/* It has been stopped and continued, and its parent has not waited for that. */
static int stop_and_continue(struct new_process *np, struct new_process *parent, struct err *e)
{
	if (stop_process(np, SIGSTOP, e))
		return -1;
	if (kill(np->process.pid, SIGCONT))
		return err_set(e, errno, "cannot continue process %d", np->process.pid);
	return take_report(np, 0, SIGCONT, e) || take_report(parent, 0, SIGCHLD, e) ? -1 : 0;
}

static int stop_again(struct new_process *np, struct new_process *parent,
	const struct image_job_process *entry, struct err *e)
{
	bool stopped = entry->flags & IMAGE_JOB_PROCESS_STOPPED;
	bool told = stopped && !(entry->flags & IMAGE_JOB_PROCESS_UNTOLD);

	/* If the checkpoint itself has stopped it, no parent has had a report. */
	if (stop_process(np, stopped ? WSTOPSIG(entry->status) : SIGSTOP, e))
		return -1;
	return parent && stopped ? take_report(parent, told ? np->process.vpid : 0, SIGCHLD, e)
				 : 0;
}

int restore_stops(struct new_process *all, size_t count, const struct image_job_process *list,
	struct err *e)
{
	for (size_t i = 0; i < count; i++) {
		struct new_process *parent = parent_of(all, count, &list[i]);
		int failed = 0;

		if (all[i].ip->flags & IMAGE_PROCESS_STOPPED)
			failed = stop_again(&all[i], parent, &list[i], e);
		else if (parent && list[i].flags & IMAGE_JOB_PROCESS_CONTINUED)
			failed = stop_and_continue(&all[i], parent, e);
		if (failed)
			return err_prefix(e, "cannot stop process %d (%s) again",
				all[i].process.vpid, all[i].process.comm);
	}
	return 0;
}
