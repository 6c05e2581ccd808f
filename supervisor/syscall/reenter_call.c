/*
 * In the same process: a call that a stop has ended is entered again, with what was left of its
 * time-out.
 */
#include <errno.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ckpt/image.h"
#include "lib/util.h"
#include "supervisor/syscall/blocking.h"
#include "supervisor/syscall/interrupted_call.h"
#include "supervisor/target/x86_64.h"

/* A time-out of a call that is being entered, while what is left stands in its place. */
struct shortened {
	enum timeout kind;
	int argument;
	uint64_t value; /* of the argument */
	int socket;     /* borrowed */
	struct timespec whole;
	struct timeval socket_whole;
};

static int shorten_socket(
	const struct process *p, struct thread *t, struct shortened *s, struct err *e)
{
	struct timeval left = {
		t->syscall_left_ns / NS_PER_S, t->syscall_left_ns % NS_PER_S / 1000};
	int option = blocking_socket_option(s->kind);
	socklen_t size = sizeof(s->socket_whole);

	/* All 0 would be for ever. */
	left.tv_usec += !left.tv_sec && !left.tv_usec;
	s->socket = blocking_socket(p, s->value);
	if (s->socket < 0 ||
		getsockopt(s->socket, SOL_SOCKET, option, &s->socket_whole, &size) ||
		setsockopt(s->socket, SOL_SOCKET, option, &left, sizeof(left)))
		return err_set(e, errno,
			"cannot set the time-out of descriptor %d of process %d", (int)s->value,
			t->tracee.pid);
	return 0;
}

/* @t is at the entry to its call: the kernel has not looked at the arguments yet. */
static int shorten_timeout(
	struct process *p, struct thread *t, struct shortened *s, struct err *e)
{
	struct timespec left = blocking_timespec(t->syscall_left_ns);
	struct user_regs_struct regs;

	switch (s->kind) {
	case TIMEOUT_TIMESPEC:
		return tracee_read(p->mem_fd, s->value, &s->whole, sizeof(s->whole), e) ||
				       tracee_write(p->mem_fd, s->value, &left, sizeof(left), e)
			       ? -1
			       : 0;
	case TIMEOUT_MS:
		/* This one stays in the register of a call that continues to sleep. */
		if (tracee_get_regs(&t->tracee, &regs, e))
			return -1;
		x86_64_set_syscall_arg(&regs, s->argument, blocking_ms(t->syscall_left_ns));
		return tracee_set_regs(&t->tracee, &regs, e);
	default:
		return shorten_socket(p, t, s, e);
	}
}

/* @t sleeps in its call, or is at the exit from it: in neither case can it see a change. */
static int lengthen_back(
	struct process *p, struct thread *t, struct shortened *s, bool at_exit, struct err *e)
{
	struct user_regs_struct regs;
	int failed;

	switch (s->kind) {
	case TIMEOUT_TIMESPEC:
		return tracee_write(p->mem_fd, s->value, &s->whole, sizeof(s->whole), e);
	case TIMEOUT_MS:
		if (!at_exit)
			return 0;
		if (tracee_get_regs(&t->tracee, &regs, e))
			return -1;
		x86_64_set_syscall_arg(&regs, s->argument, s->value);
		return tracee_set_regs(&t->tracee, &regs, e);
	default:
		failed = setsockopt(s->socket, SOL_SOCKET, blocking_socket_option(s->kind),
			&s->socket_whole, sizeof(s->socket_whole));
		close(s->socket);
		return failed ? err_set(e, errno,
					"cannot put back the time-out of descriptor %d",
					(int)s->value)
			      : 0;
	}
}

/* From the entry to its call on: until it sleeps, or comes to the exit. */
static int wait_in_call(struct thread *t, long nr, bool *at_exit, struct err *e)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + SETTLE_NS;
	struct tracee_report report;
	struct user_regs_struct regs;

	*at_exit = false;
	do {
		if (tracee_wait(&t->tracee, 0, &report, e))
			return t->tracee.state == TRACEE_GONE ? 0 : -1;
		if (report.event != TRACEE_EVENT_NONE) {
			*at_exit = true;
			return 0;
		}
		if (blocked_in_call(t->tracee.pid, t->tracee.tid, &regs) &&
			x86_64_syscall_number(&regs) == nr)
			return 0;
		sched_yield();
	} while (clock_ns(CLOCK_MONOTONIC) < deadline);
	return 0;
}

static int enter_again(struct process *p, struct thread *t, struct shortened *s,
	struct buf *records, struct err *e)
{
	long nr = x86_64_syscall_number(&t->regs);
	bool at_exit;

	if (shorten_timeout(p, t, s, e) || tracee_continue_to_syscall(&t->tracee, 0, e) ||
		wait_in_call(t, nr, &at_exit, e) || lengthen_back(p, t, s, at_exit, e))
		return -1;
	if (at_exit)
		return tracee_detach(&t->tracee, 0, e);
	sleep_record_add(t, nr, x86_64_pc(&t->regs),
		blocked_sleeps(t->tracee.pid, t->tracee.tid), records);
	return 0;
}

int syscall_thaw_in_place(
	struct process *p, struct thread *t, struct buf *records, struct err *e)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + 5 * NS_PER_S;
	const struct blocking_call *call = blocking_call(x86_64_syscall_number(&t->regs));
	struct shortened s = {0};
	struct tracee_report report;

	if (t->syscall_class != IMAGE_SYSCALL_AGAIN || !call ||
		x86_64_result(&t->regs) != -ERESTARTNOHAND ||
		t->syscall_left_ns == IMAGE_SYSCALL_FOREVER || t->tracee.group_stopped)
		return 0;
	s.kind = blocking_timeout(call, &t->regs);
	s.argument = call->argument;
	s.value = x86_64_syscall_arg(&t->regs, call->argument);
	if (s.kind == TIMEOUT_RING) {
		if (blocking_ring_timeout(p, &t->regs, &s.value, e))
			return -1;
		s.kind = TIMEOUT_TIMESPEC;
	}
	if (t->regs_changed && tracee_set_regs(&t->tracee, &t->regs, e))
		return -1;
	if (tracee_continue_to_syscall(&t->tracee, 0, e) ||
		tracee_wait(&t->tracee, deadline, &report, e))
		return t->tracee.state == TRACEE_GONE ? 0 : -1;
	switch (report.event) {
	case TRACEE_EVENT_SYSCALL:
		return enter_again(p, t, &s, records, e);
	case TRACEE_EVENT_SIGNAL: /* a handler comes first, and then EINTR */
		return tracee_detach(&t->tracee, report.signal, e);
	case TRACEE_EVENT_GONE:
		return 0;
	default:
		return tracee_detach(&t->tracee, 0, e);
	}
}
