/*
 * memory/aio_ring_position.h - move the kernel's place in the ring of an AIO context.
 */
#ifndef SUPERVISOR_MEMORY_AIO_RING_POSITION_H
#define SUPERVISOR_MEMORY_AIO_RING_POSITION_H

#include <stdint.h>

#include "ckpt/image.h"
#include "lib/err.h"
#include "lib/util.h"
#include "supervisor/target/remote.h"

/* Of the scratch page of a bracket. */
#define AIO_SCRATCH 4096u

struct aio_ring_access {
	struct remote *remote;
	int mem_fd;
	uint64_t scratch; /* AIO_SCRATCH bytes there */
	int64_t null;     /* its descriptor of /dev/null: aio_open_null() */
};

/* Where an event is, behind the ring's header. */
uint64_t aio_event_at(uint64_t context, uint32_t index);

/* A descriptor in the process, to be closed by aio_close_null(). */
int aio_open_null(struct aio_ring_access *t, struct err *e);
int aio_close_null(struct aio_ring_access *t, struct err *e);

/* Let @count requests end in @context that read nothing: its tail moves on by as many. The head
 * follows it, so that there is room, but for the last @keep: so many are unread to the kernel.
 * Events of the program's own that come meanwhile are added to @others (struct io_event). */
int aio_ring_advance(struct aio_ring_access *t, uint64_t context, uint32_t count, uint32_t keep,
	struct buf *others, struct err *e);

/* The header of the ring at @context: it must be plausible, with a ring of at most @size bytes. */
int aio_read_ring(int mem_fd, uint64_t context, uint64_t size, struct image_aio_ring *ring,
	struct err *e);

#endif
