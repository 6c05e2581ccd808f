/*
 * What an interrupted call needs to continue, and what is left of its time-out.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "ckpt/image.h"
#include "supervisor/syscall/blocking.h"
#include "supervisor/syscall/interrupted_call.h"
#include "supervisor/target/x86_64.h"

/* IMAGE_SYSCALL_FOREVER when it has none, or is no socket. */
static uint64_t socket_timeout(const struct process *p, int fd, enum timeout kind)
{
	cleanup_fd int mine = blocking_socket(p, fd);
	struct timeval tv;
	socklen_t size = sizeof(tv);

	if (mine < 0 ||
		getsockopt(mine, SOL_SOCKET, blocking_socket_option(kind), &tv, &size) ||
		(!tv.tv_sec && !tv.tv_usec))
		return IMAGE_SYSCALL_FOREVER;
	return tv.tv_sec * NS_PER_S + tv.tv_usec * 1000;
}

static uint64_t timespec_ns(const struct timespec *ts)
{
	return ts->tv_sec > INT64_MAX / (int64_t)NS_PER_S - 1
		       ? IMAGE_SYSCALL_FOREVER
		       : ts->tv_sec * NS_PER_S + ts->tv_nsec;
}

/* The whole time-out as the call was given it; IMAGE_SYSCALL_FOREVER for none. */
static int whole_timeout(struct process *p, const struct blocking_call *call, enum timeout kind,
	const struct user_regs_struct *regs, uint64_t *ns, struct err *e)
{
	uint64_t value = x86_64_syscall_arg(regs, call->argument);
	struct timespec ts;

	*ns = IMAGE_SYSCALL_FOREVER;
	if (kind == TIMEOUT_RECEIVE || kind == TIMEOUT_SEND)
		*ns = socket_timeout(p, value, kind);
	if (kind == TIMEOUT_MS && (int)value >= 0)
		*ns = (int)value * NS_PER_MS;
	if (kind == TIMEOUT_RING && blocking_ring_timeout(p, regs, &value, e))
		return -1;
	if ((kind == TIMEOUT_TIMESPEC || kind == TIMEOUT_RING) && value) {
		if (tracee_read(p->mem_fd, value, &ts, sizeof(ts), e))
			return err_prefix(e, "cannot read a time-out of process %d", p->pid);
		*ns = timespec_ns(&ts);
	}
	return 0;
}

/* Whether @call sleeps until a process has used some time of a processor, which has nothing to
 * do with the time that passes. */
static bool counts_cpu_time(
	const struct blocking_call *call, const struct user_regs_struct *regs)
{
	int clock = x86_64_syscall_arg(regs, 0);

	return call->nr == SYS_clock_nanosleep &&
	       (clock < 0 || clock == CLOCK_PROCESS_CPUTIME_ID);
}

/* What is left as the kernel has written it for the program, at the very interruption. The
 * program may have the whole time-out at the same place, as the C library does. */
static int read_remainder(const struct process *p, const struct blocking_call *call,
	const struct user_regs_struct *regs, uint64_t *ns, struct err *e)
{
	uint64_t at = call->remainder ? x86_64_syscall_arg(regs, call->remainder) : 0;
	struct timespec ts;

	*ns = IMAGE_SYSCALL_FOREVER;
	if (!at)
		return 0;
	if (tracee_read(p->mem_fd, at, &ts, sizeof(ts), e))
		return err_prefix(e, "cannot read a time-out of process %d", p->pid);
	*ns = timespec_ns(&ts);
	return 0;
}

static const struct sleep_record *find_record(const struct thread *t, const struct buf *records)
{
	for (size_t i = 0; i < buf_count(records, struct sleep_record); i++) {
		const struct sleep_record *r = buf_at(records, struct sleep_record, i);
		bool same = r->tid == t->tracee.tid && r->pc == x86_64_pc(&t->regs);

		/* A new call looks just like a call that was entered again. */
		if (r->sleeps)
			same &= r->sleeps == t->sleeps;
		for (int k = 0; k < 6; k++)
			same &= r->args[k] == x86_64_syscall_arg(&t->regs, k);
		if (same)
			return r;
	}
	return NULL;
}

