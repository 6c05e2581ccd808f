/*
 * heap.h - where the driver finds room for variables, managed memory and what it needs itself,
 * as the one for an H200 does (lower/cuda/placement.h): ranges of 32 MiB, in which blocks of
 * 2 MiB are taken, the newest range first, in its smallest hole that fits, of such in the lowest; what is
 * smaller shares blocks, in the smallest hole that fits, of such in the oldest.
 */
#ifndef T_SIM_HEAP_H
#define T_SIM_HEAP_H

#include <stdint.h>

enum heap {
	HEAP_VARIABLES, /* and the driver's own */
	HEAP_MANAGED_VARIABLES,
	HEAP_MANAGED,
	HEAPS,
};

/* Zeroed; 0: there is no more. Each @context has heaps of its own, and so
 * has what is of none (NULL): managed variables. */
uint64_t heap_take(enum heap heap, void *context, uint64_t size);
/* Whole blocks, at least so many bytes. */
uint64_t heap_take_blocks(enum heap heap, uint64_t size);
void heap_give(enum heap heap, uint64_t address, uint64_t size);
/* Addresses of that, for a reservation of @size, a multiple of HEAP_RANGE; 0: there is no room,
 * and no range is made for it. */
uint64_t heap_reserve(uint64_t size);
/* No more. 0, or -1: they are none of the heap's. */
int heap_unreserve(uint64_t address, uint64_t size);
/* What is left over of a reservation that ends at @end, rounded up to a range: room like any
 * other. */
void heap_lend(uint64_t start, uint64_t end);
/* No more; not 0: something lies there. */
int heap_take_back(uint64_t start, uint64_t end);
/* The driver takes address space in multiples of this. */
#define HEAP_RANGE (32ul << 20)

#endif
