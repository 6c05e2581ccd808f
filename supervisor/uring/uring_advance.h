/*
 * uring/uring_advance.h - bring the counters of a new io_uring to where the old ring's were.
 */
#ifndef SUPERVISOR_URING_URING_ADVANCE_H
#define SUPERVISOR_URING_URING_ADVANCE_H

#include "ckpt/image.h"
#include "supervisor/uring/uring_memory.h"

/* Who may submit to it. */
struct ring_driver {
	/* Have the kernel take @count entries, which stand in the queue, and finish what it
	 * can; 0: the latter only. */
	int (*enter)(struct ring_driver *d, uint32_t count, struct err *e);
	struct ring *ring; /* mapped */
	uint32_t cq_head,
		cq_tail; /* where completions are to stand in the end; ring_advance() */
};

/* Let the kernel count as many submissions and completions as @image says (modulo 2^32), by
 * empty requests: some millions of them a second. */
int ring_advance(struct ring_driver *d, const struct image_ring *image, struct err *e);

/* Have it complete a request of which only this is known; there is room for it, or not. */
int ring_complete(struct ring_driver *d, uint64_t user_data, uint32_t result, uint32_t flags,
	struct err *e);

/* Put in place what is in the queues, behind @image, and the program's own counters; if not
 * @whole, requests are to be issued again, and the end of the submission queue comes with them.
 */
void ring_put(const struct ring *r, const struct image_ring *image, bool whole);

/* Issue the @count requests at @sqes; @image counts them last. */
int ring_issue(struct ring_driver *d, const struct image_ring *image, const char *sqes,
	uint32_t count, struct err *e);

#endif