/* mov $NR, %eax; syscall: as C libraries have it. */
static long read_number(const struct process *p, const struct thread *t)
{
	uint8_t code[7];
	uint32_t nr;

	if (tracee_read(
		    p->mem_fd, x86_64_pc(&t->regs) - sizeof(code), code, sizeof(code), NULL) ||
		code[0] != 0xb8 || code[5] != 0x0f || code[6] != 0x05)
		return -1;
	memcpy(&nr, code + 1, sizeof(nr));
	return nr;
}

/* A call that somebody else (a debugger, a stop signal, a signal that another thread has taken)
 * has interrupted before us: known by where it sleeps. nanosleep's first argument is an
 * address, clock_nanosleep's a clock. */
static long guess_call(const struct process *p, const struct thread *t)
{
	if (t->continued_call)
		return t->continued_call;
	if (strstr(t->blocked_at, "nanosleep"))
		return x86_64_syscall_arg(&t->regs, 0) + 64 < 4096 ? SYS_clock_nanosleep
								   : SYS_nanosleep;
	if (strstr(t->blocked_at, "poll"))
		return SYS_poll;
	return strstr(t->blocked_at, "futex") ? SYS_futex : read_number(p, t);
}

/* What is left of a sleep of @whole ns that began at t->syscall_start_ns. */
static uint64_t time_left(const struct thread *t, uint64_t whole)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t slept = 0;

	if (whole == IMAGE_SYSCALL_FOREVER)
		return whole;
	/* Not when it has slept anew since: once more for the stop itself. */
	if (t->syscall_start_ns && now > t->syscall_start_ns &&
		blocked_sleeps(t->tracee.pid, t->tracee.tid) <= t->sleeps + 1)
		slept = now - t->syscall_start_ns;
	return slept < whole ? whole - slept : 0;
}

static uint64_t time_until(uint64_t end_ns)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (end_ns == IMAGE_SYSCALL_FOREVER)
		return end_ns;
	return end_ns > now ? end_ns - now : 0;
}

/* What is left of the time-out of @t's call. @first: it has been interrupted for the first
 * time. */
static int find_left(struct process *p, struct thread *t, const struct blocking_call *call,
	const struct sleep_record *record, bool first, struct err *e)
{
	bool cpu_time = counts_cpu_time(call, &t->regs);
	uint64_t whole;

	if (read_remainder(p, call, &t->regs, &t->syscall_left_ns, e))
		return -1;
	if (t->syscall_left_ns != IMAGE_SYSCALL_FOREVER)
		return 0;
	if (record && !cpu_time) {
		t->syscall_left_ns = time_until(record->end_ns);
		return 0;
	}
	if (whole_timeout(p, call, blocking_timeout(call, &t->regs), &t->regs, &whole, e))
		return -1;
	t->syscall_left_ns = first && !cpu_time ? time_left(t, whole) : whole;
	return 0;
}

/* restart_syscall(2) that continues a call: put its number back into the registers, which is
 * all the same to the kernel. */
static int classify_restarted(
	struct process *p, struct thread *t, const struct buf *records, struct err *e)
{
	const struct sleep_record *record = find_record(t, records);
	const struct blocking_call *call =
		blocking_call(record ? record->nr : guess_call(p, t));
	enum timeout kind;

	if (!call)
		return err_set(e, 0,
			"thread %d of process %d is in a system call that was interrupted "
			"before (%s), which cannot be restarted",
			t->vtid, p->vpid, t->blocked_at);
	x86_64_set_syscall_number(&t->regs, call->nr);
	kind = blocking_timeout(call, &t->regs);
	t->syscall_class =
		kind == TIMEOUT_ABSOLUTE ? IMAGE_SYSCALL_AGAIN : IMAGE_SYSCALL_RESTART_BLOCK;
	t->syscall_left_ns = IMAGE_SYSCALL_FOREVER;
	if (kind == TIMEOUT_ABSOLUTE)
		return 0;
	/* Where nothing shows since when, rather too long than too short. */
	return find_left(p, t, call, record, false, e);
}

