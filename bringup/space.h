/*
 * space.h - which addresses of the lower half's window are taken, and by what.
 *
 * The parts (shared/address_windows.h) are given out lowest address first, so the same calls in the
 * same order get the same addresses in every process. Thread-safe; callers hold no other lock.
 */
#ifndef BRINGUP_SPACE_H
#define BRINGUP_SPACE_H

#include <stdint.h>

enum space_part {
	SPACE_OUTSIDE, /* nothing is given out there: what is mapped by address is kept track of
			*/
	SPACE_FOUND,   /* what was in the way in the other parts: none of the lower half's */
	/* The window, in the order of addresses. */
	SPACE_FIXED, /* the fixed places: nothing is given out there either */
	SPACE_LDSO,
	SPACE_LIBC,
	SPACE_HEAP, /* lower/heap.c takes it whole */
	SPACE_STACKS,
	SPACE_DRIVER,
	SPACE_PARTS,
};

#define SPACE_RANGES 16384

/* Taken ranges of a part, sorted, never touching each other. */
struct space_list {
	uint32_t lock;
	uint32_t count;
	struct space_range {
		uint64_t start, end;
	} ranges[SPACE_RANGES];
};

/* The lists of all parts. */
const struct space_list *space_lists(void);

/* Take @size bytes, a multiple of the page size, aligned to 2 MiB when that large (for huge
 * pages). 0: no room. */
uint64_t space_take(enum space_part part, uint64_t size);

/* [start, end) of @part is given only to a request for just that place. 0, or -1: it is not of
 * that part, or there are too many. */
int space_keep(enum space_part part, uint64_t start, uint64_t end);
/* The driver takes address space of a multiple of SPACE_STEP by asking for a step more, less a
 * page, and giving back what alignment to SPACE_STEP leaves over. Where what is left when it
 * asks for @size is to be: the first of all such hints whose addresses are free. Size 0: there
 * are no hints any more. More than SPACE_HINTS are not heard. */
#define SPACE_STEP  (32ul << 20)
#define SPACE_HINTS 16
void space_hint(enum space_part part, uint64_t address, uint64_t size);
/* The hinted address, and its size in *@hinted, if the driver asks for @size in all for that;
 * 0: it does not, or there is no room. */
uint64_t space_take_hinted(enum space_part part, uint64_t size, uint64_t *hinted);

/* Address space that the driver has taken in that way, the oldest first. */
#define SPACE_TAKEN 4096
struct space_taken {
	uint32_t count;
	uint32_t lost; /* there are more */
	struct space_range ranges[SPACE_TAKEN];
};
const struct space_taken *space_taken(void);

/* [start, start + size), which had been taken, is at least in part another's. */
void space_found(uint64_t start, uint64_t size);

/* What lies in [start, start + size) is now mapped, or no longer. Addresses outside the parts
 * are ignored. */
void space_mark(uint64_t start, uint64_t size);
void space_release(uint64_t start, uint64_t size);

#endif
