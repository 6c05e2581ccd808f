#include "lower/cuda/placement.h"

#include <limits.h>
#include <stdlib.h>

#include "bringup/core.h"
#include "bringup/space.h"
#include "lower/cuda/cuda.h"
#include "lower/cuda/saved_places.h"
#include "lower/records_alloc.h"

/* Fillers of blocks that are shared are no larger. */
#define PIECE (1ul << 20)

/* So often the driver may find room elsewhere. */
#define TRIES 1024

static struct places places;

/* Fillers of what the driver has beside the places. */
static struct filler *extras;
static size_t extra_count, extra_room;

int placement_save(struct cuda_state *s)
{
	const struct space_taken *taken = table->core->driver_taken;

	s->range_count = 0;
	if (records_reserve(
		    (void **)&s->ranges, &s->range_room, taken->count, sizeof(*s->ranges)))
		return agent_fail("no memory to note where the driver has its variables");
	for (uint32_t i = 0; i < taken->count; i++)
		s->ranges[s->range_count++] =
			(struct cuda_range){taken->ranges[i].start, taken->ranges[i].end};
	return 0;
}

int placement_keep(struct cuda_state *s)
{
	if (places_find(&places, s))
		return -1;
	for (size_t i = 0; i < places.range_count; i++)
		if (table->core->driver_keep(places.ranges[i].start, places.ranges[i].end))
			return agent_fail("addresses at %#lx, which the driver had, are none "
					  "that it can be given",
				places.ranges[i].start);
	return 0;
}

/* ---- fillers ---- */

static int take(enum filler_heap heap, void *context, uint64_t size, struct filler *f)
{
	int r = CUDA(cuCtxSetCurrent, (void *))(context);

	return r ? cuda_failed("cuCtxSetCurrent", r) : filler_take(heap, size, context, f);
}

static int keep_extra(const struct filler *f)
{
	if (extra_count == extra_room) {
		size_t room = extra_room ? 2 * extra_room : 64;
		struct filler *more = realloc(extras, room * sizeof(*more));

		if (!more)
			return agent_fail("no memory for the places of variables");
		extras = more;
		extra_room = room;
	}
	extras[extra_count++] = *f;
	return 0;
}

static int is_same_block(uint64_t address, uint64_t other)
{
	return places_down(address, PLACES_BLOCK) == places_down(other, PLACES_BLOCK);
}

/* Small holes in blocks that are not the one of @address. */
static int use_up(enum filler_heap heap, void *context, uint64_t address)
{
	struct filler f;

	for (uint64_t size = PIECE; size >= places_step(heap); size /= 2) {
		for (;;) {
			if (take(heap, context, size, &f))
				return -1;
			if (is_same_block(f.address, address))
				break;
			if (keep_extra(&f))
				return -1;
		}
		if (filler_give(&f))
			return -1;
	}
	return 0;
}

/* A filler at @address: where the driver finds room before, that is filled. */
static int take_at(
	enum filler_heap heap, void *context, uint64_t size, uint64_t address, struct filler *f)
{
	uint64_t first = 0;

	for (unsigned i = 0; i < TRIES; i++) {
		if (take(heap, context, size, f))
			return -1;
		if (f->address == address)
			return 0;
		first = first ? first : f->address;
		if (keep_extra(f))
			return -1;
		if (!i && size < PIECE && use_up(heap, context, address))
			return -1;
	}
	return agent_fail(
		"the driver gives %#lx, and never %#lx, for %#lx bytes", first, address, size);
}

static int add_filler(struct place *p, const struct filler *f)
{
	struct filler *more = realloc(p->fillers, (p->filler_count + 1) * sizeof(*p->fillers));

	if (!more)
		return agent_fail("no memory for the places of variables");
	p->fillers = more;
	p->fillers[p->filler_count++] = *f;
	return 0;
}