static int classify_call(
	struct process *p, struct thread *t, const struct buf *records, struct err *e)
{
	const struct blocking_call *call = blocking_call(x86_64_syscall_number(&t->regs));
	bool restart_block = x86_64_result(&t->regs) == -ERESTART_RESTARTBLOCK;
	enum timeout kind;

	if (!restart_block && (!call || !call->plain_eintr))
		return 0;
	/* The kernel decides: EINTR when a handler runs first, else the call is entered again.
	 */
	if (!restart_block) {
		x86_64_set_result(&t->regs, -ERESTARTNOHAND);
		if (tracee_set_regs(&t->tracee, &t->regs, e))
			return -1;
	}
	if (!call)
		return err_set(e, 0,
			"thread %d of process %d is in system call %ld, which cannot be "
			"restarted",
			t->vtid, p->vpid, x86_64_syscall_number(&t->regs));
	kind = blocking_timeout(call, &t->regs);
	t->syscall_class = IMAGE_SYSCALL_AGAIN;
	t->syscall_left_ns = IMAGE_SYSCALL_FOREVER;
	if (kind == TIMEOUT_NONE || kind == TIMEOUT_ABSOLUTE)
		return 0;
	if (restart_block)
		t->syscall_class = IMAGE_SYSCALL_RESTART_BLOCK;
	return find_left(p, t, call, find_record(t, records), true, e);
}

int syscall_classify(
	struct process *p, struct thread *t, const struct buf *records, struct err *e)
{
	int64_t result = x86_64_result(&t->regs);

	t->syscall_class = IMAGE_SYSCALL_NONE;
	t->syscall_left_ns = 0;
	if (!x86_64_in_syscall(&t->regs))
		return 0;
	if (result == -ERESTART_RESTARTBLOCK &&
		x86_64_syscall_number(&t->regs) == SYS_restart_syscall)
		return classify_restarted(p, t, records, e);
	if (result == -ERESTART_RESTARTBLOCK || result == -EINTR)
		return classify_call(p, t, records, e);
	return 0;
}

void syscall_undo_eintr(struct thread *t)
{
	const struct blocking_call *call;
	struct user_regs_struct regs;

	/* A thread that has ended, or cannot be asked, has nothing to continue. */
	if (t->tracee.state != TRACEE_STOPPED || tracee_get_regs(&t->tracee, &regs, NULL) ||
		!x86_64_in_syscall(&regs) || x86_64_result(&regs) != -EINTR)
		return;
	call = blocking_call(x86_64_syscall_number(&regs));
	if (!call || !call->plain_eintr)
		return;
	x86_64_set_result(&regs, -ERESTARTNOHAND);
	(void)tracee_set_regs(&t->tracee, &regs, NULL);
}

void syscall_note_restart(struct thread *t)
{
	struct user_regs_struct regs;
	bool continues;

	if (t->tracee.state != TRACEE_STOPPED || tracee_get_regs(&t->tracee, &regs, NULL))
		return;
	continues = x86_64_in_syscall(&regs) && x86_64_result(&regs) == -ERESTART_RESTARTBLOCK;
	if (!continues)
		t->continued_call = 0;
	else if (x86_64_syscall_number(&regs) != SYS_restart_syscall)
		t->continued_call = x86_64_syscall_number(&regs);
}

void syscall_remember(const struct thread *t, struct buf *records)
{
	if (t->syscall_class != IMAGE_SYSCALL_NONE &&
		x86_64_result(&t->regs) == -ERESTART_RESTARTBLOCK)
		sleep_record_add(
			t, x86_64_syscall_number(&t->regs), x86_64_pc(&t->regs), 0, records);
}
