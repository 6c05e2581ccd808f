/*
 * In a new process: a restart block is built by entering the call, and interrupting it.
 */
#include <errno.h>
#include <sched.h>

#include "ckpt/image.h"
#include "lib/util.h"
#include "supervisor/syscall/blocking.h"
#include "supervisor/syscall/restart.h"
#include "supervisor/target/x86_64.h"

/* Until the thread sleeps in @nr, or a while has passed. */
static bool wait_until_asleep(pid_t pid, pid_t tid, long nr)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + SETTLE_NS;
	struct user_regs_struct regs;

	do {
		if (blocked_in_call(pid, tid, &regs) && x86_64_syscall_number(&regs) == nr)
			return true;
		sched_yield();
	} while (clock_ns(CLOCK_MONOTONIC) < deadline);
	return false;
}

/* The thread has come out of its call: with its result it goes on. */
static int call_ended(struct thread *t, const struct user_regs_struct *regs)
{
	x86_64_end_syscall(&t->regs, x86_64_result(regs));
	return 0;
}

/* In a trap stop: was the call interrupted, or did it end just then? */
static int call_stopped(struct thread *t, uint64_t instruction, struct err *e)
{
	struct user_regs_struct regs;

	if (tracee_get_regs(&t->tracee, &regs, e))
		return -1;
	if (!x86_64_in_syscall(&regs) || x86_64_pc(&regs) != instruction + 2)
		return 0; /* its end has been seen at the int3 */
	if (x86_64_result(&regs) == -ERESTART_RESTARTBLOCK)
		return 0;
	return call_ended(t, &regs);
}

int syscall_build_restart_block(struct process *p, struct thread *t, uint64_t instruction,
	uint64_t scratch, struct err *e)
{
	long nr = x86_64_syscall_number(&t->regs);
	const struct blocking_call *call = blocking_call(nr);
	struct user_regs_struct regs = t->regs;
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + 5 * NS_PER_S;
	struct tracee_report report;
	struct timespec ts;
	uint64_t args[6];

	if (!call)
		return err_set(
			e, 0, "the image holds a thread in system call %ld, unknown here", nr);
	for (int i = 0; i < 6; i++)
		args[i] = x86_64_syscall_arg(&t->regs, i);
	if (t->syscall_left_ns != IMAGE_SYSCALL_FOREVER) {
		ts = blocking_timespec(t->syscall_left_ns);
		args[call->argument] = blocking_timeout(call, &t->regs) == TIMEOUT_MS
					       ? blocking_ms(t->syscall_left_ns)
					       : scratch;
	}
	x86_64_set_syscall(&regs, instruction, nr, args);
	if (t->syscall_left_ns != IMAGE_SYSCALL_FOREVER &&
		tracee_write(p->mem_fd, scratch, &ts, sizeof(ts), e))
		return -1;
	if (tracee_set_regs(&t->tracee, &regs, e) || tracee_continue(&t->tracee, 0, e))
		return -1;
	(void)wait_until_asleep(p->pid, t->tracee.tid, nr);
	if (tracee_interrupt(&t->tracee, e))
		return -1;
	for (;;) {
		if (tracee_wait(&t->tracee, deadline, &report, e))
			return -1;
		switch (report.event) {
		case TRACEE_EVENT_TRAP:
			return call_stopped(t, instruction, e);
		case TRACEE_EVENT_SIGNAL: /* the int3; the interruption is still to come */
			if (tracee_get_regs(&t->tracee, &regs, e) || call_ended(t, &regs) ||
				tracee_interrupt(&t->tracee, e) ||
				tracee_continue(&t->tracee, 0, e))
				return -1;
			break;
		default:
			return err_set(e, 0, "thread %d cannot enter its system call %ld again",
				t->vtid, nr);
		}
	}
}
