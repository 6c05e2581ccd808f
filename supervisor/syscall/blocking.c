/*
 * blocking.c - a table of these calls, and what of their arguments says how long they wait.
 */
#include "supervisor/syscall/blocking.h"

#include <linux/futex.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "lib/procfs.h"
#include "lib/util.h"
#include "supervisor/syscall/interrupted_call.h"
#include "supervisor/target/task_pidfd.h"
#include "supervisor/target/x86_64.h"

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

#ifndef SYS_io_uring_enter
#define SYS_io_uring_enter 426
#endif

static enum timeout decide_clock_nanosleep(const struct user_regs_struct *regs)
{
	return x86_64_syscall_arg(regs, 1) & TIMER_ABSTIME ? TIMEOUT_ABSOLUTE
							   : TIMEOUT_TIMESPEC;
}

static enum timeout decide_futex(const struct user_regs_struct *regs)
{
	int op = x86_64_syscall_arg(regs, 1) & FUTEX_CMD_MASK;

	return op == FUTEX_WAIT ? TIMEOUT_TIMESPEC : TIMEOUT_ABSOLUTE;
}

/* io_uring_enter(2): absolute time-outs and registered ones are right of themselves.
 */
#define RING_ARGUMENT 4

#ifndef IORING_ENTER_ABS_TIMER
#define IORING_ENTER_ABS_TIMER (1u << 5)
#endif
#ifndef IORING_ENTER_EXT_ARG_REG
#define IORING_ENTER_EXT_ARG_REG (1u << 6)
#endif

static enum timeout decide_ring(const struct user_regs_struct *regs)
{
	uint64_t flags = x86_64_syscall_arg(regs, 3);

	return flags & IORING_ENTER_EXT_ARG &&
			       !(flags & (IORING_ENTER_ABS_TIMER | IORING_ENTER_EXT_ARG_REG))
		       ? TIMEOUT_RING
		       : TIMEOUT_NONE;
}

static const struct blocking_call calls[] = {
	{SYS_nanosleep, TIMEOUT_TIMESPEC, 0, false, NULL, 1},
	{SYS_clock_nanosleep, TIMEOUT_TIMESPEC, 2, false, decide_clock_nanosleep, 3},
	{SYS_poll, TIMEOUT_MS, 2, false, NULL, 0},
	{SYS_futex, TIMEOUT_TIMESPEC, 3, false, decide_futex, 0},
	{SYS_epoll_wait, TIMEOUT_MS, 3, true, NULL, 0},
	{SYS_epoll_pwait, TIMEOUT_MS, 3, true, NULL, 0},
	{SYS_epoll_pwait2, TIMEOUT_TIMESPEC, 3, true, NULL, 0},
	{SYS_rt_sigtimedwait, TIMEOUT_TIMESPEC, 2, true, NULL, 0},
	{SYS_semop, TIMEOUT_NONE, 0, true, NULL, 0},
	{SYS_semtimedop, TIMEOUT_TIMESPEC, 3, true, NULL, 0},
	{SYS_io_getevents, TIMEOUT_TIMESPEC, 4, true, NULL, 0},
	{SYS_read, TIMEOUT_RECEIVE, 0, true, NULL, 0},
	{SYS_readv, TIMEOUT_RECEIVE, 0, true, NULL, 0},
	{SYS_recvfrom, TIMEOUT_RECEIVE, 0, true, NULL, 0},
	{SYS_recvmsg, TIMEOUT_RECEIVE, 0, true, NULL, 0},
	{SYS_recvmmsg, TIMEOUT_RECEIVE, 0, true, NULL, 0},
	{SYS_accept, TIMEOUT_RECEIVE, 0, true, NULL, 0},
	{SYS_accept4, TIMEOUT_RECEIVE, 0, true, NULL, 0},
	{SYS_write, TIMEOUT_SEND, 0, true, NULL, 0},
	{SYS_writev, TIMEOUT_SEND, 0, true, NULL, 0},
	{SYS_sendto, TIMEOUT_SEND, 0, true, NULL, 0},
	{SYS_sendmsg, TIMEOUT_SEND, 0, true, NULL, 0},
	{SYS_sendmmsg, TIMEOUT_SEND, 0, true, NULL, 0},
	{SYS_connect, TIMEOUT_SEND, 0, true, NULL, 0},
	{SYS_sendfile, TIMEOUT_SEND, 0, true, NULL, 0},
	{SYS_splice, TIMEOUT_RECEIVE, 0, true, NULL, 0},
	/* Of a file in memory, where the kernel minds signals that do not kill (seen not to be
	 * so with 6.18): what it had done it has taken back (shmem_fallocate()). */
	{SYS_fallocate, TIMEOUT_NONE, 0, true, NULL, 0},
	{SYS_io_uring_enter, TIMEOUT_NONE, RING_ARGUMENT, true, decide_ring, 0},
};

const struct blocking_call *blocking_call(long nr)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i].nr == nr)
			return &calls[i];
	return NULL;
}

enum timeout blocking_timeout(
	const struct blocking_call *call, const struct user_regs_struct *regs)
{
	return call->decide ? call->decide(regs) : call->timeout;
}

int blocking_ring_timeout(const struct process *p, const struct user_regs_struct *regs,
	uint64_t *at, struct err *e)
{
	struct io_uring_getevents_arg argument;

	if (tracee_read(p->mem_fd, x86_64_syscall_arg(regs, RING_ARGUMENT), &argument,
		    sizeof(argument), e))
		return err_prefix(e, "cannot read a time-out of process %d", p->pid);
	*at = argument.ts;
	return 0;
}

bool syscall_can_restart(long nr)
{
	return blocking_call(nr);
}

/* "202 0x7f.. 0x0 ..." when blocked in a call, "running" otherwise. */
bool blocked_in_call(pid_t pid, pid_t tid, struct user_regs_struct *regs)
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

uint64_t blocked_sleeps(pid_t pid, pid_t tid)
{
	cleanup_free char *status = procfs_status(pid, tid, NULL);

	return status ? status_number(status, "voluntary_ctxt_switches", 10) : 0;
}

int blocking_socket(const struct process *p, int fd)
{
	cleanup_fd int pidfd = fd_task_open(p->pid, p->task, NULL);

	return pidfd < 0 ? -1 : syscall(SYS_pidfd_getfd, pidfd, fd, 0);
}

int blocking_socket_option(enum timeout kind)
{
	return kind == TIMEOUT_RECEIVE ? SO_RCVTIMEO : SO_SNDTIMEO;
}

void sleep_record_add(
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
