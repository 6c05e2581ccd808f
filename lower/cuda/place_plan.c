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
	uint64_t start, end, begin; /* it began there before anything was placed in it */
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
	unsigned tries;
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
		plan.spans[plan.span_count++] = (struct span){start, end, start, r, age_now(r)};
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

static int is_tried_before(const struct span *a, const struct span *b)
{
	if (a->age != b->age)
		return a->age > b->age;
	if (a->end - a->start != b->end - b->start)
		return a->end - a->start < b->end - b->start;
	return a->start < b->start;
}

static struct span *best_span(enum filler_heap heap, uint64_t size)
{
	struct span *best = NULL;

	for (struct span *s = plan.spans; s < plan.spans + plan.span_count; s++) {
		const struct place *p = &saved_places.list[s->range->first];

		if (s->end - s->start >= size && is_managed(p->heap) == is_managed(heap) &&
			(!best || is_tried_before(s, best)))
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
	plan.spans[plan.span_count] =
		(struct span){best->start, best->end, best->start, best, ++plan.now};
	return &plan.spans[plan.span_count++];
}

static uint64_t take_blocks(enum filler_heap heap, uint64_t size, struct span **from)
{
	struct span *s = best_span(heap, size);

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

/* All places of the block of @p, if none is made, and not all are empty. */
static int empty_block(const struct place *p)
{
	struct place *list = saved_places.list, *end = list + saved_places.count, *first, *q;
	int is_new = 0;

	for (first = list + (p - list);
		first > list && block_start(first - 1) == block_start(p); first--)
		;
	for (q = first; q < end && block_start(q) == block_start(p); q++) {
		if (is_made(q))
			return -1;
		is_new |= !q->planned;
	}
	while (q-- > first)
		q->planned = 1;
	return is_new ? 0 : -1;
}

/* @s was larger: what lies behind it was empty. */
static int enlarge_span(const struct span *s)
{
	const struct range *r = s->range;

	for (size_t i = r->first; i < r->last; i++)
		if (saved_places.list[i].start == s->end)
			return empty_block(&saved_places.list[i]);
	return -1;
}

/* @s was a part of a larger one: the shared block before it came to be when the owner was loaded. */
static int join_span(const struct span *s)
{
	const struct range *r = s->range;

	for (size_t i = r->first; i < r->last; i++)
		if (saved_places.list[i].end == s->begin && !saved_places.list[i].large)
			return empty_block(&saved_places.list[i]);
	return -1;
}

/* What was taken in place of what is to be. */
struct mistake {
	struct span span;
	struct hole hole;
	int is_span, is_in_range; /* where the variable is to lie */
};

#define REPAIRS 3

static int has_choice(const struct mistake *m)
{
	return m->is_span && m->is_in_range;
}

/* The reasons there may be for @m, one after the other: 0, or -1: it is not that one. Without a choice there is
 * the first only. */
static int repair_mistake(const struct mistake *m, unsigned which)
{
	if (!m->is_span)
		return enlarge_hole(&m->hole);
	if (!m->is_in_range)
		return leave_out_ranges(m->span.range);
	return which == 0   ? join_span(&m->span)
	       : which == 1 ? enlarge_span(&m->span)
			    : leave_out_ranges(m->span.range);
}

/* 1: all lies where it is to; 0: something else is to be empty for that, as @m tells; -1: that
 * cannot be. */
static int play_loads(struct mistake *m)
{
	*m = (struct mistake){0};
	list_empty();
	for (size_t i = 0; i < plan.variable_count; i++) {
		const struct variable *v = &plan.variables[i];
		struct span *span;
		struct hole *hole;
		uint64_t at = place_variable(v, &span, &hole);

		if (at == v->address)
			continue;
		if (!at || (span && span->range->is_absent))
			return -1;
		m->is_span = span != NULL;
		if (span) {
			m->span = *span;
			m->is_in_range = v->address >= span->range->start &&
					 v->address < span->range->end;
		} else {
			m->hole = *hole;
		}
		return 0;
	}
	return 1;
}

/* ---- the search ---- */

/* Of each place and each range. */
struct marks {
	struct place_mark {
		int planned;
		unsigned turn;
	} * places;
	int *absent;
};

static int marks_save(struct marks *m)
{
	m->places = malloc((saved_places.count + 1) * sizeof(*m->places));
	m->absent = malloc((saved_places.range_count + 1) * sizeof(*m->absent));
	if (!m->places || !m->absent)
		return agent_fail("no memory for the places of variables");
	for (size_t i = 0; i < saved_places.count; i++)
		m->places[i] = (struct place_mark){
			saved_places.list[i].planned, saved_places.list[i].plan_turn};
	for (size_t i = 0; i < saved_places.range_count; i++)
		m->absent[i] = saved_places.ranges[i].is_absent;
	return 0;
}

static void marks_restore(const struct marks *m)
{
	for (size_t i = 0; i < saved_places.count; i++) {
		saved_places.list[i].planned = m->places[i].planned;
		saved_places.list[i].plan_turn = m->places[i].turn;
	}
	for (size_t i = 0; i < saved_places.range_count; i++)
		saved_places.ranges[i].is_absent = m->absent[i];
}

static void marks_free(struct marks *m)
{
	free(m->places);
	free(m->absent);
}

/* How often there is a choice. */
#define PLAN_TRIES 1000

static int search_plan(void);

static int try_repairs(const struct mistake *mistake)
{
	struct marks before;
	int r = marks_save(&before);

	for (unsigned i = 0; i < REPAIRS && !r && plan.tries < PLAN_TRIES; i++) {
		if (!repair_mistake(mistake, i))
			r = search_plan();
		if (!r)
			marks_restore(&before);
	}
	marks_free(&before);
	return r;
}

/* 1: there is a plan; 0: nothing helps, and what has been marked is for the caller to take back; -1 by
 * agent_fail(). Ends, as each repair marks something. */
static int search_plan(void)
{
	struct mistake mistake;
	int r;

	for (;;) {
		if (leave_out_empty())
			return 0;
		r = play_loads(&mistake);
		if (r)
			return r > 0;
		if (has_choice(&mistake))
			break;
		if (repair_mistake(&mistake, 0))
			return 0;
	}
	plan.tries++;
	return try_repairs(&mistake);
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
	int r;

	plan = (struct plan){.owner = owner, .context = context};
	mark_own();
	if (!context)
		return 0;
	if (prepare_plan()) {
		drop_plan();
		return -1;
	}
	r = search_plan();
	drop_plan();
	if (!r)
		mark_own();
	return r;
}
