/*
 * place_plan.c - the model: a list of ranges and holes in the driver's order, in which the
 * loading of a module is played through.
 */
#include "lower/cuda/place_plan.h"

#include <stdlib.h>
#include <string.h>

#include "bringup/core.h"
#include "bringup/space.h"
#include "lower/cuda/cuda.h"
#include "lower/cuda/saved_places.h"

/* What the owner has, in the order that it is allocated in. */
struct variable {
	uint64_t address, size;
	enum filler_heap heap;
	const void *context;
};

/* What is empty in a block that is shared. */
struct hole {
	uint64_t start, end, since;
	enum filler_heap heap;
	const void *context;
};

/* Empty blocks in a row, in one range. */
struct span {
	uint64_t start, end;
	const struct range *range;
	uint64_t age; /* the newest has the largest */
};

static struct plan {
	const struct object *owner;
	const void *context;
	struct variable *variables;
	struct hole *holes;
	struct span *spans;
	size_t variable_count, hole_count, span_count;
	uint64_t now;
} plan;

static int is_managed(enum filler_heap heap)
{
	return heap != FILLER_VARIABLES;
}

/* ---- variables ---- */

static int is_wanted(const struct cuda_global *g)
{
	return place_is_wanted(g) && (g->managed || g->context == plan.context);
}

/* The place that is to be made at @address; NULL: it is made already, as managed variables are that
 * are in all contexts. */
static const struct place *place_at(uint64_t address)
{
	for (size_t i = 0; i < saved_places.count; i++) {
		const struct place *p = &saved_places.list[i];

		if (p->planned && address >= p->start && address < p->end)
			return p;
	}
	return NULL;
}

static void add_variable(const struct cuda_global *g)
{
	const struct place *p = place_at(g->allocation);
	struct variable v;

	if (!p)
		return;
	v.heap = p->heap;
	v.context = p->context;
	v.address = places_down(g->allocation, places_step(p->heap));
	v.size = places_up(g->allocation_size,
		g->allocation_size < PLACES_BLOCK ? places_step(p->heap) : PLACES_BLOCK);
	for (size_t i = 0; i < plan.variable_count; i++)
		if (plan.variables[i].address == v.address) /* constants lie together */
			return;
	plan.variables[plan.variable_count++] = v;
}

static void add_variables(
	const struct cuda_global **list, size_t count, int ordinary, int managed)
{
	while (count--)
		if (is_wanted(list[count]) && (list[count]->managed ? managed : ordinary))
			add_variable(list[count]);
}

/* The owner's list has the last one first. */
static int list_variables(void)
{
	const struct cuda_global **list, *g;
	size_t count = 0;

	for (g = plan.owner->globals; g; g = g->next)
		count++;
	list = malloc((count + 1) * sizeof(*list));
	plan.variables = malloc((count + 1) * sizeof(*plan.variables));
	if (!list || !plan.variables) {
		free(list);
		return agent_fail("no memory for the places of variables");
	}
	count = 0;
	for (g = plan.owner->globals; g; g = g->next)
		list[count++] = g;
	if (places_order == AS_LISTED) {
		add_variables(list, count, 1, 1);
	} else {
		add_variables(list, count, places_order == MANAGED_LAST,
			places_order == MANAGED_FIRST);
		add_variables(list, count, places_order == MANAGED_FIRST,
			places_order == MANAGED_LAST);
	}
	free(list);
	return 0;
}

/* ---- what is empty ---- */

/* Among what the driver has now. */
static uint64_t age_now(const struct range *r)
{
	const struct space_taken *taken = table->core->driver_taken;
	uint64_t i = 0;

	while (i < taken->count &&
		(r->start < taken->ranges[i].start || r->start >= taken->ranges[i].end))
		i++;
	return i;
}

static void add_span(uint64_t start, uint64_t end, const struct range *r)
{
	struct span *last = plan.span_count ? &plan.spans[plan.span_count - 1] : NULL;

	if (last && last->range == r && last->end == start)
		last->end = end;
	else
		plan.spans[plan.span_count++] = (struct span){start, end, r, age_now(r)};
}