static int take_for(struct place *p, uint64_t start, uint64_t end)
{
	struct filler f;

	if (take_at(p->heap, p->context, end - start, start, &f))
		return -1;
	p->is_loose = 0;
	return add_filler(p, &f);
}

static int empty(struct place *p)
{
	for (; p->filler_count; p->filler_count--)
		if (filler_give(&p->fillers[p->filler_count - 1]))
			return -1;
	free(p->fillers);
	p->fillers = NULL;
	return 0;
}

static int loosen(struct place *p)
{
	p->is_loose = 1;
	p->at = p->start;
	return empty(p);
}

/* ---- blocks ---- */

static int fill_place(struct place *p)
{
	for (uint64_t at = p->start, next; at < p->end; at = next) {
		next = p->large || p->end - at < PIECE ? p->end : at + PIECE;
		if (take_for(p, at, next))
			return -1;
	}
	return 0;
}

/* A block is made by what finds no room in others, and goes with the last that lies in it: its
 * upper half is kept while the lower one is filled. */
static int fill_shared(size_t first, size_t last)
{
	struct place *p = &places.list[first], *end = &places.list[last];
	uint64_t start = block_start(p);
	struct filler low, high;
	int is_held = 1;

	if (take_at(p->heap, p->context, PIECE, start, &low) ||
		take_at(p->heap, p->context, PIECE, start + PIECE, &high) || filler_give(&low))
		return -1;
	for (; p < end; p++) {
		if (p->context != places.list[first].context ||
			p->heap != places.list[first].heap)
			return agent_fail("variables of two contexts lie in one block");
		/* What begins in the lower half and ends in the upper one has something
		 * before it, or is in two pieces. */
		if (is_held && p->end > start + PIECE) {
			is_held = 0;
			if (p->start == start && take_for(p, start, start + PIECE))
				return -1;
			if (filler_give(&high))
				return -1;
			if (p->start == start) {
				if (p->end > start + PIECE &&
					take_for(p, start + PIECE, p->end))
					return -1;
				continue;
			}
		}
		if (fill_place(p))
			return -1;
	}
	return 0;
}

static int fill_block(size_t first, size_t last)
{
	return places.list[first].large ? fill_place(&places.list[first])
					: fill_shared(first, last);
}

/* ---- ranges ---- */

/* The driver takes a range when there is no other room: with this, it is the one there. All of
 * it but the last block, in @tail, is free then. */
static int open_range(const struct range *r, struct filler *tail)
{
	const struct place *p = &places.list[r->first];
	struct filler all;
	int result;

	table->core->driver_hint(r->start, r->end - r->start);
	result = take_at(p->heap, p->context, r->end - r->start - PLACES_BLOCK, r->start, &all);
	table->core->driver_hint(0, 0);
	if (result || take_at(p->heap, p->context, PLACES_BLOCK, r->end - PLACES_BLOCK, tail))
		return -1;
	return filler_give(&all);
}

static int is_whole(const struct place *p)
{
	return p->start == p->range->start && p->end == p->range->end;
}

static int fill_whole(struct place *p)
{
	int r;

	table->core->driver_hint(p->start, p->end - p->start);
	r = fill_place(p);
	table->core->driver_hint(0, 0);
	return r;
}

static int fill_range(const struct range *r)
{
	struct filler tail;

	if (is_whole(&places.list[r->first]))
		return fill_whole(&places.list[r->first]);
	if (open_range(r, &tail))
		return -1;
	for (size_t i = r->first, next; i < r->last; i = next) {
		next = places_next_block(&places, i);
		if (block_end(&places.list[i]) == r->end && filler_give(&tail))
			return -1;
		if (fill_block(i, next))
			return -1;
	}
	return 0;
}

/* ---- one after the other is made again ---- */

static int is_of(const struct place *p, const struct object *owner, const void *context)
{
	return p->owner == owner && (!context || !p->loaded_in || p->loaded_in == context);
}

