/*
 * newborn_call.c - one system call in a newborn, the making of a child by one, and its way to
 * its end or its execve(2).
 */
#include "supervisor/restore/newborn_call.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#include "supervisor/restore/restart_attempt.h"
#include "supervisor/target/x86_64.h"

/* A system call, and a trap behind it. New processes are copies of us: they have them at the same addresses. */
extern const char newborn_instruction[], newborn_returned[];
__asm__(".pushsection .text\n"
	"newborn_instruction:\n\t"
	"syscall\n\t"
	"int3\n"
	"newborn_returned:\n\t"
	".popsection");

/* Below the stack pointer, a function may use that much (System V ABI, 3.2.2). */
#define RED_ZONE 128

void newborn_stop(void)
{
	for (;;)
		__asm__ volatile("int3");
}

/* Whether the trap behind the call is what has stopped it, and not a SIGTRAP that somebody has sent. */
static int has_returned(
	struct restore *r, struct newborn *n, struct user_regs_struct *regs, bool *returned)
{
	if (tracee_get_regs(&n->t, regs, r->e))
		return -1;
	*returned = x86_64_pc(regs) == (uintptr_t)newborn_returned;
	return 0;
}

/* To the trap behind a call: one stop, where the entry and the exit would be two. A call that a signal interrupts is
 * entered again by the kernel. Signals that report ends of children are
 * ignored (ignore_end_signals() in newborn_main.c), others do what they always do. */
static int run_call(
	struct restore *r, struct newborn *n, struct user_regs_struct *regs, pid_t *made)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + EXEC_PATIENCE_NS;
	struct tracee_report report = {0};
	bool returned = false;

	do {
		int signal = report.event == TRACEE_EVENT_SIGNAL && report.signal != SIGCHLD
				     ? report.signal
				     : 0;

		if (tracee_continue(&n->t, signal, r->e) ||
			tracee_wait(&n->t, deadline, &report, r->e))
			return -1;
		if (report.event == TRACEE_EVENT_GONE)
			return restore_ended_early(r, n, report.status);
		if (report.event == TRACEE_EVENT_NONE)
			return err_set(r->e, 0,
				"a new process does not return from a system call (is the "
				"machine overloaded?)");
		if (report.event == TRACEE_EVENT_NEW)
			*made = report.new_tid;
		if (report.event == TRACEE_EVENT_SIGNAL && report.signal == SIGTRAP &&
			has_returned(r, n, regs, &returned))
			return -1;
	} while (!returned);
	return 0;
}

static int prepare_call(struct restore *r, struct newborn *n, long nr, const uint64_t args[6])
{
	struct user_regs_struct regs;

	BUG_ON(n->goal != NEWBORN_STANDS);
	if (tracee_get_regs(&n->t, &regs, r->e))
		return -1;
	x86_64_set_syscall(&regs, (uintptr_t)newborn_instruction, nr, args);
	return tracee_set_regs(&n->t, &regs, r->e);
}

static int call_newborn(struct restore *r, struct newborn *n, int64_t *result, pid_t *made,
	long nr, const uint64_t args[6])
{
	struct user_regs_struct regs;

	if (prepare_call(r, n, nr, args) || run_call(r, n, &regs, made))
		return -1;
	*result = x86_64_result(&regs);
	return 0;
}

int newborn_call(
	struct restore *r, struct newborn *n, int64_t *result, long nr, const uint64_t args[6])
{
	pid_t made;

	return call_newborn(r, n, result, &made, nr, args);
}

/* Its first stop, before it has run an instruction. */
static int await_first_stop(struct restore *r, struct newborn *n)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + EXEC_PATIENCE_NS;
	struct tracee_report report;

	for (;;) {
		if (tracee_wait(&n->t, deadline, &report, r->e))
			return -1;
		if (report.event == TRACEE_EVENT_TRAP)
			return 0;
		if (report.event == TRACEE_EVENT_GONE)
			return restore_ended_early(r, n, report.status);
		if (report.event == TRACEE_EVENT_NONE)
			return err_set(r->e, 0,
				"a new process does not start (is the machine overloaded?)");
		if (tracee_continue(&n->t, 0, r->e))
			return -1;
	}
}

int newborn_clone(struct restore *r, struct newborn *n, struct newborn *made, uint64_t flags,
	pid_t id, int exit_signal, int64_t *result)
{
	struct creation_page *page = r->creation.page;
	pid_t tid = 0;

	page->id = id;
	page->clone = (struct clone_args){
		.flags = flags,
		.exit_signal = flags & CLONE_PARENT ? 0 : exit_signal,
		.set_tid = (uintptr_t)&page->id,
		.set_tid_size = 1,
	};
	if (call_newborn(r, n, result, &tid, SYS_clone3,
		    (const uint64_t[6]){(uintptr_t)&page->clone, sizeof(page->clone)}))
		return -1;
	if (*result < 0)
		return 0;
	if (!tid)
		return err_set(r->e, 0, "a new process with id %d cannot be found", id);
	made->id = id;
	made->t.pid = made->t.tid = tid;
	return await_first_stop(r, made);
}

int newborn_run(struct restore *r, struct newborn *n,
	void (*function)(struct creation *creation, size_t), size_t node,
	enum newborn_goal goal)
{
	const uint64_t args[6] = {(uintptr_t)&r->creation, node};
	struct user_regs_struct regs;
	uint64_t stack;

	BUG_ON(n->goal != NEWBORN_STANDS);
	if (tracee_get_regs(&n->t, &regs, r->e))
		return -1;
	x86_64_set_syscall(&regs, (uintptr_t)function, 0, args);
	/* As behind a call instruction; it does not return. */
	stack = (x86_64_stack(&regs) - RED_ZONE) / 16 * 16 - 8;
	x86_64_set_stack(&regs, stack);
	if (tracee_set_regs(&n->t, &regs, r->e))
		return -1;
	n->goal = goal;
	return tracee_continue(&n->t, 0, r->e);
}

int newborn_exit(struct restore *r, struct newborn *n)
{
	static const uint64_t status[6];

	if (prepare_call(r, n, SYS_exit_group, status))
		return -1;
	n->goal = NEWBORN_ENDS;
	return tracee_continue(&n->t, 0, r->e);
}
