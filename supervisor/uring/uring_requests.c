/*
 * Requests that waited in an io_uring are issued once more, when all processes have their
 * memory and their descriptors: what they wait for may be there already.
 */
#include "supervisor/uring/uring_requests.h"

#include <inttypes.h>
#include <linux/time_types.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/uring/uring.h"
#include "supervisor/uring/uring_process_restore.h"

/* A time-out that was to end at a time by this machine's clocks ends after what was left. */
static int set_time(struct return_of_ring *r, struct io_uring_sqe *sqe, uint64_t left)
{
	const struct __kernel_timespec time = {left / 1000000000, left % 1000000000};

	sqe->timeout_flags &= ~IORING_TIMEOUT_ABS;
	sqe->addr = r->scratch + r->times++ * sizeof(time);
	return tracee_write(r->np->process.mem_fd, sqe->addr, &time, sizeof(time), r->np->e);
}

static int add_request(struct return_of_ring *r, const char *line)
{
	size_t size = ring_sqe_size(&r->ring);
	uint32_t number;
	uint64_t left;
	int fields = sscanf(line, "request %" SCNu32 " %" SCNu64, &number, &left);
	struct io_uring_sqe *sqe;

	if (fields < 1)
		return 0;
	sqe = buf_grow(&r->requests, size);
	memcpy(sqe, uring_image_entry(r->image, number), size);
	return fields == 2 ? set_time(r, sqe, left) : 0;
}

static int issue_requests(struct return_of_ring *r, uint32_t count)
{
	r->scratch = remote_scratch(
		&r->remote, align_up(count * sizeof(struct __kernel_timespec), 4096), r->np->e);
	if (!r->scratch || restore_ring_map(r) || restore_each_line(r, add_request))
		return -1;
	r->driver.enter = r->image->flags & IORING_SETUP_SQPOLL ? restore_ring_enter_polled
								: restore_ring_enter;
	return ring_issue(&r->driver, r->image, r->requests.data, count, r->np->e);
}

static int issue_again(struct return_of_ring *r)
{
	uint32_t count = uring_waiting(r->image);
	struct err *e = r->np->e;
	int failed;

	if (!count || !r->thread)
		return 0;
	if (remote_begin(&r->remote, &r->np->process, r->thread, e))
		return -1;
	failed = issue_requests(r, count);
	restore_ring_release(r);
	buf_free(&r->requests);
	r->times = 0;
	if (remote_end(&r->remote, failed ? NULL : e) || failed)
		return err_prefix(e, "descriptor %d", r->number);
	return 0;
}

int new_process_requests(struct new_process *np)
{
	return restore_each_ring(np, issue_again);
}
