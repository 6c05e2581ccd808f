/*
 * place_exhaust.c - blocks of each size are taken until the driver asks the kernel for more,
 * and given back when the place has been filled.
 */
#include "lower/cuda/place_exhaust.h"

#include <stdlib.h>

#include "bringup/core.h"
#include "bringup/space.h"
#include "lower/cuda/cuda.h"
#include "lower/cuda/place_fillers.h"

/* Fillers of the places that are to be empty, until there is no other room. */
static struct filler_list held;

static int keep_or_hold(const struct filler *f)
{
	const struct place *p = place_empty_at(f->address);

	return p ? filler_list_add(&held, f, p->plan_turn) : extra_keep(f);
}

/* All room for whole blocks: until the driver takes a range more, in @f. That takes it long. */
static int use_up_blocks(enum filler_heap heap, void *context, uint64_t size, struct filler *f)
{
	for (;;) {
		uint32_t ranges = table->core->driver_taken->count;

		if (filler_take_in(heap, context, size, f))
			return -1;
		if (table->core->driver_taken->count > ranges)
			return 0;
		if (keep_or_hold(f))
			return -1;
	}
}

/* A block that is free while what is smaller than that is taken: when one is made there, there
 * is no room in others. It is in a range of its own, for device memory or for managed memory.
 */
static struct spare {
	struct filler block, rest;
	int is_made;
} spares[2];

static enum filler_heap heap_of_blocks(enum filler_heap heap)
{
	return heap == FILLER_VARIABLES ? heap : FILLER_MANAGED;
}

int exhaust_prepare(enum filler_heap heap, void *context)
{
	enum filler_heap whole = heap_of_blocks(heap);
	struct spare *s = &spares[whole == FILLER_MANAGED];
	struct filler f;

	if (s->is_made)
		return 0;
	for (uint64_t size = PLACES_RANGE / 2; size > PLACES_BLOCK; size /= 2)
		if (use_up_blocks(whole, context, size, &f) || filler_give(&f))
			return -1;
	if (use_up_blocks(whole, context, PLACES_BLOCK, &s->block) ||
		filler_take_in(whole, context, PLACES_RANGE - PLACES_BLOCK, &s->rest))
		return -1;
	s->is_made = 1;
	return 0;
}

static int give_spares(void)
{
	for (struct spare *s = spares; s < spares + 2; s++) {
		if (s->is_made && (filler_give(&s->block) || filler_give(&s->rest)))
			return -1;
		s->is_made = 0;
	}
	return 0;
}

static int use_up_size(
	enum filler_heap heap, void *context, uint64_t size, const struct spare *spare)
{
	struct filler f;

	for (;;) {
		if (filler_take_in(heap, context, size, &f))
			return -1;
		if (block_is_same(f.address, spare->block.address))
			return filler_give(&f);
		if (keep_or_hold(&f))
			return -1;
	}
}

static uint64_t largest_loose(enum filler_heap heap, const void *context)
{
	uint64_t size = 0;

	for (size_t i = 0; i < saved_places.count; i++) {
		const struct place *p = &saved_places.list[i];

		if (p->is_loose && !p->large && p->heap == heap && p->context == context &&
			p->end - p->start > size)
			size = p->end - p->start;
	}
	return size;
}

static int close_spare(enum filler_heap whole, void *context, struct spare *spare)
{
	uint64_t address = spare->block.address;

	for (unsigned i = 0; i < FILLER_TRIES; i++) {
		if (filler_take_in(whole, context, PLACES_BLOCK, &spare->block))
			return -1;
		if (spare->block.address == address)
			return 0;
		if (keep_or_hold(&spare->block))
			return -1;
	}
	return agent_fail("the driver does not return address %#lx again", address);
}

/* What is smaller than a block, and no larger than @largest, or not much. */
static int use_up_shared(
	enum filler_heap heap, void *context, uint64_t largest, struct spare *spare)
{
	enum filler_heap whole = heap_of_blocks(heap);

	if (filler_give(&spare->block))
		return -1;
	for (uint64_t size = PLACES_PIECE; size >= places_step(heap); size /= 2)
		if (size / 2 < largest && use_up_size(heap, context, size, spare))
			return -1;
	return close_spare(whole, context, spare);
}

/* Whole blocks first: what is smaller finds no new ones then but the spare one. */
int exhaust_room(enum filler_heap heap, void *context)
{
	enum filler_heap whole = heap_of_blocks(heap);
	uint64_t largest = largest_loose(heap, context);
	struct filler f;

	if (use_up_blocks(whole, context, PLACES_BLOCK, &f) || filler_give(&f))
		return -1;
	return largest ? use_up_shared(heap, context, largest, &spares[whole == FILLER_MANAGED])
		       : 0;
}

static int by_turn(const void *a, const void *b)
{
	const struct listed_filler *x = a, *y = b;

	return x->turn < y->turn ? -1 : x->turn > y->turn;
}

/* Of two holes of one size the driver takes the older one: they become
 * empty in the order that they are to be taken in; or, if that was not it, by chance. */
int exhaust_give_back(unsigned way)
{
	int r = 0;

	for (size_t i = 0; way > 2 && way % 2 && i < held.count; i++)
		held.list[i].turn = places_chance(way, held.list[i].turn);
	if (held.count)
		qsort(held.list, held.count, sizeof(*held.list), by_turn);
	for (size_t i = 0; i < held.count && !r; i++)
		r = filler_give(&held.list[i].filler);
	held.count = 0;
	return r;
}

int exhaust_end(void)
{
	if (give_spares())
		return -1;
	filler_list_free(&held);
	return 0;
}
