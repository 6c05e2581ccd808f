/* Orders to the lower half's agent (lower/agent.c): through memory of the lower half, and two
 * event descriptors of it that are borrowed. No thread of the program takes part. */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/lower/lower.h"

/* How often a process is looked at whether it is still there. */
#define LOOK_MS 200

#define TABLE(field) (LOWER_SHARED + offsetof(struct lower_table, field))

static int no_answer(struct process *p, int error, struct err *e)
{
	return err_set(e, error, "cannot reach the lower half of process %d", p->pid);
}

static int read_table(struct process *p, uint64_t at, void *data, size_t size, struct err *e)
{
	struct iovec local = {data, size}, remote = {(void *)at, size};

	if (process_vm_readv(p->pid, &local, 1, &remote, 1, 0) == (ssize_t)size)
		return 0;
	return no_answer(p, errno, e);
}

static int write_table(
	struct process *p, uint64_t at, const void *data, size_t size, struct err *e)
{
	struct iovec local = {(void *)data, size}, remote = {(void *)at, size};

	if (!size || process_vm_writev(p->pid, &local, 1, &remote, 1, 0) == (ssize_t)size)
		return 0;
	return no_answer(p, errno, e);
}

static int connect_once(struct process *p, struct err *e)
{
	struct lower_half *lower = p->lower;
	cleanup_fd int pidfd = -1;
	uint32_t size;
	int fds[2];

	if (lower->done_fd >= 0)
		return 0;
	if (read_table(p, TABLE(size), &size, sizeof(size), e) ||
		read_table(p, TABLE(order_fd), fds, sizeof(fds), e))
		return -1;
	if (size != sizeof(struct lower_table))
		return err_set(e, 0,
			"the lower half of process %d is of another build of trecr", p->pid);
	pidfd = syscall(SYS_pidfd_open, p->pid, 0);
	if (pidfd < 0)
		return no_answer(p, errno, e);
	lower->order_fd = syscall(SYS_pidfd_getfd, pidfd, fds[0], 0);
	lower->done_fd = syscall(SYS_pidfd_getfd, pidfd, fds[1], 0);
	if (lower->order_fd < 0 || lower->done_fd < 0)
		return no_answer(p, errno, e);
	return 0;
}

/* The threads that are traced stay behind as zombies, so that a pidfd would not tell. */
static bool has_ended(struct process *p)
{
	struct proc_stat st;

	return procfs_stat(p->pid, p->pid, &st, NULL) || st.state == 'Z' || st.state == 'X';
}

/* Wait until the event descriptor can be read, and take it. The lower half may die of what it
 * was asked to do, and the process with it: that no descriptor tells. */
static int await_done(struct process *p, uint64_t deadline_ns, struct err *e)
{
	struct pollfd fd = {.fd = p->lower->done_fd, .events = POLLIN};
	uint64_t now, count;
	int r;

	for (;;) {
		now = clock_ns(CLOCK_MONOTONIC);
		r = poll(&fd, 1, now < deadline_ns ? LOOK_MS : 0);
		if (r > 0)
			break;
		if (r < 0 && errno != EINTR)
			return no_answer(p, errno, e);
		if (has_ended(p))
			return err_set(e, 0,
				"process %d has ended while its lower half was at work",
				p->pid);
		if (now >= deadline_ns)
			return err_set(e, 0,
				"the GPU work of process %d does not come to an end in time",
				p->pid);
	}
	return read(fd.fd, &count, sizeof(count)) == sizeof(count) ? 0 : no_answer(p, errno, e);
}

static int check_idle(struct process *p, struct err *e)
{
	uint32_t request;

	if (read_table(p, TABLE(order.request), &request, sizeof(request), e))
		return -1;
	if (request == LOWER_IDLE)
		return 0;
	/* The answer to an order that was given up comes late. */
	if (request == LOWER_DONE)
		return await_done(p, 0, NULL) && 0;
	return err_set(e, 0, "the lower half of process %d is still busy with an earlier order",
		p->pid);
}

static int finish_order(struct process *p, struct err *e)
{
	static const uint32_t idle = LOWER_IDLE;
	struct lower_order order;
	struct proc_stat st;

	if (read_table(p, TABLE(order), &order, offsetof(struct lower_order, transfers), e) ||
		write_table(p, TABLE(order.request), &idle, sizeof(idle), e))
		return -1;
	if (!order.result)
		return 0;
	order.failure[sizeof(order.failure) - 1] = 0;
	return err_set(e, 0, "process %d (%s): %s", p->pid,
		procfs_stat(p->pid, p->pid, &st, NULL) ? "?" : st.comm, order.failure);
}

int lower_order(struct process *p, enum lower_request request,
	const struct lower_transfer *transfers, unsigned count, uint64_t deadline_ns,
	struct err *e)
{
	static const uint64_t one = 1;
	uint32_t number = request, n = count;

	BUG_ON(count > LOWER_TRANSFERS);
	if (connect_once(p, e) || check_idle(p, e) ||
		write_table(p, TABLE(order.count), &n, sizeof(n), e) ||
		write_table(
			p, TABLE(order.transfers), transfers, count * sizeof(*transfers), e) ||
		write_table(p, TABLE(order.request), &number, sizeof(number), e))
		return -1;
	if (write(p->lower->order_fd, &one, sizeof(one)) != sizeof(one))
		return no_answer(p, errno, e);
	return await_done(p, deadline_ns, e) || finish_order(p, e) ? -1 : 0;
}
