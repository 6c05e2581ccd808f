/*
 * placement.c - the steps around the making of one object: open its places, make it, compare,
 * close them; the other place_*.c do the work.
 */
#include "lower/cuda/placement.h"

#include <limits.h>
#include <stdlib.h>

#include "bringup/core.h"
#include "bringup/space.h"
#include "lower/cuda/cuda.h"
#include "lower/cuda/place_exhaust.h"
#include "lower/cuda/place_fillers.h"
#include "lower/cuda/place_plan.h"
#include "lower/cuda/place_ranges.h"
#include "lower/cuda/place_refill.h"
#include "lower/cuda/saved_places.h"
#include "lower/heap.h"
#include "lower/records_alloc.h"

static int by_owner(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->owner < y->owner ? -1 : x->owner > y->owner;
}

/* As module_open() sees it: whether the driver could take the one for the other. */
static int is_mistaken(const struct place *p, const struct place *q)
{
	return p->owner && p->owner == q->owner &&
	       (!p->loaded_in || !q->loaded_in || p->loaded_in == q->loaded_in);
}

/* Of how many owners. */
static uint32_t count_uncertain(struct places *places)
{
	const struct object *last = NULL;
	uint32_t n = 0;

	if (places->count)
		qsort(places->list, places->count, sizeof(*places->list), by_owner);
	for (size_t i = 1; i < places->count; i++) {
		const struct place *p = &places->list[i];
		size_t k = i;

		while (p->owner && p->owner != last && k-- && places->list[k].owner == p->owner)
			if (is_mistaken(&places->list[k], p)) {
				last = p->owner;
				n++;
			}
	}
	return n;
}

/* What cannot be read here would not be at a restart. */
static int find_uncertain(const struct cuda_state *s)
{
	struct places places = {0};
	int r;

	heap_aside++;
	r = places_find(&places, s);
	table->uncertain = r ? 0 : count_uncertain(&places);
	places_free(&places);
	heap_aside--;
	return r;
}

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
	return find_uncertain(s);
}

int placement_keep(struct cuda_state *s)
{
	if (places_find(&saved_places, s))
		return -1;
	for (size_t i = 0; i < saved_places.range_count; i++)
		if (table->core->driver_keep(
			    saved_places.ranges[i].start, saved_places.ranges[i].end))
			return agent_fail("addresses at %#lx, which the driver had, cannot be "
					  "given to it here",
				saved_places.ranges[i].start);
	return 0;
}

int placement_fill(void)
{
	int r = 0;

	for (size_t i = 0; i < saved_places.range_count && !r; i++)
		r = range_fill(&saved_places.ranges[i]);
	for (size_t i = 0; i < saved_places.count && !r; i++)
		r = exhaust_prepare(saved_places.list[i].heap, saved_places.list[i].context);
	CUDA(cuCtxSetCurrent, (void *))(NULL); /* this thread has none of its own */
	return r;
}

unsigned placement_count(const struct object *owner, const void *context)
{
	unsigned count[2] = {0};

	for (size_t i = 0; i < saved_places.count; i++)
		if (saved_places.list[i].fillers &&
			place_is_of(&saved_places.list[i], owner, context))
			count[saved_places.list[i].heap == FILLER_VARIABLES]++;
	/* They are in ranges of their own, of which either could be another's. */
	if (count[0] && count[1])
		return count[0] + count[1];
	return count[0] > count[1] ? count[0] : count[1];
}

static int has_both(const struct object *owner, const void *context)
{
	int has[2] = {0};

	for (size_t i = 0; i < saved_places.count; i++)
		if (place_is_of(&saved_places.list[i], owner, context))
			has[saved_places.list[i].heap == FILLER_VARIABLES] = 1;
	return has[0] && has[1];
}

/* The order that @way is about. Returns what it is a way of among those in that order: the plan comes first in
 * each. */
static unsigned choose_order(const struct object *owner, const void *context, unsigned way)
{
	places_order = AS_LISTED;
	if (!has_both(owner, context))
		return way;
	places_order = way % PLACE_ORDERS;
	return way / PLACE_ORDERS;
}

int placement_has_managed(const struct object *owner)
{
	for (size_t i = 0; i < saved_places.count; i++) {
		const struct place *p = &saved_places.list[i];

		if (p->owner == owner && p->heap == FILLER_MANAGED_VARIABLES && !p->fillers)
			return 1;
	}
	return 0;
}

/* Up to @most places behind @p that are not made yet, in its block. */
static int loosen_behind(struct place *p, unsigned most)
{
	for (struct place *q = p + 1;
		most && q < saved_places.list + saved_places.count && !q->large &&
		(q->fillers || q->is_loose) && block_start(q) == block_start(p);
		q++, most--)
		if (place_loosen(q))
			return -1;
	return 0;
}

