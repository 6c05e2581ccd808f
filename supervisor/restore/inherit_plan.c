/*
 * inherit_plan.c - which contents each process that makes others is to have at each address, so that there are as few
 * copies as can be: one for each process that has other contents than its maker gets, and one for each maker that
 * gets others than its own maker. With a process's contents as a leaf at its maker, that is the least number of
 * changes in a tree (J. A. Hartigan, Minimum mutation fits to a given tree, 1973): going up, each maker is for what
 * most of its children are for; going down, it gets what its own maker has, unless that makes more copies.
 */
#include "supervisor/restore/inherit_plan.h"

#include <linux/sched.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/memory/place_blocks.h"

/* A process for which it is not worth it executes its program, as others do. */
#define LEAST (1ul << 20)

/* Steps that working it out may take, a few seconds. At higher addresses nothing is inherited then. */
#define WORK_MOST (1ull << 30)

#define NOTHING SIZE_MAX

/* A process that has memory of its own when it makes children. */
struct inherit_maker {
	size_t node;
	size_t maker; /* the one that it descends from, before it in the list; of the first: itself */
	struct buf memory; /* struct stored_run: what it has then */
	struct buf fill;   /* and what of that its maker has not */
	size_t chosen; /* in the part that is being looked at, of its contents: NOTHING: none */
};

struct inherit {
	const struct checkpoint *c;
	const struct creation_order *order;
	struct inherit_candidates k;
	struct buf makers; /* struct inherit_maker */
	size_t *maker_of;  /* by node: whose memory it has, of makers */
	bool *heir;        /* by process */
	bool *concerned;   /* by node: an heir, or the maker of one or of its makers */
};

static struct inherit_maker *maker_at(const struct inherit *h, size_t i)
{
	return buf_at(&h->makers, struct inherit_maker, i);
}

static size_t maker_count(const struct inherit *h)
{
	return buf_count(&h->makers, struct inherit_maker);
}

/* ---- runs ---- */

static bool same_blocks(const struct stored_run *a, const struct stored_run *b)
{
	return a->file == b->file && a->pack == b->pack && a->base == b->base;
}

/* Part of @run; with what comes before, if that is part of it, too. A run is in one area, and so are its parts. */
static void append_run(
	struct buf *runs, const struct stored_run *run, uint64_t start, uint64_t end)
{
	size_t count = buf_count(runs, struct stored_run);
	struct stored_run *last = count ? buf_at(runs, struct stored_run, count - 1) : NULL;
	struct stored_run part = *run;

	if (last && last->end == start && last->x == run->x && run->start < start) {
		last->end = end;
		return;
	}
	part.start = start;
	part.end = end;
	buf_push(runs, struct stored_run, &part);
}

/* Goes through a list of runs. */
struct cursor {
	const struct stored_run *next, *end;
};

static struct cursor cursor_at_first(const struct buf *runs)
{
	const struct stored_run *first = runs->data;

	return (struct cursor){first, first + buf_count(runs, struct stored_run)};
}

/* The run that @address is in, or NULL. Addresses do not go back. */
static const struct stored_run *cursor_run(struct cursor *c, uint64_t address)
{
	while (c->next < c->end && c->next->end <= address)
		c->next++;
	return c->next < c->end && c->next->start <= address ? c->next : NULL;
}

/* A process that can inherit. */
struct inherit_heir {
	size_t maker; /* whose memory it gets */
	struct cursor cursor;
};

/* ---- who makes whom ---- */

static bool makes_others(const struct inherit *h, size_t node)
{
	for (size_t i = 1; i < creation_order_count(h->order); i++)
		if (creation_order_at(h->order, i)->creator == node)
			return true;
	return false;
}

/* What shares its maker's memory makes its children out of that. */
static void list_makers(struct inherit *h, size_t node, size_t maker)
{
	struct inherit_maker own = {.node = node, .maker = maker};

	if (!node || (!(creation_order_at(h->order, node)->shares & CLONE_VM) &&
			     makes_others(h, node))) {
		maker = maker_count(h);
		own.maker = node ? own.maker : maker;
		buf_push(&h->makers, struct inherit_maker, &own);
	}
	h->maker_of[node] = maker;
	for (size_t i = 1; i < creation_order_count(h->order); i++)
		if (creation_order_at(h->order, i)->creator == node)
			list_makers(h, i, maker);
}

static const struct buf *memory_of(const struct inherit *h, size_t process)
{
	return &maker_at(h, h->maker_of[process])->memory;
}

/* ---- what they get ---- */

/* Between two addresses where nothing changes. */
struct part {
	uint64_t start, end;
	const struct stored_run **contents; /* those that differ */
	size_t count;
	uint32_t *votes; /* by maker and contents */
};

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void add_borders(struct buf *borders, const struct buf *runs)
{
	const struct stored_run *run = runs->data;

	for (size_t i = 0; i < buf_count(runs, struct stored_run); i++) {
		buf_push(borders, uint64_t, &run[i].start);
		buf_push(borders, uint64_t, &run[i].end);
	}
}

