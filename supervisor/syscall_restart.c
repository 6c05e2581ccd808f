#include "supervisor/syscall_restart.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "ckpt/image.h"
#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/fd/source.h"
#include "supervisor/x86_64.h"

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

#ifndef SYS_io_uring_enter
#define SYS_io_uring_enter 426
#endif

#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

/* How long a thread may take to fall asleep again before we stop looking. */
#define SETTLE_NS (200 * NS_PER_MS)

enum timeout {
	NO_TIMEOUT,
	MILLISECONDS, /* an int in the argument; negative: for ever */
	TIMESPEC,     /* the argument points to one; NULL: for ever */
	ABSOLUTE,     /* of itself right after any restart */
	RECEIVE,      /* SO_RCVTIMEO of the socket that the first argument names */
	SEND,         /* SO_SNDTIMEO */
};

struct blocking_call {
	long nr;
	enum timeout timeout;
	int argument;
	/* Returns EINTR after every stop, although nothing has happened to it. */
	bool plain_eintr;
	/* What the time-out really is, when that hangs on other arguments. */
	enum timeout (*decide)(const struct user_regs_struct *regs);
	/* The argument that may point to where the kernel puts what is left when the call is
	 * interrupted; 0 for none. */
	int remainder;
};

static enum timeout decide_clock_nanosleep(const struct user_regs_struct *regs)
{
	return x86_64_syscall_arg(regs, 1) & TIMER_ABSTIME ? ABSOLUTE : TIMESPEC;
}

static enum timeout decide_futex(const struct user_regs_struct *regs)
{
	int op = x86_64_syscall_arg(regs, 1) & FUTEX_CMD_MASK;

	return op == FUTEX_WAIT ? TIMESPEC : ABSOLUTE;
}

static const struct blocking_call calls[] = {
	{SYS_nanosleep, TIMESPEC, 0, false, NULL, 1},
	{SYS_clock_nanosleep, TIMESPEC, 2, false, decide_clock_nanosleep, 3},
	{SYS_poll, MILLISECONDS, 2, false, NULL, 0},
	{SYS_futex, TIMESPEC, 3, false, decide_futex, 0},
	{SYS_epoll_wait, MILLISECONDS, 3, true, NULL, 0},
	{SYS_epoll_pwait, MILLISECONDS, 3, true, NULL, 0},
	{SYS_epoll_pwait2, TIMESPEC, 3, true, NULL, 0},
	{SYS_rt_sigtimedwait, TIMESPEC, 2, true, NULL, 0},
	{SYS_semop, NO_TIMEOUT, 0, true, NULL, 0},
	{SYS_semtimedop, TIMESPEC, 3, true, NULL, 0},
	{SYS_io_getevents, TIMESPEC, 4, true, NULL, 0},
	{SYS_read, RECEIVE, 0, true, NULL, 0},
	{SYS_readv, RECEIVE, 0, true, NULL, 0},
	{SYS_recvfrom, RECEIVE, 0, true, NULL, 0},
	{SYS_recvmsg, RECEIVE, 0, true, NULL, 0},
	{SYS_recvmmsg, RECEIVE, 0, true, NULL, 0},
	{SYS_accept, RECEIVE, 0, true, NULL, 0},
	{SYS_accept4, RECEIVE, 0, true, NULL, 0},
	{SYS_write, SEND, 0, true, NULL, 0},
	{SYS_writev, SEND, 0, true, NULL, 0},
	{SYS_sendto, SEND, 0, true, NULL, 0},
	{SYS_sendmsg, SEND, 0, true, NULL, 0},
	{SYS_sendmmsg, SEND, 0, true, NULL, 0},
	{SYS_connect, SEND, 0, true, NULL, 0},
	{SYS_sendfile, SEND, 0, true, NULL, 0},
	{SYS_splice, RECEIVE, 0, true, NULL, 0},
	/* Of a file in memory; what it had done it has taken back (shmem_fallocate()). */
	{SYS_fallocate, NO_TIMEOUT, 0, true, NULL, 0},
	/* Of a program that is not saved, but goes on. */
	{SYS_io_uring_enter, NO_TIMEOUT, 0, true, NULL, 0},
};

static const struct blocking_call *find_call(long nr)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i].nr == nr)
			return &calls[i];
	return NULL;
}

static enum timeout timeout_kind(
	const struct blocking_call *call, const struct user_regs_struct *regs)
{
	return call->decide ? call->decide(regs) : call->timeout;
}

/* se.exec_start in /proc/PID/task/TID/sched: when the thread last ran, in milliseconds of its
 * CPU's own clock (kernel/sched/debug.c). 0 where the kernel does not tell. */
