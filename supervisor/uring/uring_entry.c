/*
 * uring_entry.c - a table of operations, and the check of what each points to.
 */
#include "supervisor/uring/uring_entry.h"

#include <inttypes.h>
#include <linux/time_types.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "lib/procfs.h"

/* What its entry leads to. */
enum {
	AGAIN = 1 << 0,    /* it can be issued once more: all that is needed is still there */
	HAS_FILE = 1 << 1, /* a file, */
	SOCKET = 1 << 2,   /* that is a socket */
	VECTOR = 1 << 3,   /* struct iovec */
	MESSAGE = 1 << 4,  /* struct msghdr */
	TIME = 1 << 5,     /* struct __kernel_timespec */
	SLEEPS = 1 << 6,   /* it waits for something that is no file */
	WAITS = 1 << 7,    /* or for a file */
	READY = AGAIN | HAS_FILE | WAITS,
	TALK = READY | SOCKET,
};

static const struct {
	const char *name;
	unsigned what;
} ops[] = {
	[0] = {"NOP", AGAIN},
	[1] = {"READV", READY | VECTOR},
	[2] = {"WRITEV", READY | VECTOR},
	[3] = {"FSYNC", AGAIN | HAS_FILE},
	[4] = {"READ_FIXED", READY},
	[5] = {"WRITE_FIXED", READY},
	[6] = {"POLL_ADD", READY},
	[7] = {"POLL_REMOVE", AGAIN},
	[8] = {"SYNC_HAS_FILERANGE", AGAIN | HAS_FILE},
	[9] = {"SENDMSG", TALK | MESSAGE},
	[10] = {"RECVMSG", TALK | MESSAGE},
	[11] = {"TIMEOUT", AGAIN | TIME | SLEEPS},
	[12] = {"TIMEOUT_REMOVE", AGAIN},
	[13] = {"ACCEPT", TALK},
	[14] = {"ASYNC_CANCEL", AGAIN},
	[15] = {"LINK_TIMEOUT", AGAIN | TIME | SLEEPS},
	[16] = {"CONNECT", WAITS},
	[17] = {"FALLOCATE", 0},
	[18] = {"OPENAT", WAITS},
	[19] = {"CLOSE", AGAIN | HAS_FILE},
	[22] = {"READ", READY},
	[23] = {"WRITE", READY},
	[26] = {"SEND", TALK},
	[27] = {"RECV", TALK},
	[28] = {"OPENAT2", WAITS},
	[29] = {"EPOLL_CTL", 0},
	[30] = {"SPLICE", WAITS},
	[33] = {"TEE", WAITS},
	[34] = {"SHUTDOWN", AGAIN | HAS_FILE},
	[40] = {"MSG_RING", 0},
	[46] = {"URING_CMD", WAITS},
	[47] = {"SEND_ZC", WAITS},
	[48] = {"SENDMSG_ZC", WAITS},
	[49] = {"READ_MULTISHOT", READY},
	[50] = {"WAITID", AGAIN | SLEEPS},
	[51] = {"FUTEX_WAIT", AGAIN | SLEEPS},
	[52] = {"FUTEX_WAKE", AGAIN},
	[53] = {"FUTEX_WAITV", SLEEPS},
	[58] = {"RECV_ZC", WAITS},
	[59] = {"EPOLL_WAIT", READY},
	[60] = {"READV_FIXED", WAITS},
	[61] = {"WRITEV_FIXED", WAITS},
	[62] = {"PIPE", 0},
};

static unsigned op_parts(const struct io_uring_sqe *sqe)
{
	return sqe->opcode < ARRAY_SIZE(ops) ? ops[sqe->opcode].what : 0;
}

const char *uring_request_name(unsigned op)
{
	static char number[32];

	if (op < ARRAY_SIZE(ops) && ops[op].name)
		return ops[op].name;
	snprintf(number, sizeof(number), "operation %u", op);
	return number;
}

