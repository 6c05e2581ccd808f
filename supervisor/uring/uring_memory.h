/*
 * uring/uring_memory.h - the memory of an io_uring, mapped into this process.
 */
#ifndef SUPERVISOR_URING_URING_MEMORY_H
#define SUPERVISOR_URING_URING_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"
#include "lib/uring_abi.h"

struct ring {
	int fd; /* the caller's */
	uint32_t flags;
	struct io_uring_params p; /* entries and offsets */
	char *rings, *sqes;
	size_t rings_size, sqes_size;
};

/* Flags that decide where what lies. */
#define RING_LAYOUT (IORING_SETUP_SQE128 | IORING_SETUP_CQE32 | IORING_SETUP_NO_SQARRAY)

/* Make a ring. -1, with errno in e->code. */
int ring_setup(uint32_t flags, uint32_t sq_entries, uint32_t cq_entries,
	struct io_uring_params *p, struct err *e);

/* Where things lie in a ring of such flags and sizes: makes one for a moment. */
int ring_layout(struct ring *r, uint32_t flags, uint32_t sq_entries, uint32_t cq_entries,
	struct err *e);

/* Why it cannot be mapped, after mmap(2) has failed with @error. */
int ring_refuse_map(int error, struct err *e);

/* Map @fd, for which ring_layout() has been called. */
int ring_map(struct ring *r, int fd, struct err *e);
void ring_unmap(struct ring *r);

static inline size_t ring_sqe_size(const struct ring *r)
{
	return r->flags & IORING_SETUP_SQE128 ? 128 : 64;
}

static inline size_t ring_cqe_size(const struct ring *r)
{
	return r->flags & IORING_SETUP_CQE32 ? 32 : 16;
}

/* The indices, NULL where there are none. */
static inline uint32_t *ring_array(const struct ring *r)
{
	return r->flags & IORING_SETUP_NO_SQARRAY ? NULL
						  : (uint32_t *)(r->rings + r->p.sq_off.array);
}

static inline uint32_t *ring_at(const struct ring *r, uint32_t offset)
{
	return (uint32_t *)(r->rings + offset);
}

/* A number that the kernel may change meanwhile. */
static inline uint32_t ring_read(const struct ring *r, uint32_t offset)
{
	return __atomic_load_n(ring_at(r, offset), __ATOMIC_ACQUIRE);
}

static inline void ring_write(const struct ring *r, uint32_t offset, uint32_t value)
{
	__atomic_store_n(ring_at(r, offset), value, __ATOMIC_RELEASE);
}

#endif
