/*
 * remote_function.c - the call gets a stack frame of its own, and returns into code that
 * stops.
 */
#include "supervisor/target/remote_function.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "lib/util.h"
#include "supervisor/target/remote.h"

#define STACK_SIZE (256ul << 10)

static int let_go(struct process *p, pid_t tid, uint64_t deadline_ns, struct err *e)
{
	struct tracee t = {.pid = p->pid, .tid = tid};
	struct tracee_report report;

	if (tracee_wait(&t, deadline_ns, &report, e))
		return -1;
	if (report.event != TRACEE_EVENT_TRAP)
		return err_set(
			e, 0, "thread %d of process %d did not start in time", tid, p->pid);
	return tracee_detach(&t, 0, e);
}

/* The function returns to the way home (remote.h), whose first system call tells that it has.
 */
static int run_until_home(
	struct remote *r, uint64_t deadline_ns, struct user_regs_struct *regs, struct err *e)
{
	struct tracee *t = &r->thread->tracee;
	struct tracee_report report;

	for (;;) {
		if (tracee_continue_to_syscall(t, 0, e) ||
			tracee_wait(t, deadline_ns, &report, e))
			return -1;
		switch (report.event) {
		case TRACEE_EVENT_SYSCALL:
			if (tracee_get_regs(t, regs, e))
				return -1;
			if (x86_64_pc(regs) - r->process->cave < CAVE_SIZE)
				return 0;
			break;
		case TRACEE_EVENT_NEW:
			if (let_go(r->process, report.new_tid, deadline_ns, e))
				return -1;
			break;
		case TRACEE_EVENT_SIGNAL:
			if (report.signal == SIGSTOP) {
				r->process->stop_owed = true;
				break;
			}
			return err_set(e, 0, "it is hit by signal %d (%s) at %#lx",
				report.signal, strsignal(report.signal),
				tracee_get_regs(t, regs, NULL)
					? 0ul
					: (unsigned long)x86_64_pc(regs));
		case TRACEE_EVENT_NONE:
			return err_set(e, 0, "it does not finish in time");
		case TRACEE_EVENT_GONE:
			return err_set(e, 0, "it has ended the process");
		default:
			break;
		}
	}
}

static int run_function(struct remote *r, uint64_t address, uint64_t deadline_ns, struct err *e)
{
	uint64_t stack = remote_scratch(r, STACK_SIZE, e), home = r->process->cave + CAVE_HOME;
	struct user_regs_struct regs = r->home.regs;
	struct tracee *t = &r->thread->tracee;
	struct tracee_report report;
	static const uint64_t none[6];

	if (!stack)
		return -1;
	/* As behind a call instruction: the return address below an aligned place. */
	stack += STACK_SIZE - 24;
	x86_64_set_syscall(&regs, address, 0, none);
	x86_64_set_stack(&regs, stack);
	if (tracee_write(r->process->mem_fd, stack, &home, sizeof(home), e) ||
		tracee_set_regs(t, &regs, e) || run_until_home(r, deadline_ns, &regs, e))
		return -1;
	/* That call is not made: signals stay blocked. To its end, as what follows expects none
	 * under way. */
	x86_64_end_syscall(&regs, 0);
	if (tracee_set_regs(t, &regs, e))
		return -1;
	return tracee_continue_to_syscall(t, 0, e) || tracee_wait(t, deadline_ns, &report, e)
		       ? -1
		       : 0;
}

int remote_function(struct process *process, struct thread *thread, uint64_t address,
	uint64_t deadline_ns, struct err *e)
{
	cleanup_free void *xstate = xmalloc(XSTATE_ROOM);
	size_t size = XSTATE_ROOM;
	struct remote r;
	int failed;

	if (tracee_get_xstate(&thread->tracee, xstate, &size, e) ||
		remote_begin(&r, process, thread, e))
		return -1;
	failed = run_function(&r, address, deadline_ns, e);
	/* A thread that does not come back from it cannot be put back. */
	if (failed)
		return -1;
	if (remote_end(&r, e))
		return -1;
	return tracee_set_xstate(&thread->tracee, xstate, size, e);
}
