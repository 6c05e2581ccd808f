/*
 * remote.c - the bracket and the calls within it, and what is put back when one fails.
 */
#include "supervisor/target/remote.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "lib/util.h"
#include "shared/batch.h"
#include "supervisor/target/memory_limits.h"

/* Injected calls do not block: a target that takes longer is stuck in the kernel (a dead
 * file server, a kernel bug). */
#define PATIENCE_NS 10000000000ull

/* Of a new process, which has an execve(2) to come back from as well, while many others do the same. */
#define TRAPPED_PATIENCE_NS 60000000000ull

static int write_cave(struct remote *r, struct err *e)
{
	uint8_t code[CAVE_SIZE];

	x86_64_cave(code, &r->home);
	return tracee_write(r->process->mem_fd, r->process->cave, code, sizeof(code), e);
}

int remote_begin(
	struct remote *r, struct process *process, struct thread *thread, struct err *e)
{
	static const uint64_t none[6];
	struct tracee *t = &thread->tracee;
	struct user_regs_struct regs;

	memset(r, 0, sizeof(*r));
	if (process->cave_lost)
		return err_set(e, 0, "process %d (%s) is stuck in the kernel", process->pid,
			process->comm);
	r->process = process;
	r->thread = thread;
	r->trapped = true;
	r->home.regs = thread->regs;
	if (tracee_get_sigmask(t, &r->home.sigmask, e) || write_cave(r, e))
		return -1;
	/* The registers first: a thread let go with its signals blocked must be on the way
	 * home, which puts the mask back. */
	regs = r->home.regs;
	x86_64_set_syscall(&regs, process->cave + CAVE_HOME, 0, none);
	if (tracee_set_regs(t, &regs, e))
		return -1;
	return tracee_set_sigmask(t, ~0ull, e);
}

/* What is reported while injected code runs: an end and signals are dealt with. Only SIGSTOP
 * and SIGKILL cannot be blocked: a stop is owed, and paid when the program is let go. *resume:
 * the thread is to be let run on. */
static int take_note(
	struct remote *r, const struct tracee_report *report, bool *resume, struct err *e)
{
	struct tracee *t = &r->thread->tracee;

	*resume = false;
	if (report->event == TRACEE_EVENT_NEW)
		r->made = report->new_tid;
	if (report->event == TRACEE_EVENT_GONE)
		return err_set(
			e, 0, "process %d (%s) was killed meanwhile", t->pid, r->process->comm);
	if (report->event == TRACEE_EVENT_SIGNAL && report->signal != SIGSTOP)
		return err_set(e, 0,
			"a system call that trecr ran in process %d (%s) raised signal %d",
			t->pid, r->process->comm, report->signal);
	if (report->event == TRACEE_EVENT_SIGNAL)
		r->process->stop_owed = *resume = true;
	return 0;
}

static int wait_for(struct remote *r, struct tracee_report *report, struct err *e)
{
	struct tracee *t = &r->thread->tracee;

	if (tracee_wait(t, clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS, report, e))
		return -1;
	if (report->event == TRACEE_EVENT_NONE)
		return err_set(e, 0, "process %d (%s) does not return from a system call",
			t->pid, r->process->comm);
	return 0;
}

/* From a stop, until @want is reported. */
static int run_until(struct remote *r, enum tracee_event want, struct err *e)
{
	struct tracee *t = &r->thread->tracee;
	struct tracee_report report;
	bool resume;

	do {
		int failed = want == TRACEE_EVENT_SYSCALL ? tracee_continue_to_syscall(t, 0, e)
							  : tracee_continue(t, 0, e);

		if (failed || wait_for(r, &report, e) || take_note(r, &report, &resume, e))
			return -1;
	} while (report.event != want);
	return 0;
}

int remote_look(struct remote *r, struct tracee_report *report, struct err *e)
{
	struct tracee *t = &r->thread->tracee;
	bool resume;

	if (tracee_wait(t, 0, report, e) || take_note(r, report, &resume, e))
		return -1;
	return resume ? tracee_continue(t, 0, e) : 0;
}

int remote_stop(struct remote *r, struct err *e)
{
	struct tracee *t = &r->thread->tracee;
	struct tracee_report report;
	bool resume;

	if (tracee_interrupt(t, e))
		return -1;
	do {
		if (wait_for(r, &report, e) || take_note(r, &report, &resume, e) ||
			(resume && tracee_continue(t, 0, e)))
			return -1;
	} while (report.event != TRACEE_EVENT_TRAP);
	r->trapped = true;
	return 0;
}

/* By the instruction at @offset in the cave. */
static int call_at(struct remote *r, size_t offset, long nr, const uint64_t args[6],
	int64_t *result, struct err *e)
{
	struct tracee *t = &r->thread->tracee;
	struct user_regs_struct regs = r->home.regs;

	x86_64_set_syscall(&regs, r->process->cave + offset, nr, args);
	r->trapped = false;
	if (tracee_set_regs(t, &regs, e) || run_until(r, TRACEE_EVENT_SYSCALL, e) ||
		run_until(r, TRACEE_EVENT_SYSCALL, e) || tracee_get_regs(t, &regs, e))
		return err_prefix(e, "cannot run system call %ld in process %d", nr, t->pid);
	*result = x86_64_result(&regs);
	return 0;
}

int remote_call(
	struct remote *r, long nr, const uint64_t args[6], int64_t *result, struct err *e)
{
	return call_at(r, 0, nr, args, result, e);
}

