/*
 * place_ranges.c - opens a range by something large enough, and divides it into the places
 * that were in it.
 */
#include "lower/cuda/place_ranges.h"

#include "bringup/core.h"
#include "lower/cuda/cuda.h"
#include "lower/cuda/place_fillers.h"

/* ---- blocks ---- */

static int place_fill(struct place *p)
{
	for (uint64_t at = p->start, next; at < p->end; at = next) {
		next = p->large || p->end - at < PLACES_PIECE ? p->end : at + PLACES_PIECE;
		if (place_take(p, at, next))
			return -1;
	}
	return 0;
}

/* A block is made by what finds no room in others, and goes with the last that lies in it: its
 * upper half is kept while the lower one is filled. */
int block_fill_shared(size_t first, size_t last)
{
	struct place *p = &saved_places.list[first], *end = &saved_places.list[last];
	uint64_t start = block_start(p);
	struct filler low, high;
	int is_held = 1;

	if (filler_take_at(p->heap, p->context, PLACES_PIECE, start, &low) ||
		filler_take_at(
			p->heap, p->context, PLACES_PIECE, start + PLACES_PIECE, &high) ||
		filler_give(&low))
		return -1;
	for (; p < end; p++) {
		if (p->context != saved_places.list[first].context ||
			p->heap != saved_places.list[first].heap)
			return agent_fail("variables of two contexts lie in one block");
		/* What begins in the lower half and ends in the upper one has something
		 * before it, or is in two pieces. */
		if (is_held && p->end > start + PLACES_PIECE) {
			is_held = 0;
			if (p->start == start && place_take(p, start, start + PLACES_PIECE))
				return -1;
			if (filler_give(&high))
				return -1;
			if (p->start == start) {
				if (p->end > start + PLACES_PIECE &&
					place_take(p, start + PLACES_PIECE, p->end))
					return -1;
				continue;
			}
		}
		if (place_fill(p))
			return -1;
	}
	return 0;
}

/* ---- ranges ---- */

/* The driver reserves a range when it has no other room: the hint has it take this one. All of
 * it but the last block, in @tail, is free then. */
static int open_range(const struct range *r, struct filler *tail)
{
	const struct place *p = &saved_places.list[r->first];
	struct filler all;
	int result;

	table->core->driver_hint(r->start, r->end - r->start);
	result = filler_take_at(
		p->heap, p->context, r->end - r->start - PLACES_BLOCK, r->start, &all);
	table->core->driver_hint(0, 0);
	if (result ||
		filler_take_at(p->heap, p->context, PLACES_BLOCK, r->end - PLACES_BLOCK, tail))
		return -1;
	return filler_give(&all);
}

static int fill_whole(struct place *p)
{
	int r;

	table->core->driver_hint(p->start, p->end - p->start);
	r = place_fill(p);
	table->core->driver_hint(0, 0);
	return r;
}

int range_fill(const struct range *r)
{
	struct filler tail;

	if (place_is_whole(&saved_places.list[r->first]))
		return fill_whole(&saved_places.list[r->first]);
	if (open_range(r, &tail))
		return -1;
	for (size_t i = r->first, next; i < r->last; i = next) {
		struct place *p = &saved_places.list[i];

		next = places_next_block(&saved_places, i);
		if (block_end(p) == r->end && filler_give(&tail))
			return -1;
		if (p->large ? place_fill(p) : block_fill_shared(i, next))
			return -1;
	}
	return 0;
}
