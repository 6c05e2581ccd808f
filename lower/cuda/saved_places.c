/*
 * saved_places.c - reads the places from the records: of variables, of managed memory, and the
 * gaps between them.
 */
#include "lower/cuda/saved_places.h"

#include <stdlib.h>
#include <string.h>

#include "lower/cuda/cuda.h"
#include "lower/cuda/growing_list.h"

#define NO_MEMORY "to find the places of variables"

struct places saved_places;
enum place_order places_order;

static int add_place(struct places *places, const struct place *wanted)
{
	uint64_t step = wanted->large ? PLACES_BLOCK : places_step(wanted->heap);
	struct place *p;

	if (list_reserve(&places->list, places->count, &places->room, sizeof(*places->list),
		    NO_MEMORY))
		return -1;
	p = &places->list[places->count++];
	*p = *wanted;
	p->start = places_down(p->start, places_step(wanted->heap));
	p->end = places_up(p->end, step);
	return 0;
}

static const struct object *context_object(const struct cuda_state *s, const void *context)
{
	const struct object *o = s->objects;

	while (o && (o->kind != CUDA_CONTEXT || o->real != context))
		o = o->next;
	return o;
}

/* A context that stands for all that share blocks for managed variables: those of a module's device. Libraries
 * have theirs with the modules of the first device. */
static void *managed_context(const struct cuda_state *s, const struct object *owner)
{
	const struct object *own = owner->kind == CUDA_MODULE
					   ? context_object(s, places_first_context(owner))
					   : NULL;
	int device = own ? cuda_device_of(own) : 0;
	void *first = NULL;

	for (const struct object *o = s->objects; o; o = o->next) {
		if (o->kind != CUDA_CONTEXT)
			continue;
		if (cuda_device_of(o) == device)
			return o->real;
		if (!first)
			first = o->real;
	}
	return first;
}

int place_is_wanted(const struct cuda_global *g)
{
	return g->allocates == CUDA_GLOBAL_VARIABLE ||
	       (g->allocates == CUDA_GLOBAL_HIDDEN && g->address);
}

static unsigned count_globals(const struct object *o)
{
	unsigned n = 0;

	for (const struct cuda_global *g = o->globals; g; g = g->next)
		n++;
	return n;
}

/* The list has the last one first. */
static int add_globals(
	struct places *places, const struct cuda_state *s, const struct object *o)
{
	unsigned turn = count_globals(o);

	for (const struct cuda_global *g = o->globals; g; g = g->next, turn--) {
		struct place p = {.start = g->allocation,
			.end = g->allocation + g->allocation_size,
			.context = g->managed ? managed_context(s, o) : g->context,
			.loaded_in = g->managed ? NULL : g->context,
			.owner = o,
			.heap = g->managed ? FILLER_MANAGED_VARIABLES : FILLER_VARIABLES,
			.large = g->allocation_size >= PLACES_BLOCK,
			.is_first = !g->next,
			.turn = turn};

		if (place_is_wanted(g) && add_place(places, &p))
			return -1;
	}
	return 0;
}

static int add_memory(struct places *places, const struct memory_managed *m)
{
	struct place p = {.start = m->address,
		.end = m->address + m->size,
		.context = m->context,
		.memory = m,
		.heap = FILLER_MANAGED,
		.large = m->size >= PLACES_BLOCK};

	return add_place(places, &p);
}