unsigned placement_count(const struct object *owner, const void *context)
{
	unsigned count[2] = {0};

	for (size_t i = 0; i < places.count; i++)
		if (places.list[i].fillers && is_of(&places.list[i], owner, context))
			count[places.list[i].heap == FILLER_VARIABLES]++;
	return count[0] > count[1] ? count[0] : count[1];
}

/* @first to @last are all that is in a range, or in a block. */
static int all_loose(size_t first, size_t last)
{
	for (; first < last; first++)
		if (!places.list[first].is_loose)
			return 0;
	return 1;
}

/* Up to @most places behind @p that are not made yet, in its block. */
static int loosen_behind(struct place *p, unsigned most)
{
	for (struct place *q = p + 1;
		most && q < places.list + places.count && !q->large &&
		(q->fillers || q->is_loose) && block_start(q) == block_start(p);
		q++, most--)
		if (loosen(q))
			return -1;
	return 0;
}

/* The range of @p, if nothing is made in it: what is made next takes it. */
static int drop_range(struct range *r)
{
	for (size_t i = r->first; i < r->last; i++)
		if (!places.list[i].fillers && !places.list[i].is_loose)
			return 0;
	for (size_t i = r->first; i < r->last; i++)
		if (loosen(&places.list[i]))
			return -1;
	return 0;
}

/* Bits of chance, the same for the same try; of two places each on their own, or some ways
 * would never come up. */
static unsigned chance(unsigned way, size_t i)
{
	uint64_t bits = ((uint64_t)way << 32 | i) * 0x9e3779b97f4a7c15;

	bits = (bits ^ bits >> 32) * 0x9e3779b97f4a7c15;
	return bits >> 40;
}

/* ---- no room but in what is empty ---- */

static int is_alike(const struct place *p, const struct place *q)
{
	return p->heap == q->heap && p->context == q->context;
}

/* What is taken of the places that are to be empty, until there is no other room. */
static struct held {
	struct filler filler;
	unsigned turn;
} * held;
static size_t held_count, held_room;

static int hold(const struct filler *f, unsigned turn)
{
	if (held_count == held_room) {
		size_t room = held_room ? 2 * held_room : 64;
		struct held *more = realloc(held, room * sizeof(*more));

		if (!more)
			return agent_fail("no memory for the places of variables");
		held = more;
		held_room = room;
	}
	held[held_count++] = (struct held){*f, turn};
	return 0;
}

static const struct place *empty_at(uint64_t address)
{
	for (const struct place *p = places.list; p < places.list + places.count; p++)
		if (p->is_loose && address >= p->start && address < p->end)
			return p;
	return NULL;
}

int placement_is_empty(uint64_t address)
{
	return empty_at(address) != NULL;
}

static int keep_or_hold(const struct filler *f)
{
	const struct place *p = empty_at(f->address);

	return p ? hold(f, p->turn) : keep_extra(f);
}

/* All room for whole blocks: until the driver takes a range more, in @f. That takes it long. */
static int use_up_blocks(enum filler_heap heap, void *context, uint64_t size, struct filler *f)
{
	for (;;) {
		uint32_t ranges = table->core->driver_taken->count;

		if (take(heap, context, size, f))
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

static int make_spare(enum filler_heap heap, void *context)
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
		take(whole, context, PLACES_RANGE - PLACES_BLOCK, &s->rest))
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
		if (take(heap, context, size, &f))
			return -1;
		if (is_same_block(f.address, spare->block.address))
			return filler_give(&f);
		if (keep_or_hold(&f))
			return -1;
	}
}

static uint64_t largest_loose(enum filler_heap heap, const void *context)
{
	uint64_t size = 0;

	for (size_t i = 0; i < places.count; i++) {
		const struct place *p = &places.list[i];

		if (p->is_loose && !p->large && p->heap == heap && p->context == context &&
			p->end - p->start > size)
			size = p->end - p->start;
	}
	return size;
}

