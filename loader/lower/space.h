/*
 * space.h - who has which addresses of the lower half's window.
 *
 * The parts (loader/windows.h) are given out lowest address first, so the same calls in the
 * same order get the same addresses in every process. Thread-safe; callers hold no other lock.
 */
#ifndef LOADER_LOWER_SPACE_H
#define LOADER_LOWER_SPACE_H

#include <stdint.h>

enum space_part {
	SPACE_LDSO,
	SPACE_LIBC,
	SPACE_STACKS,
	SPACE_DRIVER,
	SPACE_OUTSIDE, /* nothing is given out there: what is mapped by address is kept track of
			*/
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

/* What is mapped outside of the window. */
const struct space_list *space_outside(void);

/* Take @size bytes, a multiple of the page size, aligned to 2 MiB when that large (for huge
 * pages). 0: no room. */
uint64_t space_take(enum space_part part, uint64_t size);

/* From now on, what is taken from @part and no smaller than @step lies so that aligning it to
 * @step gives @address, a multiple of it, or if there is no room, the next multiple with room.
 * 0: it lies where it would again. */
void space_wish(enum space_part part, uint64_t address, uint64_t step);

/* What lies in [start, start + size) is now mapped, or no longer. Addresses outside the parts
 * are ignored. */
void space_mark(uint64_t start, uint64_t size);
void space_release(uint64_t start, uint64_t size);

#endif
