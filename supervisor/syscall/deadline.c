/*
 * deadline.c - the times in the arguments of such a call, moved by the jump of its clock.
 */
#include "supervisor/syscall/deadline.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include "supervisor/syscall/blocking.h"
#include "supervisor/target/x86_64.h"

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_futex_wait
#define SYS_futex_wait 455
#endif

/* A clock that does not jump. */
#define NO_CLOCK CLOCK_REALTIME

/* Where the calls take their clock from; returns that clock, and the argument that points to
 * the time. */
static int futex_clock(const struct user_regs_struct *regs, int *argument)
{
	int op = x86_64_syscall_arg(regs, 1);

	*argument = 3;
	switch (op & FUTEX_CMD_MASK) {
	case FUTEX_WAIT_BITSET:
	case FUTEX_WAIT_REQUEUE_PI:
	case FUTEX_LOCK_PI2:
		return op & FUTEX_CLOCK_REALTIME ? NO_CLOCK : CLOCK_MONOTONIC;
	default:
		return NO_CLOCK;
	}
}

static int deadline_clock(const struct user_regs_struct *regs, int *argument)
{
	switch (x86_64_syscall_number(regs)) {
	case SYS_clock_nanosleep:
		*argument = 2;
		return x86_64_syscall_arg(regs, 1) & TIMER_ABSTIME
			       ? (int)x86_64_syscall_arg(regs, 0)
			       : NO_CLOCK;
	case SYS_futex:
		return futex_clock(regs, argument);
	case SYS_futex_waitv:
		*argument = 3;
		return x86_64_syscall_arg(regs, 4);
	case SYS_futex_wait:
		*argument = 4;
		return x86_64_syscall_arg(regs, 5);
	default:
		return NO_CLOCK;
	}
}

static bool is_entered_again(const struct user_regs_struct *regs)
{
	int64_t result = -x86_64_result(regs);

	return x86_64_in_syscall(regs) &&
	       (result == ERESTARTSYS || result == ERESTARTNOINTR || result == ERESTARTNOHAND);
}

static bool was_moved(const struct buf *moved, const struct moved_deadline *d)
{
	for (size_t i = 0; i < buf_count(moved, struct moved_deadline); i++) {
		const struct moved_deadline *m = buf_at(moved, struct moved_deadline, i);

		if (m->memory == d->memory && m->address == d->address)
			return true;
	}
	return false;
}

static struct timespec move_time(struct timespec t, int64_t by)
{
	t.tv_sec += by / (int64_t)NS_PER_S;
	t.tv_nsec += by % (int64_t)NS_PER_S;
	if (t.tv_nsec < 0) {
		t.tv_sec--;
		t.tv_nsec += NS_PER_S;
	} else if (t.tv_nsec >= (long)NS_PER_S) {
		t.tv_sec++;
		t.tv_nsec -= NS_PER_S;
	}
	if (t.tv_sec < 0)
		t = (struct timespec){0};
	return t;
}

int syscall_move_deadline(const struct process *p, const struct thread *t, const void *memory,
	const struct clock_shifts *leap, struct buf *moved, struct err *e)
{
	struct moved_deadline d = {.memory = memory};
	struct timespec ts;
	int64_t by;
	int argument;

	if (!is_entered_again(&t->regs))
		return 0;
	by = clocks_shift(leap, deadline_clock(&t->regs, &argument));
	if (!by)
		return 0;
	d.address = x86_64_syscall_arg(&t->regs, argument);
	if (!d.address || was_moved(moved, &d))
		return 0;
	if (tracee_read(p->mem_fd, d.address, &ts, sizeof(ts), e))
		return err_prefix(e, "cannot read a time-out of process %d", p->vpid);
	/* A time that no clock will ever come to. */
	if (ts.tv_sec < 0 || ts.tv_sec > INT64_MAX / (int64_t)NS_PER_S / 2)
		return 0;
	ts = move_time(ts, by);
	if (tracee_write(p->mem_fd, d.address, &ts, sizeof(ts), e))
		return err_prefix(e, "cannot move a time-out of process %d", p->vpid);
	buf_push(moved, struct moved_deadline, &d);
	return 0;
}
