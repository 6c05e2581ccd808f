/*
 * An io_uring at a restart: made where all descriptors are, so that processes share it as they
 * did; all else comes later (uring/uring_process_restore.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/notices.h"
#include "supervisor/fd/fd.h"
#include "supervisor/fd/objects_restore.h"
#include "supervisor/uring/uring.h"

/* So many empty requests a second at least. */
#define SPEED 2000000u

static size_t entry_size(const struct image_ring *i)
{
	return i->flags & IORING_SETUP_SQE128 ? 128 : 64;
}

static size_t completion_size(const struct image_ring *i)
{
	return i->flags & IORING_SETUP_CQE32 ? 32 : 16;
}

static size_t data_size(const struct image_ring *i)
{
	size_t sqe = entry_size(i);
	size_t cqe = completion_size(i);
	size_t array = i->flags & IORING_SETUP_NO_SQARRAY ? 0 : sizeof(uint32_t);

	return sizeof(*i) + i->sq_entries * (sqe + array) + i->cq_entries * cqe;
}

static bool is_size(uint32_t entries, uint32_t most)
{
	return entries && entries <= most && !(entries & (entries - 1));
}

#define KNOWN_FLAGS                                                                            \
	(IORING_SETUP_IOPOLL | IORING_SETUP_SQPOLL | IORING_SETUP_SQ_AFF |                     \
		IORING_SETUP_SUBMIT_ALL | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SQE128 |    \
		IORING_SETUP_CQE32 | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | \
		IORING_SETUP_NO_SQARRAY)

const struct image_ring *uring_image(
	const struct image *job, uint32_t number, struct buf *data, struct err *e)
{
	const struct image_object *o = fd_object_info(job, number, IMAGE_OBJECT_URING, e);
	const struct image_ring *ring;

	if (!o)
		return NULL;
	/* The end of its last line, too. */
	if (o->size < sizeof(*ring) || o->size > 1u << 28 ||
		fd_contents(job, number, o->size, buf_grow(data, o->size + 1), e)) {
		err_prefix(e, "an io_uring");
		return NULL;
	}
	ring = data->data;
	if (ring->flags & ~KNOWN_FLAGS || !is_size(ring->sq_entries, 32768) ||
		!is_size(ring->cq_entries, 65536) || data_size(ring) > o->size ||
		ring->cq_tail - ring->cq_head > ring->cq_entries ||
		uring_waiting(ring) > ring->sq_entries) {
		err_set(e, 0, "the image is damaged: an io_uring of impossible size");
		return NULL;
	}
	return ring;
}

const char *uring_lines(const struct image_ring *ring)
{
	return (const char *)ring + data_size(ring);
}

uint32_t uring_waiting(const struct image_ring *ring)
{
	uint32_t count = 0;

	for (const char *p = uring_lines(ring); p && *p; p = strchr(p, '\n')) {
		p += *p == '\n';
		count += !strncmp(p, "request ", 8);
	}
	return count;
}

const void *uring_image_entry(const struct image_ring *ring, uint32_t number)
{
	const char *sqes = (const char *)(ring + 1),
		   *cqes = sqes + ring->sq_entries * entry_size(ring);
	uint32_t slot = number & (ring->sq_entries - 1), index;

	if (!(ring->flags & IORING_SETUP_NO_SQARRAY)) {
		memcpy(&index,
			cqes + ring->cq_entries * completion_size(ring) + slot * sizeof(index),
			sizeof(index));
		slot = index & (ring->sq_entries - 1);
	}
	return sqes + slot * entry_size(ring);
}

int fd_uring_check(const struct fd_check *c, const struct image_description *x, struct err *e)
{
	cleanup_buf struct buf data = {0};
	const struct image_ring *ring = uring_image(c->job, x->object, &data, e);
	struct io_uring_params p = {0};
	cleanup_fd int fd = -1;
	uint32_t most;

	if (!ring)
		return -1;
	fd = ring_setup(ring->flags & RING_LAYOUT, ring->sq_entries, ring->cq_entries, &p, e);
	if (fd < 0)
		return -1;
	most = ring->sq_head > ring->cq_tail ? ring->sq_head : ring->cq_tail;
	if (most > 10 * SPEED)
		notice_printf(c->notice,
			"descriptor %d: an io_uring that has done %u requests takes up to %u s "
			"to be brought back",
			c->fd, most, most / SPEED);
	return 0;
}

/* A ring that is a single thread's becomes so when that is there; a polled one is made
 * anew then, as its thread is one of the process. */
int fd_uring_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	cleanup_buf struct buf data = {0};
	const struct image_ring *ring = uring_image(r->job, x->object, &data, e);
	struct io_uring_params p = {0};
	uint32_t flags;
	int fd;

	if (!ring)
		return -1;
	flags = ring->flags & ~(IORING_SETUP_SQPOLL | IORING_SETUP_SQ_AFF);
	if (flags & IORING_SETUP_SINGLE_ISSUER)
		flags |= IORING_SETUP_R_DISABLED;
	fd = ring_setup(flags, ring->sq_entries, ring->cq_entries, &p, e);
	return fd < 0 ? -1 : fd_lift_into(r, x - r->descriptions, fd, e);
}

void fd_uring_show(const struct image *job, const struct image_description *x, struct buf *out)
{
	cleanup_buf struct buf data = {0};
	const struct image_ring *ring = uring_image(job, x->object, &data, NULL);

	if (!ring) {
		buf_printf(out, "io_uring, damaged");
		return;
	}
	buf_printf(out, "io_uring of %u and %u entries, %u requests so far", ring->sq_entries,
		ring->cq_entries, ring->sq_head);
	if (ring->flags & IORING_SETUP_SQPOLL)
		buf_printf(out, ", polled");
	if (ring->sq_tail != ring->sq_head)
		buf_printf(out, ", %u to be submitted", ring->sq_tail - ring->sq_head);
	if (ring->cq_tail != ring->cq_head)
		buf_printf(out, ", %u unread", ring->cq_tail - ring->cq_head);
	if (uring_waiting(ring))
		buf_printf(out, ", %u that wait", uring_waiting(ring));
}