static int close_spare(enum filler_heap whole, void *context, struct spare *spare)
{
	uint64_t address = spare->block.address;

	for (unsigned i = 0; i < TRIES; i++) {
		if (take(whole, context, PLACES_BLOCK, &spare->block))
			return -1;
		if (spare->block.address == address)
			return 0;
		if (keep_or_hold(&spare->block))
			return -1;
	}
	return agent_fail("the driver never gives %#lx again", address);
}

/* What is smaller than a block, and no larger than @largest, or not much. */
static int use_up_shared(
	enum filler_heap heap, void *context, uint64_t largest, struct spare *spare)
{
	enum filler_heap whole = heap_of_blocks(heap);

	if (filler_give(&spare->block))
		return -1;
	for (uint64_t size = PIECE; size >= places_step(heap); size /= 2)
		if (size / 2 < largest && use_up_size(heap, context, size, spare))
			return -1;
	return close_spare(whole, context, spare);
}

/* Whole blocks first: what is smaller finds no new ones then but the spare one. */
static int use_up_all(enum filler_heap heap, void *context)
{
	enum filler_heap whole = heap_of_blocks(heap);
	uint64_t largest = largest_loose(heap, context);
	struct filler f;

	if (use_up_blocks(whole, context, PLACES_BLOCK, &f) || filler_give(&f))
		return -1;
	return largest ? use_up_shared(heap, context, largest, &spares[whole == FILLER_MANAGED])
		       : 0;
}

int placement_fill(void)
{
	int r = 0;

	for (size_t i = 0; i < places.range_count && !r; i++)
		r = fill_range(&places.ranges[i]);
	for (size_t i = 0; i < places.count && !r; i++)
		r = make_spare(places.list[i].heap, places.list[i].context);
	CUDA(cuCtxSetCurrent, (void *))(NULL); /* this thread has none of its own */
	return r;
}

static int by_turn(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	return x->turn < y->turn ? -1 : x->turn > y->turn;
}

/* Of two holes of one size the driver takes the one that it has had for longer: they become
 * empty in the order that they are to be taken in; or, if that was not it, by chance. */
static int empty_in_turn(unsigned way)
{
	int r = 0;

	for (size_t i = 0; way > 2 && way % 2 && i < held_count; i++)
		held[i].turn = chance(way, held[i].turn);
	if (held_count)
		qsort(held, held_count, sizeof(*held), by_turn);
	for (size_t i = 0; i < held_count && !r; i++)
		r = filler_give(&held[i].filler);
	held_count = 0;
	return r;
}

/* What the driver has beside the places, and has given back, is in the way as well. */
static int leave_no_other(const struct object *owner, const void *context, unsigned way)
{
	for (size_t i = 0; i < places.count; i++) {
		const struct place *p = &places.list[i];
		int is_done = 0;

		if (!p->is_loose || !is_of(p, owner, context) || is_whole(p))
			continue;
		for (size_t k = 0; k < i && !is_done; k++)
			is_done = places.list[k].is_loose &&
				  is_of(&places.list[k], owner, context) &&
				  !is_whole(&places.list[k]) && is_alike(&places.list[k], p);
		if (!is_done && use_up_all(p->heap, p->context))
			return -1;
	}
	return empty_in_turn(way);
}

/* What else is opened around @p. Way 0: nothing. 1: what was not there if the owner was the
 * first in its block. 2: and in its range. Others: by chance. */
static int open_around(struct place *p, unsigned way, size_t i)
{
	unsigned bits = way < 3 ? 0 : chance(way, i);
	int starts = !p->large && p->start == block_start(p);

	if ((way == 2 || bits & 1) && p->start == p->range->start && !p->is_first)
		return drop_range(p->range);
	if ((way == 1 || way == 2) && starts && !p->is_first)
		return loosen_behind(p, -1u);
	if (bits & 2)
		return loosen_behind(p, bits & 4 ? -1u : 1 + (bits >> 3 & 7));
	return 0;
}