/* The range of @p, if nothing is made in it: what is made next takes it. */
static int drop_range(struct range *r)
{
	for (size_t i = r->first; i < r->last; i++)
		if (!saved_places.list[i].fillers && !saved_places.list[i].is_loose)
			return 0;
	for (size_t i = r->first; i < r->last; i++)
		if (place_loosen(&saved_places.list[i]))
			return -1;
	return 0;
}

/* What the driver has beside the places, and has given back, is in the way as well. */
static int leave_no_other(const struct object *owner, const void *context, unsigned way)
{
	for (size_t i = 0; i < saved_places.count; i++) {
		const struct place *p = &saved_places.list[i];
		int is_done = 0;

		if (!p->is_loose || !place_is_of(p, owner, context) || place_is_whole(p))
			continue;
		for (size_t k = 0; k < i && !is_done; k++)
			is_done = saved_places.list[k].is_loose &&
				  place_is_of(&saved_places.list[k], owner, context) &&
				  !place_is_whole(&saved_places.list[k]) &&
				  place_is_alike(&saved_places.list[k], p);
		if (!is_done && exhaust_room(p->heap, p->context))
			return -1;
	}
	return exhaust_give_back(way);
}

/* What else is opened around @p, where the plan does not help. Way 1: what was not there if the owner was the
 * first in its block. 2: and in its range. Others: by chance. */
static int open_around(struct place *p, unsigned way, size_t i)
{
	unsigned bits = way < 3 ? 0 : places_chance(way, i);
	int starts = !p->large && p->start == block_start(p);

	if ((way == 2 || bits & 1) && p->start == p->range->start && !p->is_first)
		return drop_range(p->range);
	if ((way == 1 || way == 2) && starts && !p->is_first)
		return loosen_behind(p, -1u);
	if (bits & 2)
		return loosen_behind(p, bits & 4 ? -1u : 1 + (bits >> 3 & 7));
	return 0;
}

/* Ranges in which nothing is left are gone: in the order that the owner comes to them, they are
 * to be made again where they were. */
static void list_wanted_ranges(const struct object *owner, const void *context)
{
	const struct range *next;
	long after = -1;

	table->core->driver_hint(0, 0);
	do {
		long least = LONG_MAX;

		next = NULL;
		for (size_t i = 0; i < saved_places.range_count; i++) {
			const struct range *r = &saved_places.ranges[i];
			long turn = places_all_loose(r->first, r->last)
					    ? range_turn(r, owner, context)
					    : -1;

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
	way = choose_order(owner, context, way);
	if (place_plan(owner, way ? NULL : context) < 0)
		return -1;
	for (size_t i = 0; i < saved_places.count; i++)
		if (saved_places.list[i].planned && place_loosen(&saved_places.list[i]))
			return -1;
	for (size_t i = 0; way && i < saved_places.count; i++) {
		struct place *p = &saved_places.list[i];

		if (p->is_loose && place_is_of(p, owner, context) && open_around(p, way, i))
			return -1;
	}
	list_wanted_ranges(owner, context);
	return leave_no_other(owner, context, way);
}

int placement_open_managed(const struct memory_managed *m)
{
	struct place *p = saved_places.list, *end = p + saved_places.count;

	table->core->driver_hint(0, 0);
	while (p < end && p->memory != m)
		p++;
	if (p == end)
		return 0;
	if (place_loosen(p))
		return -1;
	if (place_is_whole(p))
		table->core->driver_hint(p->start, p->end - p->start);
	else if (exhaust_room(p->heap, p->context) || exhaust_give_back(0))
		return -1;
	p->is_loose = 0;
	return 0;
}

void placement_made(const struct object *owner, const void *context)
{
	for (size_t i = 0; i < saved_places.count; i++)
		if (place_is_of(&saved_places.list[i], owner, context))
			saved_places.list[i].is_loose = 0;
}

int placement_is_empty(uint64_t address)
{
	return place_empty_at(address) != NULL;
}

int placement_close(void)
{
	table->core->driver_hint(0, 0);
	return places_refill();
}

int placement_end(void)
{
	for (size_t i = 0; i < saved_places.count; i++)
		if (place_empty(&saved_places.list[i]))
			return -1;
	places_free(&saved_places);
	if (exhaust_end() || extras_give())
		return -1;
	table->core->driver_hint(0, 0);
	CUDA(cuCtxSetCurrent, (void *))(NULL); /* this thread has none of its own */
	return 0;
}
