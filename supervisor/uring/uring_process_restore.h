/*
 * uring/uring_process_restore.h - what an io_uring takes when its process is there; for the
 * files that do it.
 */
#ifndef SUPERVISOR_URING_URING_PROCESS_RESTORE_H
#define SUPERVISOR_URING_URING_PROCESS_RESTORE_H

#include "supervisor/state/new_process.h"
#include "supervisor/target/remote.h"
#include "supervisor/uring/uring_advance.h"

/* A ring, and the process that it is brought back in. */
struct return_of_ring {
	struct new_process *np;
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

/* io_uring: what needs the process itself, and mappings (uring_process_restore.c). */
int new_process_rings(struct new_process *np);

/* Call @act for each ring of the process, the first time that it is met; it does not know the
 * thread when that is of another process. */
int restore_each_ring(struct new_process *np, int (*act)(struct return_of_ring *r));

/* In a bracket of its thread: make the ring accessible from here. The caller releases it, also
 * after a failure. */
int restore_ring_map(struct return_of_ring *r);
void restore_ring_release(struct return_of_ring *r);

/* Who submits: the ring's thread, or the kernel's thread that polls it. */
int restore_ring_enter(struct ring_driver *d, uint32_t count, struct err *e);
int restore_ring_enter_polled(struct ring_driver *d, uint32_t count, struct err *e);

/* The thread of the process with id @tid; NULL: it has none. */
struct thread *restore_ring_thread(struct return_of_ring *r, int32_t tid);

const struct image_description *restore_ring_description(
	const struct new_process *np, uint32_t index);

/* -1 for a negative @result of a call that was to @what it ("make"). */
static inline int restore_ring_result(
	const struct return_of_ring *r, int64_t result, const char *what)
{
	return result < 0 ? err_set(r->np->e, -result, "cannot %s an io_uring", what) : 0;
}

/* In a bracket of its thread: make a polled ring, in place of what has stood in for it
 * (uring_polled_restore.c). */
int restore_ring_place_polled(struct return_of_ring *r);

/* What is registered with it; and its numbers in threads (uring_register_restore.c). */
int restore_ring_register(struct return_of_ring *r);
int restore_ring_register_thread(struct return_of_ring *r);

/* Mappings of all rings of the process (uring_map_restore.c). */
int restore_ring_mappings(struct return_of_ring *r);

/* Call @act for each line of the ring. */
int restore_each_line(
	struct return_of_ring *r, int (*act)(struct return_of_ring *r, const char *line));

#endif
