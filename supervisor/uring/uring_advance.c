/*
 * uring_advance.c - requests that do nothing are submitted until the counters are as in the
 * old ring, and its memory is filled.
 */
#include "supervisor/uring/uring_advance.h"

#include <errno.h>
#include <string.h>

#include "lib/util.h"

/* Empty requests are all zeros. */
_Static_assert(IORING_OP_NOP == 0, "an empty request");

/* At once from another ring: as many as fit into its queue. */
#define POSTS 4096

static void forget_all(const struct ring *r)
{
	ring_write(r, r->p.cq_off.head, ring_read(r, r->p.cq_off.tail));
}

/* All completions but those to be unread in the end: the kernel looks for room in advance, and
 * would continue where it had found some (io_cqe_cache_refill(), io_uring/io_uring.c). */
static void forget_completions(const struct ring_driver *d)
{
	uint32_t tail = ring_read(d->ring, d->ring->p.cq_off.tail);
	bool kept = tail - d->cq_head <= d->cq_tail - d->cq_head;

	ring_write(d->ring, d->ring->p.cq_off.head, kept ? d->cq_head : tail);
}

static void prepare_entries(const struct ring *r, bool silent)
{
	memset(r->sqes, 0, r->sqes_size);
	for (uint32_t i = 0; i < r->p.sq_entries; i++) {
		r->sqes[i * ring_sqe_size(r) + 1] = silent ? IOSQE_CQE_SKIP_SUCCESS : 0;
		if (ring_array(r))
			ring_array(r)[i] = i;
	}
}

static int submit_entries(struct ring_driver *d, uint32_t count, struct err *e)
{
	const struct ring *r = d->ring;
	uint32_t tail = ring_read(r, r->p.sq_off.tail) + count;

	ring_write(r, r->p.sq_off.tail, tail);
	if (d->enter(d, count, e))
		return -1;
	if (ring_read(r, r->p.sq_off.head) != tail)
		return err_set(e, 0, "the kernel does not take empty requests");
	forget_completions(d);
	return 0;
}

/* @count requests, each with a completion if not @silent. */
static int run_empty(struct ring_driver *d, uint32_t count, bool silent, struct err *e)
{
	uint32_t most = d->ring->p.sq_entries;

	if (count)
		prepare_entries(d->ring, silent);
	for (uint32_t n; count; count -= n) {
		n = count < most ? count : most;
		if (submit_entries(d, n, e))
			return -1;
	}
	return 0;
}

/* ---- completions without requests: messages of another ring (IORING_OP_MSG_RING) ---- */

struct post {
	uint64_t user_data;
	uint32_t result, flags;
};

static void write_post(const struct ring *from, uint32_t i, int to, const struct post *post)
{
	struct io_uring_sqe *sqe = (struct io_uring_sqe *)from->sqes + i;

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_MSG_RING;
	sqe->flags = IOSQE_CQE_SKIP_SUCCESS;
	sqe->fd = to;
	sqe->len = post->result;
	sqe->off = post->user_data;
	if (post->flags) {
		sqe->rw_flags = URING_MSG_RING_FLAGS_PASS;
		sqe->file_index = post->flags;
	}
	ring_array(from)[i] = i;
}

static int post_some(
	struct ring *from, int to, const struct post *post, uint32_t count, struct err *e)
{
	uint32_t tail = ring_read(from, from->p.sq_off.tail);
	long done;

	for (uint32_t i = 0; i < count; i++)
		write_post(from, (tail + i) & (from->p.sq_entries - 1), to, post);
	ring_write(from, from->p.sq_off.tail, tail + count);
	done = syscall(SYS_io_uring_enter, from->fd, count, 0, IORING_ENTER_GETEVENTS, NULL, 0);
	if (done < 0 || done != count)
		return err_set(e, done < 0 ? errno : 0, "cannot fill an io_uring");
	/* A request that succeeds says nothing. EOVERFLOW: it has been put with completions
	 * that have no room.
	 */
	forget_all(from);
	return 0;
}

