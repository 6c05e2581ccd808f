/*
 * Since when a thread sleeps, before it is interrupted.
 */
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>

#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/syscall/blocking.h"
#include "supervisor/syscall/interrupted_call.h"
#include "supervisor/target/x86_64.h"

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

/* Asked of the thread itself: a process whose first thread has ended shows none. */
static bool is_socket(pid_t pid, pid_t tid, int fd)
{
	cleanup_free char *path = xasprintf("/proc/%d/task/%d/fd/%d", pid, tid, fd);
	cleanup_free char *target = read_link(path, NULL);

	return target && !strncmp(target, "socket:", 7);
}

/* Whether the call may end by a time-out that began when it did. */
static bool is_timed(pid_t pid, pid_t tid, const struct blocking_call *call,
	const struct user_regs_struct *regs)
{
	uint64_t value = x86_64_syscall_arg(regs, call->argument);

	switch (blocking_timeout(call, regs)) {
	case TIMEOUT_TIMESPEC:
	case TIMEOUT_RING:
		return value;
	case TIMEOUT_MS:
		return (int)value >= 0;
	case TIMEOUT_RECEIVE:
	case TIMEOUT_SEND:
		return is_socket(pid, tid, value);
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
	if (!blocked_in_call(pid, tid, &regs))
		return;
	if (x86_64_syscall_number(&regs) == SYS_restart_syscall)
		read_wchan(t);
	call = blocking_call(x86_64_syscall_number(&regs));
	if (!call || !is_timed(pid, tid, call, &regs))
		return;
	t->sleeps = blocked_sleeps(pid, tid);
	exec_start = read_exec_start(pid, tid);
	if (!exec_start || procfs_stat(pid, tid, &st, NULL))
		return;
	offset = cpu_clock_offset(st.field[STAT_PROCESSOR]);
	t->syscall_start_ns = offset ? exec_start + offset : 0;
}