static uint64_t read_exec_start(pid_t pid, pid_t tid)
{
	cleanup_free char *path = xasprintf("/proc/%d/task/%d/sched", pid, tid);
	cleanup_free char *text = NULL;
	uint64_t ms, fraction = 0;
	size_t len;
	char *p, *end;

	if (read_file(path, &text, &len, NULL))
		return 0;
	p = strstr(text, "se.exec_start");
	p = p ? strchr(p, ':') : NULL;
	if (!p)
		return 0;
	ms = strtoull(p + 1, &end, 10);
	if (*end == '.')
		fraction = strtoull(end + 1, NULL, 10); /* six digits: nanoseconds */
	return ms * NS_PER_MS + fraction;
}

/* CLOCK_MONOTONIC less the clock of @cpu, by running there for a moment. Both go at the same
 * pace but for time stolen by interrupts and hypervisors, which makes the result too large:
 * sleeps seem to have begun later than they did, and never end early. */
static int64_t cpu_clock_offset(int cpu)
{
	cpu_set_t old, one;
	uint64_t at;

	if (sched_getaffinity(0, sizeof(old), &old))
		return 0;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		return 0;
	at = read_exec_start(getpid(), gettid());
	/* Restoring what was in force a moment ago cannot fail in a way that matters. */
	(void)sched_setaffinity(0, sizeof(old), &old);
	return at ? (int64_t)(clock_ns(CLOCK_MONOTONIC) - at) : 0;
}

/* "202 0x7f.. 0x0 ..." when blocked in a call, "running" otherwise. */
static bool blocked_in(pid_t pid, pid_t tid, struct user_regs_struct *regs)
{
	cleanup_free char *path = xasprintf("/proc/%d/task/%d/syscall", pid, tid);
	cleanup_free char *text = NULL;
	size_t len;
	char *p;
	long nr;

	memset(regs, 0, sizeof(*regs));
	if (read_file(path, &text, &len, NULL) || text[0] < '0' || text[0] > '9')
		return false;
	nr = strtol(text, &p, 10);
	for (int i = 0; i < 6; i++)
		x86_64_set_syscall_arg(regs, i, strtoull(p, &p, 16));
	x86_64_set_syscall_number(regs, nr);
	return true;
}

static uint64_t read_sleeps(pid_t pid, pid_t tid)
{
	cleanup_free char *status = procfs_status(pid, tid, NULL);

	return status ? status_number(status, "voluntary_ctxt_switches", 10) : 0;
}

/* In what function of the kernel the thread sleeps (man proc_pid_wchan). */
static void read_wchan(struct thread *t)
{
	cleanup_free char *path =
		xasprintf("/proc/%d/task/%d/wchan", t->tracee.pid, t->tracee.tid);
	cleanup_free char *text = NULL;
	size_t len;

	if (!read_file(path, &text, &len, NULL))
		snprintf(t->blocked_at, sizeof(t->blocked_at), "%.31s", text);
}

static bool is_socket(pid_t pid, int fd)
{
	cleanup_free char *path = xasprintf("/proc/%d/fd/%d", pid, fd);
	cleanup_free char *target = read_link(path, NULL);

	return target && !strncmp(target, "socket:", 7);
}

/* Whether the call may end by a time-out that began when it did. */
static bool is_timed(
	pid_t pid, const struct blocking_call *call, const struct user_regs_struct *regs)
{
	uint64_t value = x86_64_syscall_arg(regs, call->argument);

	switch (timeout_kind(call, regs)) {
	case TIMESPEC:
		return value;
	case MILLISECONDS:
		return (int)value >= 0;
	case RECEIVE:
	case SEND:
		return is_socket(pid, value);
	default:
		return false;
	}
}

void syscall_before_freeze(struct thread *t)
{
	pid_t pid = t->tracee.pid, tid = t->tracee.tid;
	const struct blocking_call *call;
	struct user_regs_struct regs;
	struct proc_stat st;
	uint64_t exec_start;
	int64_t offset;

	t->syscall_start_ns = 0;
	if (!blocked_in(pid, tid, &regs))
		return;
	if (x86_64_syscall_number(&regs) == SYS_restart_syscall)
		read_wchan(t);
	call = find_call(x86_64_syscall_number(&regs));
	if (!call || !is_timed(pid, call, &regs))
		return;
	t->sleeps = read_sleeps(pid, tid);
	exec_start = read_exec_start(pid, tid);
	if (!exec_start || procfs_stat(pid, tid, &st, NULL))
		return;
	offset = cpu_clock_offset(st.field[39]);
	t->syscall_start_ns = offset ? exec_start + offset : 0;
}