int remote_clone(struct remote *r, uint64_t flags, pid_t *pid, int64_t *number, struct err *e)
{
	const uint64_t args[6] = {flags};

	r->made = 0;
	if (call_at(r, CAVE_CLONE, SYS_clone, args, number, e))
		return -1;
	if (*number < 0)
		return err_set(e, -*number, "process %d (%s) cannot be forked", r->process->pid,
			r->process->comm);
	*pid = r->made;
	return *pid ? 0
		    : err_set(e, 0, "a copy of process %d cannot be found", r->process->pid);
}

/* The number is in the code, and not in a register: on its way out of execve(2) the kernel sets that one. */
int remote_begin_trapped(struct process *process, struct thread *thread, long nr,
	const uint64_t args[6], struct err *e)
{
	struct user_regs_struct regs = thread->regs;
	uint8_t code[TRAPPED_CALL_SIZE];

	x86_64_trapped_call(code, nr);
	x86_64_set_syscall(&regs, process->cave, nr, args);
	return tracee_write(process->mem_fd, process->cave, code, sizeof(code), e) ||
			       tracee_set_regs(&thread->tracee, &regs, e) ||
			       tracee_continue(&thread->tracee, 0, e)
		       ? -1
		       : 0;
}

static int wait_for_new_process(
	struct thread *thread, uint64_t deadline, struct tracee_report *report, struct err *e)
{
	if (tracee_wait(&thread->tracee, deadline, report, e))
		return -1;
	if (report->event == TRACEE_EVENT_NONE)
		return err_set(e, 0,
			"the new process was not ready within a minute (is the machine "
			"overloaded?)");
	return 0;
}

/* Whether @report is of the trap behind the call; *regs are its. Somebody else may have sent SIGTRAP. */
static int is_trapped(const struct process *process, struct thread *thread,
	const struct tracee_report *report, struct user_regs_struct *regs, bool *trapped,
	struct err *e)
{
	*trapped = false;
	if (report->event != TRACEE_EVENT_SIGNAL || report->signal != SIGTRAP)
		return 0;
	if (tracee_get_regs(&thread->tracee, regs, e))
		return -1;
	*trapped = x86_64_pc(regs) == process->cave + TRAPPED_CALL_SIZE;
	return 0;
}

int remote_finish_trapped(
	struct process *process, struct thread *thread, int64_t *result, struct err *e)
{
	static const uint8_t nothing[TRAPPED_CALL_SIZE];
	struct remote r = {.process = process, .thread = thread};
	struct tracee_report report;
	struct user_regs_struct regs;
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + TRAPPED_PATIENCE_NS;
	bool trapped, resume;

	for (;;) {
		if (wait_for_new_process(thread, deadline, &report, e) ||
			is_trapped(process, thread, &report, &regs, &trapped, e))
			return -1;
		if (trapped)
			break;
		if (report.signal != SIGTRAP && take_note(&r, &report, &resume, e))
			return -1;
		if (tracee_continue(&thread->tracee, 0, e))
			return -1;
	}
	*result = x86_64_result(&regs);
	return tracee_write(process->mem_fd, process->cave, nothing, sizeof(nothing), e);
}

uint64_t remote_scratch(struct remote *r, size_t size, struct err *e)
{
	int64_t at;

	size = align_up(size, 4096);
	if (REMOTE_CALL(r, &at, e, SYS_mmap, 0, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
		return 0;
	if (at < 0 && at > -4096) {
		err_set(e, -at, "cannot map scratch memory in process %d", r->process->pid);
		memory_limits_tell(r->process->pid, e);
		return 0;
	}
	return remote_set_scratch(r, at, size, e) ? 0 : at;
}

int remote_set_scratch(struct remote *r, uint64_t start, uint64_t size, struct err *e)
{
	r->home.scratch = start;
	r->home.scratch_size = size;
	return write_cave(r, e);
}

static int unmap_scratch(struct remote *r, struct err *e)
{
	uint64_t start = r->home.scratch, size = r->home.scratch_size;
	int64_t result;

	if (!start)
		return 0;
	/* First out of the way home: behind the call, another thread of a program that has lost
	 * its supervisor could map something there. A page left over is the lesser evil. But in
	 * our window nobody else maps anything. */
	if (start != LOADER_RANGE && remote_set_scratch(r, 0, 0, e))
		return -1;
	return REMOTE_CALL(r, &result, e, SYS_munmap, start, size);
}

int remote_wipe(struct remote *r, struct err *e)
{
	size_t size = CAVE_SIZE + r->queried;
	cleanup_free uint8_t *nothing = xcalloc(1, size);

	return tracee_write(r->process->mem_fd, r->process->cave, nothing, size, e);
}

static int back_into_trap(struct remote *r, struct err *e)
{
	if (r->trapped)
		return 0;
	return tracee_interrupt(&r->thread->tracee, e) || run_until(r, TRACEE_EVENT_TRAP, e)
		       ? -1
		       : 0;
}

int remote_end(struct remote *r, struct err *e)
{
	struct tracee *t = &r->thread->tracee;

	if (t->state == TRACEE_GONE)
		return err_set(
			e, 0, "process %d (%s) was killed meanwhile", t->pid, r->process->comm);
	/* Back into a trap stop: only from there does the kernel look at the registers for a
	 * system call to restart. The mask before the registers, for the same reason as in
	 * remote_begin(). A thread that does not get there finds its way home by itself. */
	if (unmap_scratch(r, e) || back_into_trap(r, e) ||
		tracee_set_sigmask(t, r->home.sigmask, e) ||
		tracee_set_regs(t, &r->home.regs, e)) {
		r->process->cave_lost = true;
		return -1;
	}
	/* The other threads are stopped, and none uses these bytes. */
	return remote_wipe(r, e);
}