/* Of the owner's first in there; -1: there is none. */
static long turn_of(const struct range *r, const struct object *owner, const void *context)
{
	long turn = -1;

	for (size_t i = r->first; i < r->last; i++) {
		const struct place *p = &places.list[i];

		if (is_of(p, owner, context) && (turn < 0 || p->turn < turn))
			turn = p->turn;
	}
	return turn;
}

/* Ranges in which nothing is left are gone: in the order that the owner comes to them, they are
 * to be made again where they were. */
static void wish_for_ranges(const struct object *owner, const void *context)
{
	const struct range *next;
	long after = -1;

	table->core->driver_hint(0, 0);
	do {
		long least = LONG_MAX;

		next = NULL;
		for (size_t i = 0; i < places.range_count; i++) {
			const struct range *r = &places.ranges[i];
			long turn =
				all_loose(r->first, r->last) ? turn_of(r, owner, context) : -1;

			if (turn > after && turn < least) {
				least = turn;
				next = r;
			}
		}
		if (next)
			table->core->driver_hint(next->start, next->end - next->start);
		after = least;
	} while (next);
}

int placement_open(const struct object *owner, const void *context, unsigned way)
{
	for (size_t i = 0; i < places.count; i++) {
		struct place *p = &places.list[i];

		if (p->fillers && is_of(p, owner, context) && loosen(p))
			return -1;
	}
	for (size_t i = 0; way && i < places.count; i++) {
		struct place *p = &places.list[i];

		if (p->is_loose && is_of(p, owner, context) && open_around(p, way, i))
			return -1;
	}
	wish_for_ranges(owner, context);
	return leave_no_other(owner, context, way);
}

int placement_open_managed(const struct memory_managed *m)
{
	struct place *p = places.list, *end = p + places.count;

	table->core->driver_hint(0, 0);
	while (p < end && p->memory != m)
		p++;
	if (p == end)
		return 0;
	if (loosen(p))
		return -1;
	if (is_whole(p))
		table->core->driver_hint(p->start, p->end - p->start);
	else if (use_up_all(p->heap, p->context) || empty_in_turn(0))
		return -1;
	p->is_loose = 0;
	return 0;
}

void placement_made(const struct object *owner, const void *context)
{
	for (size_t i = 0; i < places.count; i++)
		if (is_of(&places.list[i], owner, context))
			places.list[i].is_loose = 0;
}

/* ---- what is empty is filled again ---- */

/* Whole blocks: a large place, or all places of a block. */
struct hole {
	uint64_t at, end;
	size_t first, last;
};

static int is_hole(size_t first, size_t last)
{
	const struct range *r = places.list[first].range;

	return all_loose(first, last) && !all_loose(r->first, r->last);
}

static size_t find_holes(struct hole *holes)
{
	size_t n = 0;

	for (size_t i = 0, next; i < places.count; i = next) {
		next = places_next_block(&places, i);
		if (is_hole(i, next))
			holes[n++] = (struct hole){block_start(&places.list[i]),
				block_end(&places.list[i]), i, next};
	}
	return n;
}

