/*
 * uring/ring_place.h - map a ring at a given address of a process. The kernel maps a ring nowhere but
 * where it chooses itself (io_uring_get_unmapped_area(), io_uring/memmap.c), and does not move such a
 * mapping: so the right place has to be the only place that is left, and all of the address space is
 * mapped for a moment.
 */
#ifndef SUPERVISOR_URING_RING_PLACE_H
#define SUPERVISOR_URING_RING_PLACE_H

#include "supervisor/target/remote.h"

/* All zero but for the bracket that calls are made in. */
struct ring_place {
	struct remote *remote;
	struct buf filled; /* struct vma */
};

/* Map what is free. */
int ring_place_begin(struct ring_place *p, struct err *e);
/* Map @size bytes of the ring @fd of the process at @at, in place of what is mapped there. */
int ring_place_map(struct ring_place *p, uint64_t at, uint64_t size, int prot, int fd,
	uint64_t offset, struct err *e);
/* Unmap what ring_place_begin() has mapped, but for rings. Also after a failure. */
int ring_place_end(struct ring_place *p, struct err *e);

#endif