static uint32_t *vote_at(const struct part *p, size_t maker, size_t contents)
{
	return &p->votes[maker * p->count + contents];
}

/* Its number in p->contents. */
static size_t find_contents(struct part *p, const struct stored_run *run)
{
	for (size_t i = 0; i < p->count; i++)
		if (same_blocks(p->contents[i], run))
			return i;
	p->contents[p->count] = run;
	return p->count++;
}

static uint32_t most_votes(const struct part *p, size_t maker)
{
	uint32_t most = 0;

	for (size_t i = 0; i < p->count; i++)
		most = *vote_at(p, maker, i) > most ? *vote_at(p, maker, i) : most;
	return most;
}

/* Makers are behind their own. */
static void vote_upwards(const struct inherit *h, const struct part *p)
{
	for (size_t m = maker_count(h) - 1; m; m--) {
		uint32_t most = most_votes(p, m);

		for (size_t i = 0; most && i < p->count; i++)
			if (*vote_at(p, m, i) == most)
				++*vote_at(p, maker_at(h, m)->maker, i);
	}
}

static size_t choose(const struct part *p, size_t maker, size_t held)
{
	uint32_t most = most_votes(p, maker), kept = 0;

	kept = held == NOTHING ? 0 : *vote_at(p, maker, held);
	for (size_t i = 0; most > kept + 1 && i < p->count; i++)
		if (*vote_at(p, maker, i) == most)
			return i;
	return held;
}

static void choose_downwards(const struct inherit *h, const struct part *p)
{
	for (size_t i = 0; i < maker_count(h); i++) {
		struct inherit_maker *m = maker_at(h, i);
		size_t held = i ? maker_at(h, m->maker)->chosen : NOTHING;

		m->chosen = choose(p, i, held);
		if (m->chosen == NOTHING)
			continue;
		append_run(&m->memory, p->contents[m->chosen], p->start, p->end);
		if (m->chosen != held)
			append_run(&m->fill, p->contents[m->chosen], p->start, p->end);
	}
}

/* @found: room for a number for each heir. Returns how many steps it has taken. */
static uint64_t plan_part(const struct inherit *h, struct part *p, struct inherit_heir *heirs,
	size_t count, size_t *found)
{
	p->count = 0;
	for (size_t i = 0; i < count; i++) {
		const struct stored_run *run = cursor_run(&heirs[i].cursor, p->start);

		found[i] = run ? find_contents(p, run) : NOTHING;
	}
	memset(p->votes, 0, maker_count(h) * p->count * sizeof(*p->votes));
	for (size_t i = 0; i < count; i++)
		if (found[i] != NOTHING)
			++*vote_at(p, heirs[i].maker, found[i]);
	vote_upwards(h, p);
	choose_downwards(h, p);
	return count + (count + maker_count(h)) * p->count;
}

static void plan_all(const struct inherit *h)
{
	size_t most = h->c->process_count, count = 0;
	cleanup_free struct inherit_heir *heirs = xcalloc(most, sizeof(*heirs));
	cleanup_free size_t *found = xcalloc(most, sizeof(*found));
	cleanup_free const struct stored_run **contents = xcalloc(most, sizeof(*contents));
	cleanup_free uint32_t *votes = xcalloc(most * maker_count(h), sizeof(*votes));
	cleanup_buf struct buf borders = {0};
	struct part p = {.contents = contents, .votes = votes};
	uint64_t *b, work = 0;
	size_t borders_count;

	for (size_t i = 0; i < most; i++)
		if (h->k.runs[i].len) {
			heirs[count++] = (struct inherit_heir){
				h->maker_of[i], cursor_at_first(&h->k.runs[i])};
			add_borders(&borders, &h->k.runs[i]);
		}
	b = borders.data;
	borders_count = buf_count(&borders, uint64_t);
	if (borders_count)
		qsort(b, borders_count, sizeof(*b), compare_addresses);
	for (size_t i = 0; i + 1 < borders_count && work < WORK_MOST; i++) {
		p.start = b[i];
		p.end = b[i + 1];
		if (p.start < p.end)
			work += plan_part(h, &p, heirs, count, found);
	}
}

/* ---- what comes of it ---- */

static bool is_usable(const struct inherit *h, const struct stored_run *run)
{
	const struct inherit_area *area = inherit_area_at(&h->k, run->start);

	return area && area->usable;
}

/* The parts of what process @i has in its maker's memory that are its own contents: struct address_range. */
static void list_same(const struct inherit *h, size_t i, struct buf *same)
{
	const struct buf *memory = memory_of(h, i);
	struct cursor own = cursor_at_first(&h->k.runs[i]);
	const struct stored_run *m = memory->data;

	for (size_t n = 0; n < buf_count(memory, struct stored_run); n++) {
		const struct stored_run *run;

		if (!is_usable(h, &m[n]))
			continue;
		for (uint64_t at = m[n].start, to; at < m[n].end; at = to) {
			run = cursor_run(&own, at);
			to = run ? run->end : own.next < own.end ? own.next->start : m[n].end;
			to = to < m[n].end ? to : m[n].end;
			if (run && same_blocks(run, &m[n]))
				address_ranges_add(same, at, to);
		}
	}
}

