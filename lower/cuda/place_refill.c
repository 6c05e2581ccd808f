/*
 * place_refill.c - finds for each hole the filler that fits it best, and puts it there.
 */
#include "lower/cuda/place_refill.h"

#include <stdlib.h>

#include "lower/cuda/cuda.h"
#include "lower/cuda/place_fillers.h"
#include "lower/cuda/place_ranges.h"

/* ---- whole blocks ---- */

/* Whole blocks: a large place, or all places of a block. */
struct hole {
	uint64_t at, end;
	size_t first, last;
};

static int is_hole(size_t first, size_t last)
{
	const struct range *r = saved_places.list[first].range;

	return places_all_loose(first, last) && !places_all_loose(r->first, r->last);
}

static size_t find_holes(struct hole *holes)
{
	size_t n = 0;

	for (size_t i = 0, next; i < saved_places.count; i = next) {
		next = places_next_block(&saved_places, i);
		if (is_hole(i, next))
			holes[n++] = (struct hole){block_start(&saved_places.list[i]),
				block_end(&saved_places.list[i]), i, next};
	}
	return n;
}

/* Of device memory, or managed memory, as @like is. */
static struct hole *find_hole(struct hole *holes, size_t count, const struct hole *like,
	uint64_t address, uint64_t size)
{
	int managed = saved_places.list[like->first].heap != FILLER_VARIABLES;

	for (struct hole *h = holes; h < holes + count; h++)
		if (h->at == address && h->end - h->at >= size &&
			(saved_places.list[h->first].heap != FILLER_VARIABLES) == managed)
			return h;
	return NULL;
}

static struct hole *smallest_hole(struct hole *holes, size_t count)
{
	struct hole *smallest = NULL;

	for (struct hole *h = holes; h < holes + count; h++)
		if (h->at < h->end &&
			(!smallest || h->end - h->at < smallest->end - smallest->at))
			smallest = h;
	return smallest;
}

/* No filler is larger than any hole, so it does not matter which one it is placed in. */
static int fill_holes(struct hole *holes, size_t count)
{
	struct hole *h, *found;
	unsigned tries = 0;
	struct filler f;

	while ((h = smallest_hole(holes, count))) {
		const struct place *p = &saved_places.list[h->first];
		uint64_t size = h->end - h->at;

		if (filler_take_in(p->heap, p->context, size, &f))
			return -1;
		found = find_hole(holes, count, h, f.address, size);
		if (!found && ++tries == FILLER_TRIES)
			return agent_fail(
				"the driver does not return address %#lx again", h->at);
		if (found ? place_add_filler(&saved_places.list[found->first], &f)
			  : extra_keep(&f))
			return -1;
		if (found)
			found->at += size;
	}
	return 0;
}

/* ---- parts of blocks ---- */

/* Where a stretch of what is empty begins. */
static int is_ready(const struct place *p)
{
	return p->is_loose && !p->large &&
	       (p == saved_places.list || !p[-1].is_loose || p[-1].end != p->start ||
		       block_start(&p[-1]) != block_start(p));
}

static struct place *find_ready(const struct place *like, uint64_t address)
{
	for (struct place *p = saved_places.list; p < saved_places.list + saved_places.count;
		p++)
		if (is_ready(p) && place_is_alike(p, like) && p->at == address)
			return p;
	return NULL;
}

/* The smallest of a heap, so that as much finds room wherever the driver looks first. */
static struct place *smallest_ready(void)
{
	struct place *smallest = NULL;

	for (struct place *p = saved_places.list; p < saved_places.list + saved_places.count;
		p++)
		if (is_ready(p) &&
			(!smallest || (place_is_alike(p, smallest) &&
					      p->end - p->at < smallest->end - smallest->at)))
			smallest = p;
	return smallest;
}

static int refill_parts(void)
{
	struct place *p, *found;
	unsigned tries = 0;
	struct filler f;

	while ((p = smallest_ready())) {
		uint64_t size = p->end - p->at < PLACES_PIECE ? p->end - p->at : PLACES_PIECE;

		if (filler_take_in(p->heap, p->context, size, &f))
			return -1;
		found = find_ready(p, f.address);
		if (!found && ++tries == FILLER_TRIES)
			return agent_fail(
				"the driver does not return address %#lx again", p->at);
		if (found ? place_add_filler(found, &f) : extra_keep(&f))
			return -1;
		if (!found)
			continue;
		found->at += size;
		found->is_loose = found->at < found->end;
	}
	return 0;
}

/* ---- all of them ---- */

/* For the time being, no place in there is empty. */
static void skip_places(size_t first, size_t last)
{
	for (; first < last; first++)
		saved_places.list[first].is_loose = 0;
}

static void find_dropped(void)
{
	for (struct range *r = saved_places.ranges;
		r < saved_places.ranges + saved_places.range_count; r++) {
		r->is_dropped = places_all_loose(r->first, r->last);
		if (r->is_dropped)
			skip_places(r->first, r->last);
	}
}

static int refill_dropped(void)
{
	for (struct range *r = saved_places.ranges;
		r < saved_places.ranges + saved_places.range_count; r++)
		if (r->is_dropped && range_fill(r))
			return -1;
	return 0;
}

/* A block that is shared is made when there is no room in others: whole blocks are one filler
 * until then. */
static int refill_with(struct hole *holes)
{
	size_t count = find_holes(holes);

	find_dropped();
	if (fill_holes(holes, count))
		return -1;
	for (struct hole *h = holes; h < holes + count; h++)
		skip_places(h->first, h->last);
	if (refill_parts())
		return -1;
	for (struct hole *h = holes; h < holes + count; h++)
		if (!saved_places.list[h->first].large &&
			(place_empty(&saved_places.list[h->first]) ||
				block_fill_shared(h->first, h->last)))
			return -1;
	return refill_dropped();
}

int places_refill(void)
{
	struct hole *holes = malloc((saved_places.count + 1) * sizeof(*holes));
	int r = holes ? refill_with(holes)
		      : agent_fail("no memory for the places of variables");

	free(holes);
	return r;
}
