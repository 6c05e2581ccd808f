/*
 * uring/uring.h - io_uring: saved, and made again.
 *
 * A ring that is new counts from 0, and programs remember their positions: at a restart it does
 * as many empty requests as it had done (uring_advance.h). What is registered with it, the
 * thread that polls it, and its mappings come when the process has its memory
 * (uring/uring_process_restore.c).
 */
#ifndef SUPERVISOR_URING_URING_H
#define SUPERVISOR_URING_URING_H

#include "supervisor/fd/fd.h"
#include "supervisor/uring/uring_inspect.h"

/* An io_uring that has been saved, to see that nothing has happened in it since. */
struct uring_seen {
	pid_t pid, task;
	int fd;
	uint32_t object;
	pid_t sq_thread;
	uint32_t files, buffers; /* registered */
	uint32_t sq_head, cq_tail;
};

/* Wait until what is under way in the ring @s has ended, or only waits. */
int uring_dump_settle(struct fd_dump *d, const struct fd_source *s, struct err *e);

/* Rings that threads of @p know by numbers of their own (IORING_REGISTER_RING_FDS): when all
 * descriptors of @p have been saved. */
int uring_dump_registered(struct fd_dump *d, struct process *p, struct err *e);

/* When all else has been saved: that nothing has happened in the rings meanwhile. */
int uring_dump_finish(struct fd_dump *d, struct err *e);

/* The ring in object @number and its data; NULL: the image is damaged. @data is the caller's.
 */
const struct image_ring *uring_image(
	const struct image *job, uint32_t number, struct buf *data, struct err *e);

/* What is registered with it, and what waits in it: lines. */
const char *uring_lines(const struct image_ring *ring);

/* How many requests wait in it. */
uint32_t uring_waiting(const struct image_ring *ring);

/* The entry of its submission @number. */
const void *uring_image_entry(const struct image_ring *ring, uint32_t number);

/* The row of io_urings in the table of kinds of open files. */
FD_ROW(fd_uring);

#endif
