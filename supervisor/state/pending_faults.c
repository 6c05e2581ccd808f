/*
 * pending_faults.c - the thread executes the instruction again and is stopped before the
 * signal is delivered: the kernel has then noted of the fault what it keeps beside the signal.
 */
#include "supervisor/state/pending_faults.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Whether the program may write to @address: then another thread has put right what was wrong,
 * and the instruction would do what it is to do after the handler only. */
static bool is_writable(const struct image *img, uint64_t address)
{
	const struct image_region *region;
	size_t count;

	region = image_note_array(img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++)
		if (address >= region[i].start && address < region[i].end)
			return region[i].prot & PROT_WRITE;
	return false;
}

/* The instruction that it stands at makes the fault, and makes it again. Not so with SIGTRAP
 * and SIGSYS, behind whose instructions it stands, and with what the kernel itself has found.
 */
static bool can_be_made_again(const struct new_process *np, const siginfo_t *info)
{
	if (!restore_signal_is_of_fault(info) || info->si_code == SI_KERNEL ||
		info->si_signo == SIGTRAP || info->si_signo == SIGSYS)
		return false;
	return info->si_signo != SIGSEGV || !is_writable(np->img, (uintptr_t)info->si_addr);
}

static bool find_fault(const struct new_process *np, int32_t tid, siginfo_t *info)
{
	const struct image_pending *pending;
	size_t count;

	pending = image_note_array(np->img, IMAGE_NOTE_PENDING, struct image_pending, &count);
	for (size_t i = 0; i < count; i++) {
		memcpy(info, pending[i].siginfo, sizeof(*info));
		if (pending[i].tid == tid && can_be_made_again(np, info))
			return true;
	}
	return false;
}

static int wait_for(struct new_process *np, struct tracee *t, enum tracee_event want)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + EXEC_PATIENCE_NS;
	struct tracee_report report;

	if (tracee_wait(t, deadline, &report, np->e))
		return -1;
	return report.event == want
		       ? 0
		       : err_set(np->e, 0, "thread %d cannot repeat its fault", t->tid);
}

int restore_fault_again(struct new_process *np, size_t i, bool *ran)
{
	struct tracee *t = &np->process.threads[i].tracee;
	siginfo_t info;
	uint64_t mask;

	*ran = false;
	if (!find_fault(np, np->threads[i].tid, &info))
		return 0;
	/* Neither signal may be blocked: the kernel would take their actions away. The second
	 * comes from the step, where it makes no fault. All others wait. */
	if (tracee_get_sigmask(t, &mask, np->e) ||
		tracee_set_sigmask(
			t, ~(1ull << (info.si_signo - 1) | 1ull << (SIGTRAP - 1)), np->e) ||
		tracee_step(t, np->e) || wait_for(np, t, TRACEE_EVENT_SIGNAL))
		return -1;
	*ran = true;
	/* Without that signal, and back into a trap stop before it does anything else. */
	if (tracee_interrupt(t, np->e) || tracee_continue(t, 0, np->e) ||
		wait_for(np, t, TRACEE_EVENT_TRAP))
		return -1;
	return tracee_set_sigmask(t, mask, np->e);
}