/* A duplicate of the target's descriptor @fd: the same socket. */
static int borrow_fd(const struct process *p, int fd)
{
	cleanup_fd int pidfd = fd_task_open(p->pid, p->task, NULL);

	return pidfd < 0 ? -1 : syscall(SYS_pidfd_getfd, pidfd, fd, 0);
}

static int socket_option(enum timeout kind)
{
	return kind == RECEIVE ? SO_RCVTIMEO : SO_SNDTIMEO;
}

/* IMAGE_SYSCALL_FOREVER when it has none, or is no socket. */
static uint64_t socket_timeout(const struct process *p, int fd, enum timeout kind)
{
	cleanup_fd int mine = borrow_fd(p, fd);
	struct timeval tv;
	socklen_t size = sizeof(tv);

	if (mine < 0 || getsockopt(mine, SOL_SOCKET, socket_option(kind), &tv, &size) ||
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
	if (kind == RECEIVE || kind == SEND)
		*ns = socket_timeout(p, value, kind);
	if (kind == MILLISECONDS && (int)value >= 0)
		*ns = (int)value * NS_PER_MS;
	if (kind == TIMESPEC && value) {
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

		/* A new call looks just like one that was entered again. */
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
		read_sleeps(t->tracee.pid, t->tracee.tid) <= t->sleeps + 1)
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
	if (whole_timeout(p, call, timeout_kind(call, &t->regs), &t->regs, &whole, e))
		return -1;
	t->syscall_left_ns = first && !cpu_time ? time_left(t, whole) : whole;
	return 0;
}

/* restart_syscall(2) going on with a call: put its number back into the registers, which is
 * all the same to the kernel. */
static int classify_restarted(
	struct process *p, struct thread *t, const struct buf *records, struct err *e)
{
	const struct sleep_record *record = find_record(t, records);
	const struct blocking_call *call = find_call(record ? record->nr : guess_call(p, t));
	enum timeout kind;

	if (!call)
		return err_set(e, 0,
			"thread %d of process %d is in a system call that was interrupted "
			"before (%s), which cannot be restarted",
			t->vtid, p->vpid, t->blocked_at);
	x86_64_set_syscall_number(&t->regs, call->nr);
	kind = timeout_kind(call, &t->regs);
	t->syscall_class = kind == ABSOLUTE ? IMAGE_SYSCALL_AGAIN : IMAGE_SYSCALL_RESTART_BLOCK;
	t->syscall_left_ns = IMAGE_SYSCALL_FOREVER;
	if (kind == ABSOLUTE)
		return 0;
	/* Where nothing tells since when, rather too long than too short. */
	return find_left(p, t, call, record, false, e);
}

static int classify_call(
	struct process *p, struct thread *t, const struct buf *records, struct err *e)
{
	const struct blocking_call *call = find_call(x86_64_syscall_number(&t->regs));
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
	kind = timeout_kind(call, &t->regs);
	t->syscall_class = IMAGE_SYSCALL_AGAIN;
	t->syscall_left_ns = IMAGE_SYSCALL_FOREVER;
	if (kind == NO_TIMEOUT || kind == ABSOLUTE)
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

void syscall_go_on(struct thread *t)
{
	const struct blocking_call *call;
	struct user_regs_struct regs;

	/* One that has ended, or cannot be asked, has nothing to go on with. */
	if (t->tracee.state != TRACEE_STOPPED || tracee_get_regs(&t->tracee, &regs, NULL) ||
		!x86_64_in_syscall(&regs) || x86_64_result(&regs) != -EINTR)
		return;
	call = find_call(x86_64_syscall_number(&regs));
	if (!call || !call->plain_eintr)
		return;
	x86_64_set_result(&regs, -ERESTARTNOHAND);
	(void)tracee_set_regs(&t->tracee, &regs, NULL);
}

static void add_record(
	const struct thread *t, long nr, uint64_t pc, uint64_t sleeps, struct buf *records)
{
	struct sleep_record r = {
		.tid = t->tracee.tid,
		.pc = pc,
		.nr = nr,
		.end_ns = IMAGE_SYSCALL_FOREVER,
		.sleeps = sleeps,
	};

	for (int i = 0; i < 6; i++)
		r.args[i] = x86_64_syscall_arg(&t->regs, i);
	if (t->syscall_left_ns != IMAGE_SYSCALL_FOREVER)
		r.end_ns = clock_ns(CLOCK_MONOTONIC) + t->syscall_left_ns;
	buf_push(records, struct sleep_record, &r);
}

void syscall_remember(const struct thread *t, struct buf *records)
{
	if (t->syscall_class != IMAGE_SYSCALL_NONE &&
		x86_64_result(&t->regs) == -ERESTART_RESTARTBLOCK)
		add_record(t, x86_64_syscall_number(&t->regs), x86_64_pc(&t->regs), 0, records);
}

bool syscall_can_restart(long nr)
{
	return find_call(nr);
}

/* Until the thread sleeps in @nr, or a while has passed. */
static bool wait_until_asleep(pid_t pid, pid_t tid, long nr)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + SETTLE_NS;
	struct user_regs_struct regs;

	do {
		if (blocked_in(pid, tid, &regs) && x86_64_syscall_number(&regs) == nr)
			return true;
		sched_yield();
	} while (clock_ns(CLOCK_MONOTONIC) < deadline);
	return false;
}

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

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
	int option = socket_option(s->kind);
	socklen_t size = sizeof(s->socket_whole);

	/* All 0 would be for ever. */
	left.tv_usec += !left.tv_sec && !left.tv_usec;
	s->socket = borrow_fd(p, s->value);
	if (s->socket < 0 ||
		getsockopt(s->socket, SOL_SOCKET, option, &s->socket_whole, &size) ||
		setsockopt(s->socket, SOL_SOCKET, option, &left, sizeof(left)))
		return err_set(e, errno,
			"cannot set the time-out of descriptor %d of process %d", (int)s->value,
			t->tracee.pid);
	return 0;
}

