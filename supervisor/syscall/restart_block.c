/*
 * In a new process: a restart block is built by entering the call, and interrupting it.
 */
#include <errno.h>
#include <sched.h>

#include "ckpt/image.h"
#include "lib/util.h"
#include "supervisor/syscall/blocking.h"
#include "supervisor/syscall/interrupted_call.h"
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

/* What a thread does that was sent into its call at `instruction`, behind which there is an
 * int3. */
struct entered {
	struct process *p;
	struct thread *t;
	long nr;
	uint64_t instruction;
	bool ended; /* the call, and its result is in t->regs */
};

/* The thread resumes with its result. */
static void end_call(struct entered *c, const struct user_regs_struct *regs)
{
	if (!c->ended)
		x86_64_end_syscall(&c->t->regs, x86_64_result(regs));
	c->ended = true;
}

static int interrupt_asleep(const struct entered *c, struct err *e)
{
	(void)wait_until_asleep(c->p->pid, c->t->tracee.tid, c->nr);
	return tracee_interrupt(&c->t->tracee, e);
}

/* It has been interrupted, anywhere. 1: that is all. */
static int call_interrupted(struct entered *c, struct err *e)
{
	struct tracee *tracee = &c->t->tracee;
	struct user_regs_struct regs;
	uint64_t pc;

	if (c->ended)
		return 1;
	if (tracee_get_regs(tracee, &regs, e))
		return -1;
	pc = x86_64_pc(&regs);
	if (pc == c->instruction) /* it has not come to run yet */
		return tracee_continue(tracee, 0, e) ? -1 : interrupt_asleep(c, e);
	if (pc != c->instruction + 2) /* behind the int3, whose signal is still to come */
		return tracee_continue(tracee, 0, e);
	if (!x86_64_in_syscall(&regs) || x86_64_result(&regs) != -ERESTART_RESTARTBLOCK)
		end_call(c, &regs);
	return 1;
}

/* At the int3. The interruption is still to come. */
static int call_trapped(struct entered *c, struct err *e)
{
	struct user_regs_struct regs;

	if (tracee_get_regs(&c->t->tracee, &regs, e))
		return -1;
	end_call(c, &regs);
	return tracee_interrupt(&c->t->tracee, e) || tracee_continue(&c->t->tracee, 0, e) ? -1
											  : 0;
}

static int follow_call(struct entered *c, struct err *e)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + 5 * NS_PER_S;
	struct tracee_report report;
	int r = 0;

	while (!r) {
		if (tracee_wait(&c->t->tracee, deadline, &report, e))
			return -1;
		if (report.event == TRACEE_EVENT_TRAP)
			r = call_interrupted(c, e);
		else if (report.event == TRACEE_EVENT_SIGNAL)
			r = call_trapped(c, e);
		else
			return err_set(e, 0,
				"cannot let thread %d enter its system call %ld again",
				c->t->vtid, c->nr);
	}
	return r < 0 ? -1 : 0;
}

int syscall_build_restart_block(struct process *p, struct thread *t, uint64_t instruction,
	uint64_t scratch, struct err *e)
{
	long nr = x86_64_syscall_number(&t->regs);
	const struct blocking_call *call = blocking_call(nr);
	struct user_regs_struct regs = t->regs;
	struct entered c = {p, t, nr, instruction, false};
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
	return interrupt_asleep(&c, e) ? -1 : follow_call(&c, e);
}