static void add_hole(const struct place *p, uint64_t end)
{
	plan.holes[plan.hole_count++] =
		(struct hole){p->start, end, p->plan_turn, p->heap, p->context};
}

/* Of the shared block that @first to @last are. */
static void add_holes(size_t first, size_t last)
{
	const struct place *list = saved_places.list;

	for (size_t i = first, next; i < last; i = next) {
		next = i + 1;
		if (!list[i].planned)
			continue;
		while (next < last && list[next].planned)
			next++;
		if (next - i == last - first)
			add_span(block_start(&list[i]), block_end(&list[i]), list[i].range);
		else
			add_hole(&list[i], list[next - 1].end);
	}
}

static void list_empty(void)
{
	plan.hole_count = plan.span_count = 0;
	plan.now = 1ul << 32; /* later than all turns */
	for (size_t i = 0, next; i < saved_places.count; i = next) {
		const struct place *p = &saved_places.list[i];

		next = places_next_block(&saved_places, i);
		if (p->range->is_absent)
			continue;
		if (!p->large)
			add_holes(i, next);
		else if (p->planned)
			add_span(p->start, p->end, p->range);
	}
}

/* ---- the driver ---- */

static struct span *first_span(enum filler_heap heap, uint64_t size)
{
	struct span *best = NULL;

	for (struct span *s = plan.spans; s < plan.spans + plan.span_count; s++) {
		const struct place *p = &saved_places.list[s->range->first];

		if (s->end - s->start >= size && is_managed(p->heap) == is_managed(heap) &&
			(!best || s->age > best->age ||
				(s->age == best->age && s->start < best->start)))
			best = s;
	}
	return best;
}

/* As for placement_open(), the first of the hints that has the size. */
static struct span *new_range(uint64_t size)
{
	const struct range *best = NULL;
	long turn, least = -1;

	for (const struct range *r = saved_places.ranges;
		r < saved_places.ranges + saved_places.range_count; r++) {
		size_t i = 0;

		while (i < plan.span_count && plan.spans[i].range != r)
			i++;
		turn = r->is_absent && i == plan.span_count
			       ? range_turn(r, plan.owner, plan.context)
			       : -1;
		if (turn < 0 || r->end - r->start != places_up(size, PLACES_RANGE) ||
			(best && turn > least))
			continue;
		best = r;
		least = turn;
	}
	if (!best)
		return NULL;
	plan.spans[plan.span_count] = (struct span){best->start, best->end, best, ++plan.now};
	return &plan.spans[plan.span_count++];
}

static uint64_t take_blocks(enum filler_heap heap, uint64_t size, struct span **from)
{
	struct span *s = first_span(heap, size);

	if (!s)
		s = new_range(size);
	*from = s;
	if (!s)
		return 0;
	s->start += size;
	return s->start - size;
}

static struct hole *best_hole(const struct variable *v)
{
	struct hole *best = NULL;

	for (struct hole *h = plan.holes; h < plan.holes + plan.hole_count; h++) {
		uint64_t size = h->end - h->start;

		if (h->heap != v->heap || h->context != v->context || size < v->size)
			continue;
		if (!best || size < best->end - best->start ||
			(size == best->end - best->start && h->since < best->since))
			best = h;
	}
	return best;
}

/* Where @v comes to lie, and what it was that was empty there. 0: nowhere known. */
static uint64_t place_variable(const struct variable *v, struct span **span, struct hole **hole)
{
	uint64_t at;

	*span = NULL;
	*hole = v->size < PLACES_BLOCK ? best_hole(v) : NULL;
	if (v->size >= PLACES_BLOCK)
		return take_blocks(v->heap, v->size, span);
	if (!*hole) {
		at = take_blocks(v->heap, PLACES_BLOCK, span);
		if (!at)
			return 0;
		*hole = &plan.holes[plan.hole_count++];
		**hole = (struct hole){at, at + PLACES_BLOCK, 0, v->heap, v->context};
	}
	at = (*hole)->start;
	(*hole)->start += v->size;
	(*hole)->since = ++plan.now;
	return at;
}