/* @t is at the entry to its call: the kernel has not looked at the arguments yet. */
static int shorten(struct process *p, struct thread *t, struct shortened *s, struct err *e)
{
	struct timespec left = to_timespec(t->syscall_left_ns);
	struct user_regs_struct regs;

	switch (s->kind) {
	case TIMESPEC:
		return tracee_read(p->mem_fd, s->value, &s->whole, sizeof(s->whole), e) ||
				       tracee_write(p->mem_fd, s->value, &left, sizeof(left), e)
			       ? -1
			       : 0;
	case MILLISECONDS:
		/* This one stays in the register of a call that goes on sleeping. */
		if (tracee_get_regs(&t->tracee, &regs, e))
			return -1;
		x86_64_set_syscall_arg(
			&regs, s->argument, (t->syscall_left_ns + NS_PER_MS - 1) / NS_PER_MS);
		return tracee_set_regs(&t->tracee, &regs, e);
	default:
		return shorten_socket(p, t, s, e);
	}
}

/* @t sleeps in its call, or is at the exit from it: in neither case can it see a change. */
static int lengthen(
	struct process *p, struct thread *t, struct shortened *s, bool at_exit, struct err *e)
{
	struct user_regs_struct regs;
	int failed;

	switch (s->kind) {
	case TIMESPEC:
		return tracee_write(p->mem_fd, s->value, &s->whole, sizeof(s->whole), e);
	case MILLISECONDS:
		if (!at_exit)
			return 0;
		if (tracee_get_regs(&t->tracee, &regs, e))
			return -1;
		x86_64_set_syscall_arg(&regs, s->argument, s->value);
		return tracee_set_regs(&t->tracee, &regs, e);
	default:
		failed = setsockopt(s->socket, SOL_SOCKET, socket_option(s->kind),
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
		if (blocked_in(t->tracee.pid, t->tracee.tid, &regs) &&
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

	if (shorten(p, t, s, e) || tracee_continue_to_syscall(&t->tracee, 0, e) ||
		wait_in_call(t, nr, &at_exit, e) || lengthen(p, t, s, at_exit, e))
		return -1;
	if (at_exit)
		return tracee_detach(&t->tracee, 0, e);
	add_record(
		t, nr, x86_64_pc(&t->regs), read_sleeps(t->tracee.pid, t->tracee.tid), records);
	return 0;
}

int syscall_thaw_in_place(
	struct process *p, struct thread *t, struct buf *records, struct err *e)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + 5 * NS_PER_S;
	const struct blocking_call *call = find_call(x86_64_syscall_number(&t->regs));
	struct shortened s = {0};
	struct tracee_report report;

	if (t->syscall_class != IMAGE_SYSCALL_AGAIN || !call ||
		x86_64_result(&t->regs) != -ERESTARTNOHAND ||
		t->syscall_left_ns == IMAGE_SYSCALL_FOREVER || t->tracee.group_stopped)
		return 0;
	s.kind = timeout_kind(call, &t->regs);
	s.argument = call->argument;
	s.value = x86_64_syscall_arg(&t->regs, call->argument);
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
	const struct blocking_call *call = find_call(nr);
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
		ts = to_timespec(t->syscall_left_ns);
		args[call->argument] =
			timeout_kind(call, &t->regs) == MILLISECONDS
				? (t->syscall_left_ns + NS_PER_MS - 1) / NS_PER_MS
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
