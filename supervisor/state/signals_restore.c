/*
 * What signals do, and pending signals, into the plan of a new process. The mask of
 * a thread is set from outside, with its registers (restore/registers_restore.c): until then
 * all signals are blocked.
 */
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "supervisor/state/restore_plan.h"

bool restore_signal_is_of_fault(const siginfo_t *info)
{
	switch (info->si_signo) {
	case SIGSEGV:
	case SIGBUS:
	case SIGILL:
	case SIGTRAP:
	case SIGFPE:
	case SIGSYS:
		return info->si_code > SI_USER;
	default:
		return false;
	}
}

/* Those are queued with the registers: queue_held_signals() in restore/registers_restore.c. */
bool restore_signal_is_held(const struct image_pending *pending)
{
	siginfo_t info;

	memcpy(&info, pending->siginfo, sizeof(info));
	return info.si_signo == SIGTRAP || info.si_signo == SIGCONT ||
	       restore_signal_is_of_fault(&info);
}

/* execve(2) leaves each signal's default, or that it is ignored, which the first trap ends for SIGTRAP (force_sig() in
 * kernel/signal.c). */
static bool is_as_executed(const struct restore_plan *p, const struct image_sigaction *sa)
{
	return !p->stays && !sa->handler && !sa->flags && !sa->restorer && !sa->mask;
}

void restore_plan_signals(struct restore_plan *p)
{
	const struct image_sigaction *sa;
	size_t count;

	sa = image_note_array(p->img, IMAGE_NOTE_SIGACTIONS, struct image_sigaction, &count);
	for (size_t i = 0; i < count; i++) {
		int signo = i + 1;

		/* SIGTRAP ends the batch: restore/registers_restore.c sets it at last. */
		if (signo == SIGTRAP && !is_as_executed(p, &sa[i]))
			p->trap_action = plan_data(&p->plan, &sa[i], sizeof(sa[i]));
		if (signo == SIGKILL || signo == SIGSTOP || signo == SIGTRAP)
			continue;
		BATCH_ADD(&p->rest, "set a signal's action", SYS_rt_sigaction, signo,
			plan_data(&p->plan, &sa[i], sizeof(sa[i])), 0, 8);
	}
}

void restore_plan_pending(struct restore_plan *p, struct batch_builder *b, int32_t tid)
{
	const struct image_pending *pending;
	size_t count;

	/* How many a user may have waiting counts the program's own as well, which is still
	 * there. */
	if (p->trial)
		return;
	pending = image_note_array(p->img, IMAGE_NOTE_PENDING, struct image_pending, &count);
	for (size_t i = 0; i < count; i++) {
		const struct image_timer *timer;
		uint64_t info;
		int signo;

		memcpy(&signo, pending[i].siginfo, sizeof(signo));
		if (pending[i].tid != tid || restore_signal_is_held(&pending[i]))
			continue;
		timer = restore_pending_timer(p, &pending[i]);
		if (timer && timer->interval_ns)
			continue;
		info = plan_data(&p->plan, pending[i].siginfo, sizeof(pending[i].siginfo));
		if (tid)
			BATCH_ADD(b, "queue a signal", SYS_rt_tgsigqueueinfo, p->ip->pid, tid,
				signo, info);
		else
			BATCH_ADD(b, "queue a signal", SYS_rt_sigqueueinfo, p->ip->pid, signo,
				info);
	}
}