/* ---- what else is to be empty ---- */

static int is_made(const struct place *p)
{
	return !p->fillers && !p->is_loose;
}

/* @range was not there yet, nor a newer one. Not 0: that cannot be, one is in use. */
static int leave_out_ranges(const struct range *range)
{
	struct place *list = saved_places.list;
	uint64_t age = age_now(range);
	int managed = is_managed(list[range->first].heap);

	for (struct range *r = saved_places.ranges;
		r < saved_places.ranges + saved_places.range_count; r++) {
		if (r->is_absent || age_now(r) < age ||
			is_managed(list[r->first].heap) != managed)
			continue;
		for (size_t i = r->first; i < r->last; i++) {
			if (is_made(&list[i]))
				return -1;
			list[i].planned = 1;
		}
		r->is_absent = 1;
	}
	return 0;
}

/* A range in which nothing is left is given back. */
static int leave_out_empty(void)
{
	for (struct range *r = saved_places.ranges;
		r < saved_places.ranges + saved_places.range_count; r++) {
		size_t i = r->first;

		while (i < r->last && saved_places.list[i].planned)
			i++;
		if (i == r->last && !r->is_absent && leave_out_ranges(r))
			return -1;
	}
	return 0;
}

/* @h was larger. What is empty may not come to touch what else is to be. */
static int enlarge_hole(const struct hole *h)
{
	struct place *p = saved_places.list, *end = p + saved_places.count;

	while (p < end && p->start != h->end)
		p++;
	if (p == end || p == saved_places.list || !p[-1].planned ||
		block_start(p) != block_start(p - 1) || p->large || is_made(p) ||
		(p + 1 < end && p[1].planned && block_start(p + 1) == block_start(p)))
		return -1;
	p->planned = 1;
	p->plan_turn = p[-1].plan_turn;
	return 0;
}

/* 1: all lies where it is to; 0: something else is to be empty for that; -1: nothing helps. */
static int try_plan(void)
{
	if (leave_out_empty())
		return -1;
	list_empty();
	for (size_t i = 0; i < plan.variable_count; i++) {
		struct span *span;
		struct hole *hole;
		uint64_t at = place_variable(&plan.variables[i], &span, &hole);

		if (at == plan.variables[i].address)
			continue;
		if (!at || (span && span->range->is_absent))
			return -1;
		return span ? leave_out_ranges(span->range) : enlarge_hole(hole);
	}
	return 1;
}

static void mark_own(void)
{
	for (size_t i = 0; i < saved_places.count; i++) {
		struct place *p = &saved_places.list[i];

		p->planned = p->fillers && place_is_of(p, plan.owner, plan.context);
		p->plan_turn = place_turn(p);
	}
	for (size_t i = 0; i < saved_places.range_count; i++)
		saved_places.ranges[i].is_absent = 0;
}

static int prepare_plan(void)
{
	if (list_variables())
		return -1;
	plan.holes =
		malloc((saved_places.count + plan.variable_count + 1) * sizeof(*plan.holes));
	plan.spans = malloc(
		(saved_places.count + saved_places.range_count + 1) * sizeof(*plan.spans));
	return plan.holes && plan.spans ? 0
					: agent_fail("no memory for the places of variables");
}

static void drop_plan(void)
{
	free(plan.variables);
	free(plan.holes);
	free(plan.spans);
}

int place_plan(const struct object *owner, const void *context)
{
	int r = 0;

	plan = (struct plan){.owner = owner, .context = context};
	mark_own();
	if (!context)
		return 0;
	if (prepare_plan()) {
		drop_plan();
		return -1;
	}
	while (!r)
		r = try_plan();
	drop_plan();
	if (r < 0)
		mark_own();
	return r > 0;
}