/* Of device memory, or managed memory, as @like is. */
static struct hole *find_hole(struct hole *holes, size_t count, const struct hole *like,
	uint64_t address, uint64_t size)
{
	int managed = places.list[like->first].heap != FILLER_VARIABLES;

	for (struct hole *h = holes; h < holes + count; h++)
		if (h->at == address && h->end - h->at >= size &&
			(places.list[h->first].heap != FILLER_VARIABLES) == managed)
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

/* No filler is larger than any hole, so it does not matter which one it comes to lie in. */
static int fill_holes(struct hole *holes, size_t count)
{
	struct hole *h, *found;
	unsigned tries = 0;
	struct filler f;

	while ((h = smallest_hole(holes, count))) {
		const struct place *p = &places.list[h->first];
		uint64_t size = h->end - h->at;

		if (take(p->heap, p->context, size, &f))
			return -1;
		found = find_hole(holes, count, h, f.address, size);
		if (!found && ++tries == TRIES)
			return agent_fail("the driver never gives %#lx again", h->at);
		if (found ? add_filler(&places.list[found->first], &f) : keep_extra(&f))
			return -1;
		if (found)
			found->at += size;
	}
	return 0;
}

/* Where a stretch of what is empty begins. */
static int is_ready(const struct place *p)
{
	return p->is_loose && !p->large &&
	       (p == places.list || !p[-1].is_loose || p[-1].end != p->start ||
		       block_start(&p[-1]) != block_start(p));
}

static struct place *find_ready(const struct place *like, uint64_t address)
{
	for (struct place *p = places.list; p < places.list + places.count; p++)
		if (is_ready(p) && is_alike(p, like) && p->at == address)
			return p;
	return NULL;
}

/* The smallest of a heap, so that as much finds room wherever the driver looks first. */
static struct place *smallest_ready(void)
{
	struct place *smallest = NULL;

	for (struct place *p = places.list; p < places.list + places.count; p++)
		if (is_ready(p) &&
			(!smallest || (is_alike(p, smallest) &&
					      p->end - p->at < smallest->end - smallest->at)))
			smallest = p;
	return smallest;
}

static int refill_shared(void)
{
	struct place *p, *found;
	unsigned tries = 0;
	struct filler f;

	while ((p = smallest_ready())) {
		uint64_t size = p->end - p->at < PIECE ? p->end - p->at : PIECE;

		if (take(p->heap, p->context, size, &f))
			return -1;
		found = find_ready(p, f.address);
		if (!found && ++tries == TRIES)
			return agent_fail("the driver never gives %#lx again", p->at);
		if (found ? add_filler(found, &f) : keep_extra(&f))
			return -1;
		if (!found)
			continue;
		found->at += size;
		found->is_loose = found->at < found->end;
	}
	return 0;
}

/* For the time being, no place in there is empty. */
static void skip(size_t first, size_t last)
{
	for (; first < last; first++)
		places.list[first].is_loose = 0;
}

static void find_dropped(void)
{
	for (struct range *r = places.ranges; r < places.ranges + places.range_count; r++) {
		r->is_dropped = all_loose(r->first, r->last);
		if (r->is_dropped)
			skip(r->first, r->last);
	}
}

static int refill_dropped(void)
{
	for (struct range *r = places.ranges; r < places.ranges + places.range_count; r++)
		if (r->is_dropped && fill_range(r))
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
		skip(h->first, h->last);
	if (refill_shared())
		return -1;
	for (struct hole *h = holes; h < holes + count; h++)
		if (!places.list[h->first].large &&
			(empty(&places.list[h->first]) || fill_shared(h->first, h->last)))
			return -1;
	return refill_dropped();
}

int placement_close(void)
{
	struct hole *holes = malloc((places.count + 1) * sizeof(*holes));
	int r;

	table->core->driver_hint(0, 0);
	r = holes ? refill_with(holes) : agent_fail("no memory for the places of variables");
	free(holes);
	return r;
}

int placement_end(void)
{
	for (size_t i = 0; i < places.count; i++)
		if (empty(&places.list[i]))
			return -1;
	places_free(&places);
	if (give_spares())
		return -1;
	for (; extra_count; extra_count--)
		if (filler_give(&extras[extra_count - 1]))
			return -1;
	free(extras);
	free(held);
	extras = NULL;
	held = NULL;
	extra_room = held_room = 0;
	table->core->driver_hint(0, 0);
	CUDA(cuCtxSetCurrent, (void *))(NULL); /* this thread has none of its own */
	return 0;
}