bool uring_request_is_uncounted(const struct io_uring_sqe *sqe)
{
	if (sqe->flags & IOSQE_CQE_SKIP_SUCCESS)
		return true;
	switch (sqe->opcode) {
	case IORING_OP_ACCEPT:
		return sqe->ioprio & IORING_ACCEPT_MULTISHOT;
	case IORING_OP_RECV:
	case IORING_OP_RECVMSG:
		return sqe->ioprio & IORING_RECV_MULTISHOT;
	case IORING_OP_POLL_ADD:
		return sqe->len & IORING_POLL_ADD_MULTI;
	case IORING_OP_TIMEOUT:
		return sqe->timeout_flags & URING_TIMEOUT_MULTISHOT;
	case IORING_OP_URING_CMD:
	case IORING_OP_SEND_ZC:
	case IORING_OP_SENDMSG_ZC:
	case URING_OP_READ_MULTISHOT:
	case URING_OP_RECV_ZC:
		return true;
	default:
		return false;
	}
}

bool uring_request_ends_silently(const struct io_uring_sqe *sqe)
{
	return sqe->flags & IOSQE_CQE_SKIP_SUCCESS && !(op_parts(sqe) & (WAITS | SLEEPS));
}

bool uring_request_sleeps(const struct io_uring_sqe *sqe)
{
	return op_parts(sqe) & SLEEPS;
}

bool uring_request_changes(const struct io_uring_sqe *sqe, const struct io_uring_sqe *other)
{
	bool changes = (sqe->opcode == IORING_OP_POLL_REMOVE &&
			       sqe->len & (IORING_POLL_UPDATE_EVENTS |
						  IORING_POLL_UPDATE_USER_DATA)) ||
		       (sqe->opcode == IORING_OP_TIMEOUT_REMOVE &&
			       sqe->timeout_flags & IORING_TIMEOUT_UPDATE_MASK);

	return changes && sqe->addr == other->user_data;
}

/* ---- memory that the kernel has read when it was issued, and will read again ---- */

/* Stacks are not used farther down in general. */
#define DEPTH (8ul << 20)

static bool is_below(const struct uring_look *u, uint64_t at)
{
	for (size_t i = 0; i < u->process->thread_count; i++) {
		uint64_t sp = u->process->threads[i].regs.rsp;

		if (at < sp && sp - at < DEPTH)
			return true;
	}
	return false;
}

/* A function that has returned has left it behind: it has been used for other things since. */
static bool is_dead_stack(const struct uring_look *u, uint64_t at)
{
	struct vma_list vmas = {0};
	bool dead = false;

	if (!is_below(u, at))
		return false;
	if (procfs_maps(u->s->task, &vmas, NULL))
		return true;
	for (size_t i = 0; i < vmas.count; i++) {
		const struct vma *v = &vmas.v[i];

		for (size_t k = 0;
			at >= v->start && at < v->end && k < u->process->thread_count; k++) {
			uint64_t sp = u->process->threads[k].regs.rsp;

			dead |= sp > at && sp < v->end;
		}
	}
	vma_list_free(&vmas);
	return dead;
}

static int refuse_lost(const struct io_uring_sqe *sqe, struct err *e)
{
	return err_set(e, 0,
		"a request (%s) waits in it, and its arguments are no longer in the program's "
		"memory",
		uring_request_name(sqe->opcode));
}

static int read_again(const struct uring_look *u, const struct io_uring_sqe *sqe, uint64_t at,
	void *data, size_t size, struct err *e)
{
	if (!is_dead_stack(u, at) && !tracee_read(u->process->mem_fd, at, data, size, NULL))
		return 0;
	return refuse_lost(sqe, e);
}

static bool is_there(const struct uring_look *u, uint64_t at, uint64_t size)
{
	char byte;

	return !size ||
	       (at + size > at && !tracee_read(u->process->mem_fd, at, &byte, 1, NULL) &&
		       !tracee_read(u->process->mem_fd, at + size - 1, &byte, 1, NULL));
}

/* Of one vector (UIO_MAXIOV in the kernel). */
#define PARTS 1024

static int check_vector(const struct uring_look *u, const struct io_uring_sqe *sqe, uint64_t at,
	uint64_t count, struct err *e)
{
	struct iovec v[PARTS];

	if (count > PARTS)
		return refuse_lost(sqe, e);
	if (count && read_again(u, sqe, at, v, count * sizeof(*v), e))
		return -1;
	for (uint64_t i = 0; i < count; i++)
		if (!is_there(u, (uintptr_t)v[i].iov_base, v[i].iov_len))
			return refuse_lost(sqe, e);
	return 0;
}