static int by_address(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void sort_places(struct places *p)
{
	if (p->count)
		qsort(p->list, p->count, sizeof(*p->list), by_address);
}

/* @p begins where @last, of the same owner and in the same block, ends; or they are the same:
 * constants of one program, a managed variable as seen from two contexts. */
static int joins_place(const struct place *last, const struct place *p)
{
	if (!p->owner || p->owner != last->owner || p->start > last->end ||
		p->loaded_in != last->loaded_in)
		return 0;
	return p->start < last->end ||
	       (!p->large && !last->large && block_start(last) == block_start(p) &&
		       p->end <= block_end(p));
}

static int join_places(struct places *places)
{
	size_t n = 0;

	sort_places(places);
	for (size_t i = 0; i < places->count; i++) {
		struct place *p = &places->list[i], *last = n ? &places->list[n - 1] : NULL;

		if (last && joins_place(last, p)) {
			if (p->end > last->end)
				last->end = p->end;
			last->is_first |= p->is_first;
			if (p->turn < last->turn)
				last->turn = p->turn;
			continue;
		}
		if ((last && p->start < last->end) || (p->large && p->start % PLACES_BLOCK))
			return agent_fail(
				"a variable at %#lx lies where none is expected", p->start);
		places->list[n++] = *p;
	}
	places->count = n;
	return 0;
}

/* ---- what belongs to nobody ---- */

/* Of the block of @p, or whole blocks beside it. */
static int add_gap(
	struct places *places, const struct place *p, uint64_t start, uint64_t end, int large)
{
	struct place gap = {.start = start,
		.end = end,
		.context = p->context,
		.heap = p->heap,
		.large = large};

	return start >= end ? 0 : add_place(places, &gap);
}

/* In blocks that are shared: before the first and behind each. */
static int fill_blocks(struct places *places)
{
	size_t count = places->count;

	for (size_t i = 0; i < count; i++) {
		struct place p = places->list[i];
		uint64_t last = i ? places->list[i - 1].end : 0;
		uint64_t next = i + 1 < count ? places->list[i + 1].start : UINT64_MAX;

		if (p.large)
			continue;
		if (last <= block_start(&p) && add_gap(places, &p, block_start(&p), p.start, 0))
			return -1;
		if (add_gap(places, &p, p.end, next < block_end(&p) ? next : block_end(&p), 0))
			return -1;
	}
	sort_places(places);
	return 0;
}

size_t places_next_block(const struct places *p, size_t i)
{
	size_t next = i + 1;

	while (next < p->count && block_start(&p->list[next]) < block_end(&p->list[i]))
		next++;
	return next;
}

static uint64_t age_of(const struct cuda_state *s, uint64_t address)
{
	uint64_t i = 0;

	while (i < s->range_count &&
		(address < s->ranges[i].start || address >= s->ranges[i].end))
		i++;
	return i;
}

/* Whether both were in one range of the driver's: it is not given back as long as something is in either. */
static int is_one_range(const struct cuda_state *s, uint64_t address, uint64_t other)
{
	uint64_t age = age_of(s, address);

	return age < s->range_count && age == age_of(s, other);
}

/* The range that place @i is in, of the first @count. Returns the first place behind. */
static size_t range_from(const struct places *p, const struct cuda_state *s, size_t count,
	size_t i, uint64_t *start, uint64_t *end)
{
	uint64_t next;

	*start = *end = places_down(p->list[i].start, PLACES_RANGE);
	do {
		uint64_t range_end = places_up(block_end(&p->list[i]), PLACES_RANGE);

		if (range_end > *end)
			*end = range_end;
		i++;
		next = i < count ? places_down(p->list[i].start, PLACES_RANGE) : UINT64_MAX;
	} while (next < *end || (next == *end && is_one_range(s, next - 1, next)));
	return i;
}

static int add_last_gap(struct places *places, size_t i, uint64_t start, uint64_t end)
{
	struct place p = places->list[i];

	return add_gap(places, &p, start, end, 1);
}

/* Between blocks, and at both ends of ranges. */
static int fill_ranges(struct places *places, const struct cuda_state *s)
{
	size_t count = places->count;
	uint64_t start, end, at;

	for (size_t i = 0, last; i < count; i = last) {
		last = range_from(places, s, count, i, &start, &end);
		for (at = start; i < last; i++) {
			struct place p = places->list[i];

			if (add_gap(places, &p, at, block_start(&p), 1))
				return -1;
			at = block_end(&p);
		}
		if (add_last_gap(places, last - 1, at, end))
			return -1;
	}
	sort_places(places);
	return 0;
}

/* ---- ranges ---- */

/* Of what was one range, the lowest part last, as what is newest is looked at first. */
static int by_age(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->age != y->age)
		return x->age < y->age ? -1 : 1;
	return x->start > y->start ? -1 : x->start < y->start;
}

static int find_ranges(struct places *p, const struct cuda_state *s)
{
	for (size_t i = 0; i < p->count;) {
		struct range *r;

		if (list_reserve(&p->ranges, p->range_count, &p->range_room, sizeof(*p->ranges),
			    NO_MEMORY))
			return -1;
		r = &p->ranges[p->range_count++];
		r->first = i;
		i = r->last = range_from(p, s, p->count, i, &r->start, &r->end);
		r->age = age_of(s, r->start);
	}
	if (p->range_count)
		qsort(p->ranges, p->range_count, sizeof(*p->ranges), by_age);
	for (struct range *r = p->ranges; r < p->ranges + p->range_count; r++)
		for (size_t i = r->first; i < r->last; i++)
			p->list[i].range = r;
	return 0;
}

long range_turn(const struct range *r, const struct object *owner, const void *context)
{
	long turn = -1;

	for (size_t i = r->first; i < r->last; i++) {
		const struct place *p = &saved_places.list[i];

		if (place_is_of(p, owner, context) && (turn < 0 || place_turn(p) < turn))
			turn = place_turn(p);
	}
	return turn;
}

void *places_first_context(const struct object *o)
{
	void *context = NULL;

	for (const struct cuda_global *g = o->globals; g; g = g->next)
		if (g->allocates == CUDA_GLOBAL_VARIABLE)
			context = g->context;
	return context;
}

int places_find(struct places *p, const struct cuda_state *s)
{
	for (const struct object *o = s->objects; o; o = o->next)
		if (add_globals(p, s, o))
			return -1;
	for (const struct memory_managed *m = s->memory ? s->memory->managed : NULL; m;
		m = m->next)
		if (add_memory(p, m))
			return -1;
	return join_places(p) || fill_blocks(p) || fill_ranges(p, s) || find_ranges(p, s) ? -1
											  : 0;
}

void places_free(struct places *p)
{
	free(p->list);
	free(p->ranges);
	*p = (struct places){0};
}