static uint64_t ranges_size(const struct buf *ranges)
{
	const struct address_range *r = ranges->data;
	uint64_t size = 0;

	for (size_t i = 0; i < buf_count(ranges, struct address_range); i++)
		size += r[i].end - r[i].start;
	return size;
}

static uint64_t usable_size(const struct inherit *h, const struct buf *runs)
{
	const struct stored_run *r = runs->data;
	uint64_t size = 0;

	for (size_t i = 0; i < buf_count(runs, struct stored_run); i++)
		size += is_usable(h, &r[i]) ? r[i].end - r[i].start : 0;
	return size;
}

static uint64_t same_size(const struct inherit *h, size_t i)
{
	cleanup_buf struct buf same = {0};

	list_same(h, i, &same);
	return ranges_size(&same);
}

static void find_concerned(struct inherit *h, size_t heir)
{
	for (size_t node = heir; !h->concerned[node];
		node = creation_order_at(h->order, node)->creator)
		h->concerned[node] = true;
}

static void find_heirs(struct inherit *h)
{
	for (size_t i = 0; i < h->c->process_count; i++) {
		h->heir[i] = same_size(h, i) >= LEAST;
		if (h->heir[i])
			find_concerned(h, i);
	}
	if (inherit_saves(h))
		return;
	memset(h->heir, 0, h->c->process_count * sizeof(*h->heir));
	memset(h->concerned, 0, creation_order_count(h->order) * sizeof(*h->concerned));
}

struct inherit *inherit_plan(const struct checkpoint *c, const struct creation_order *order)
{
	struct inherit *h = xcalloc(1, sizeof(*h));

	h->c = c;
	h->order = order;
	h->maker_of = xcalloc(creation_order_count(order), sizeof(*h->maker_of));
	h->heir = xcalloc(c->process_count, sizeof(*h->heir));
	h->concerned = xcalloc(creation_order_count(order), sizeof(*h->concerned));
	inherit_candidates_find(&h->k, c);
	list_makers(h, 0, 0);
	plan_all(h);
	find_heirs(h);
	return h;
}

void inherit_free(struct inherit *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < maker_count(h); i++) {
		buf_free(&maker_at(h, i)->memory);
		buf_free(&maker_at(h, i)->fill);
	}
	buf_free(&h->makers);
	inherit_candidates_free(&h->k);
	free(h->maker_of);
	free(h->heir);
	free(h->concerned);
	free(h);
}

bool inherit_is_heir(const struct inherit *h, size_t i)
{
	return h->heir[i];
}

bool inherit_concerns(const struct inherit *h, size_t node)
{
	return h->concerned[node];
}

uint64_t inherit_saves(const struct inherit *h)
{
	uint64_t common = 0, filled = 0;

	for (size_t i = 0; i < h->c->process_count; i++)
		common += h->heir[i] ? same_size(h, i) : 0;
	for (size_t i = 0; i < maker_count(h); i++)
		if (h->concerned[maker_at(h, i)->node])
			filled += usable_size(h, &maker_at(h, i)->fill);
	return common > filled ? common - filled : 0;
}

struct buf *inherit_areas(struct inherit *h)
{
	return &h->k.areas;
}

void inherit_fill(const struct inherit *h, size_t node, struct buf *list)
{
	const struct inherit_maker *m = maker_at(h, h->maker_of[node]);
	const struct buf *fill = &m->fill;
	const struct stored_run *run = fill->data;

	for (size_t i = 0; m->node == node && i < buf_count(fill, struct stored_run); i++)
		if (is_usable(h, &run[i]))
			place_blocks_add(list, run[i].img, run[i].x,
				(run[i].start - run[i].x->address) / IMAGE_BLOCK,
				(run[i].end - run[i].start) / IMAGE_BLOCK);
}

/* What is in the regions by then and has not the process's contents. */
static void list_other(const struct buf *memory, struct inherited *in)
{
	const struct stored_run *m = memory->data;

	for (size_t i = 0; i < buf_count(memory, struct stored_run); i++)
		for (uint64_t at = m[i].start, to; at < m[i].end; at = to) {
			bool inherited, same;

			to = address_ranges_part(&in->regions, at, m[i].end, &inherited);
			to = address_ranges_part(&in->same, at, to, &same);
			if (inherited && !same)
				address_ranges_add(&in->other, at, to);
		}
}

/* Whether any of @g has been inherited. */
static bool has_same(const struct inherited *in, const struct image_region *g)
{
	bool same;

	return address_ranges_part(&in->same, g->start, g->end, &same) < g->end || same;
}

void inherit_result(const struct inherit *h, size_t i, struct inherited *in)
{
	const struct image_region *g;
	size_t count;

	if (!h->heir[i])
		return;
	list_same(h, i, &in->same);
	g = image_note_array(
		h->c->processes[i], IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t n = 0; n < count; n++)
		if (inherit_can_have(&h->k, g, count, n) && has_same(in, &g[n]))
			address_ranges_add(&in->regions, g[n].start, g[n].end);
	list_other(memory_of(h, i), in);
}