static int check_message(
	const struct uring_look *u, const struct io_uring_sqe *sqe, struct err *e)
{
	struct msghdr m;

	if (read_again(u, sqe, sqe->addr, &m, sizeof(m), e))
		return -1;
	if (!is_there(u, (uintptr_t)m.msg_name, m.msg_namelen) ||
		!is_there(u, (uintptr_t)m.msg_control, m.msg_controllen))
		return refuse_lost(sqe, e);
	return check_vector(u, sqe, (uintptr_t)m.msg_iov, m.msg_iovlen, e);
}

static int read_time(const struct uring_look *u, const struct io_uring_sqe *sqe,
	struct __kernel_timespec *t, struct err *e)
{
	if (read_again(u, sqe, sqe->addr, t, sizeof(*t), e))
		return -1;
	return t->tv_sec < 0 || t->tv_nsec < 0 || t->tv_nsec >= 1000000000 ? refuse_lost(sqe, e)
									   : 0;
}

/* How often or after how many completions it ends is counted by the kernel alone. */
static int check_time(const struct uring_look *u, const struct io_uring_sqe *sqe, struct err *e)
{
	bool again = sqe->timeout_flags & URING_TIMEOUT_MULTISHOT;
	struct __kernel_timespec t;

	if (sqe->opcode == IORING_OP_TIMEOUT && sqe->off > !again)
		return err_set(e, 0,
			"a time-out waits in it that counts (%" PRIu64
			"), and the kernel does not show how far it is",
			(uint64_t)sqe->off);
	return read_time(u, sqe, &t, e);
}

bool uring_request_ends_at(const struct uring_look *u, const struct io_uring_sqe *sqe,
	clockid_t *clock, uint64_t *ns)
{
	struct __kernel_timespec t;

	if (!(op_parts(sqe) & TIME) || !(sqe->timeout_flags & IORING_TIMEOUT_ABS) ||
		sqe->timeout_flags & IORING_TIMEOUT_REALTIME || read_time(u, sqe, &t, NULL))
		return false;
	*clock =
		sqe->timeout_flags & IORING_TIMEOUT_BOOTTIME ? CLOCK_BOOTTIME : CLOCK_MONOTONIC;
	*ns = t.tv_sec * 1000000000ull + t.tv_nsec;
	return true;
}

/* ---- its file ---- */

static char *find_file(const struct uring_look *u, const struct io_uring_sqe *sqe)
{
	cleanup_free char *path = xasprintf("/proc/%d/fd/%d", u->s->task, sqe->fd);
	uint32_t slot = sqe->fd;
	char *name;

	if (!(sqe->flags & IOSQE_FIXED_FILE))
		return read_link(path, NULL);
	name = uring_info_slot(&u->info, "UserFiles", &slot);
	if (slot != (uint32_t)sqe->fd)
		free(steal_ptr(name));
	return name;
}

static int check_file(const struct uring_look *u, const struct io_uring_sqe *sqe, struct err *e)
{
	cleanup_free char *name = find_file(u, sqe);
	bool socket = name && !strncmp(name, "socket:", 7);

	if (name && (socket || !(op_parts(sqe) & SOCKET)))
		return 0;
	return err_set(e, 0,
		"a request (%s) waits in it for a file whose descriptor (%d) has been closed, "
		"which is not supported",
		uring_request_name(sqe->opcode), sqe->fd);
}

/* ---- */

/* What it has done in part is told by nothing. */
static bool may_be_half_done(const struct io_uring_sqe *sqe)
{
	return op_parts(sqe) & SOCKET && sqe->opcode != IORING_OP_ACCEPT &&
	       sqe->msg_flags & MSG_WAITALL;
}

int uring_request_check(
	const struct uring_look *u, const struct io_uring_sqe *sqe, struct err *e)
{
	const char *name = uring_request_name(sqe->opcode);
	unsigned w = op_parts(sqe);

	if (!(w & AGAIN))
		return err_set(e, 0,
			"a request (%s) waits in it that cannot be issued again, which is not "
			"supported",
			name);
	if (may_be_half_done(sqe))
		return err_set(e, 0,
			"a request (%s with MSG_WAITALL) waits in it, and the kernel does not "
			"show how much of it has been done",
			name);
	if ((w & HAS_FILE && check_file(u, sqe, e)) || (w & TIME && check_time(u, sqe, e)) ||
		(w & VECTOR && check_vector(u, sqe, sqe->addr, sqe->len, e)) ||
		(w & MESSAGE && check_message(u, sqe, e)))
		return -1;
	return 0;
}
