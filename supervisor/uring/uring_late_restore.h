/*
 * uring/uring_late_restore.h - what is done to an io_uring on its way back
 * (uring_late_restore.c, uring_requests.c).
 */
#ifndef SUPERVISOR_URING_URING_LATE_RESTORE_H
#define SUPERVISOR_URING_URING_LATE_RESTORE_H

#include "supervisor/state/restore_one.h"
#include "supervisor/target/remote.h"
#include "supervisor/uring/uring_advance.h"

/* A ring, and the process that it is brought back in. */
struct return_of_ring {
	struct restore_one *one;
	const struct image_fd *fds; /* of the process */
	size_t fd_count;
	uint32_t description;
	int number; /* a descriptor of the process that leads to it */
	const struct image_ring *image;
	struct thread *thread;
	struct remote remote;
	uint64_t scratch;
	int fd; /* here */
	struct ring ring;
	struct ring_driver driver;
	struct buf requests; /* entries of requests that are issued again */
	uint32_t times;      /* of them that needed time in the scratch memory */
};

/* Call @act for each ring of the process, the first time that it is met; it does not know the
 * thread when that is of another process. */
int restore_each_ring(struct restore_one *one, int (*act)(struct return_of_ring *r));

/* In a bracket of its thread: make the ring accessible from here. The caller releases it, also
 * after a failure. */
int restore_ring_map(struct return_of_ring *r);
void restore_ring_release(struct return_of_ring *r);

/* Who submits: the ring's thread, or the one that polls it. */
int restore_ring_enter(struct ring_driver *d, uint32_t count, struct err *e);
int restore_ring_enter_polled(struct ring_driver *d, uint32_t count, struct err *e);

/* Call @act for each line of the ring. */
int restore_each_line(
	struct return_of_ring *r, int (*act)(struct return_of_ring *r, const char *line));

#endif