static int post_completions(struct ring_driver *d, struct ring *from, const struct post *post,
	uint32_t count, bool keep, struct err *e)
{
	uint32_t most = d->ring->p.cq_entries;

	most = most < POSTS ? most : POSTS;
	for (uint32_t n; count; count -= n) {
		n = count < most ? count : most;
		if (post_some(from, d->ring->fd, post, n, e) || d->enter(d, 0, e))
			return -1;
		if (!keep)
			forget_completions(d);
	}
	return 0;
}

static int post_all(struct ring_driver *d, const struct post *what, uint32_t count, bool keep,
	struct err *e)
{
	cleanup_fd int fd = -1;
	struct ring from;
	int failed;

	if (!count)
		return 0;
	if (ring_layout(&from, 0, POSTS, 2 * POSTS, e))
		return -1;
	fd = ring_setup(0, POSTS, 2 * POSTS, &from.p, e);
	if (fd < 0 || ring_map(&from, fd, e))
		return -1;
	failed = post_completions(d, &from, what, count, keep, e);
	ring_unmap(&from);
	return failed;
}

/* ---- */

int ring_advance(struct ring_driver *d, const struct image_ring *image, struct err *e)
{
	static const struct post nothing;
	const uint32_t sq = image->sq_head, cq = image->cq_tail, both = sq < cq ? sq : cq;
	const struct ring *r = d->ring;

	d->cq_head = image->cq_head;
	d->cq_tail = image->cq_tail;
	forget_completions(d);
	if (run_empty(d, both, false, e) || run_empty(d, sq - both, true, e) ||
		post_all(d, &nothing, cq - both, false, e))
		return -1;
	if (ring_read(r, r->p.sq_off.head) != sq || ring_read(r, r->p.cq_off.tail) != cq)
		return err_set(e, 0,
			"the counters of an io_uring come to %u and %u instead of %u and %u",
			ring_read(r, r->p.sq_off.head), ring_read(r, r->p.cq_off.tail), sq, cq);
	return 0;
}

int ring_complete(struct ring_driver *d, uint64_t user_data, uint32_t result, uint32_t flags,
	struct err *e)
{
	const struct post one = {user_data, result, flags};

	return post_all(d, &one, 1, true, e);
}

static const char *put_entries(const struct ring *r, const struct image_ring *image)
{
	const char *from = (const char *)(image + 1);
	const char *array = from + r->sqes_size + r->p.cq_entries * ring_cqe_size(r);

	memcpy(r->sqes, from, r->sqes_size);
	if (ring_array(r))
		memcpy(ring_array(r), array, r->p.sq_entries * sizeof(uint32_t));
	return from + r->sqes_size;
}

void ring_put(const struct ring *r, const struct image_ring *image, bool whole)
{
	const char *cqes = put_entries(r, image);

	memcpy(r->rings + r->p.cq_off.cqes, cqes, r->p.cq_entries * ring_cqe_size(r));
	ring_write(r, r->p.sq_off.dropped, image->sq_dropped);
	ring_write(r, r->p.cq_off.overflow, image->cq_overflow);
	ring_write(r, r->p.cq_off.flags, image->cq_flags);
	ring_write(r, r->p.cq_off.head, image->cq_head);
	if (whole)
		ring_write(r, r->p.sq_off.tail, image->sq_tail);
}

int ring_issue(struct ring_driver *d, const struct image_ring *image, const char *sqes,
	uint32_t count, struct err *e)
{
	const struct ring *r = d->ring;
	uint32_t head = image->sq_head - count, mask = r->p.sq_entries - 1;
	size_t size = ring_sqe_size(r);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t slot = (head + i) & mask;

		memcpy(r->sqes + slot * size, sqes + i * size, size);
		if (ring_array(r))
			ring_array(r)[slot] = slot;
	}
	ring_write(r, r->p.sq_off.tail, image->sq_head);
	if (d->enter(d, count, e))
		return -1;
	if (ring_read(r, r->p.sq_off.head) != image->sq_head)
		return err_set(e, 0, "the kernel does not take the requests that waited");
	(void)put_entries(r, image);
	ring_write(r, r->p.sq_off.tail, image->sq_tail);
	return 0;
}
