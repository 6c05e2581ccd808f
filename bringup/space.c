/*
 * space.c - sorted ranges of what is taken and what is to be kept free, and the search for
 * room among them.
 */
#include "bringup/space.h"

#include <stdbool.h>

#include "shared/raw.h"
#include "shared/address_windows.h"

#define PAGE       4096ul
#define HUGE       (2ul << 20)
#define SPACE_KEPT 4096

static struct space_list parts[SPACE_PARTS];
static struct space_taken taken;

static struct hints {
	uint32_t count;
	struct {
		uint64_t address, size;
	} list[SPACE_HINTS];
} hints[SPACE_PARTS];

/* For hints only. */
static struct space_range kept[SPACE_KEPT];
static uint32_t kept_count;

static const struct space_range bounds[SPACE_PARTS] = {
	/* The driver's own places, and device memory: all below. */
	[SPACE_OUTSIDE] = {0, LOWER_WINDOW},
	[SPACE_FIXED] = {LOWER_WINDOW, LOWER_PART_LDSO},
	[SPACE_LDSO] = {LOWER_PART_LDSO, LOWER_PART_LIBC},
	[SPACE_LIBC] = {LOWER_PART_LIBC, LOWER_HEAP},
	[SPACE_HEAP] = {LOWER_HEAP, LOWER_PART_STACKS},
	[SPACE_STACKS] = {LOWER_PART_STACKS, LOWER_PART_DRIVER},
	[SPACE_DRIVER] = {LOWER_PART_DRIVER, LOWER_PART_END},
};

/* Index of the first range that ends after @address. */
static uint32_t first_after(const struct space_list *p, uint64_t address)
{
	uint32_t low = 0, high = p->count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (p->ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool insert_range(struct space_list *p, uint32_t at, struct space_range r)
{
	if (p->count == SPACE_RANGES)
		return false;
	for (uint32_t i = p->count++; i > at; i--)
		p->ranges[i] = p->ranges[i - 1];
	p->ranges[at] = r;
	return true;
}

/* The supervisor may look at a thread's work half done, of a child that fork(2) has made then:
 * nothing that is taken is missing at any time. */
static void erase_ranges(struct space_list *p, uint32_t at, uint32_t n)
{
	for (uint32_t i = at; i + n < p->count; i++)
		p->ranges[i] = p->ranges[i + n];
	__atomic_store_n(&p->count, p->count - n, __ATOMIC_RELEASE);
}

/* Take [start, end), joining it with what it touches. */
static bool add_range(struct space_list *p, uint64_t start, uint64_t end)
{
	uint32_t at = first_after(p, start - 1), n = 0;

	while (at + n < p->count && p->ranges[at + n].start <= end) {
		if (p->ranges[at + n].start < start)
			start = p->ranges[at + n].start;
		if (p->ranges[at + n].end > end)
			end = p->ranges[at + n].end;
		n++;
	}
	if (!n)
		return insert_range(p, at, (struct space_range){start, end});
	p->ranges[at] = (struct space_range){start, end};
	erase_ranges(p, at + 1, n - 1);
	return true;
}

static void cut_range(struct space_list *p, uint64_t start, uint64_t end)
{
	uint32_t at = first_after(p, start);

	while (at < p->count && p->ranges[at].start < end) {
		struct space_range r = p->ranges[at];

		if (r.start < start && r.end > end) {
			/* In a table that is full the hole stays taken: no memory is lost, and
			 * none of the lower half's is taken for the program's. */
			if (insert_range(p, at + 1, (struct space_range){end, r.end}))
				p->ranges[at].end = start;
			return;
		}
		if (r.start < start) {
			p->ranges[at++].end = start;
		} else if (r.end > end) {
			p->ranges[at].start = end;
			return;
		} else {
			erase_ranges(p, at, 1);
		}
	}
}

/* The end of the first range that [start, start + size) meets, or 0. */
static uint64_t end_of_overlap(const struct space_list *p, uint64_t start, uint64_t size)
{
	uint32_t i = first_after(p, start);

	return i < p->count && p->ranges[i].start < start + size ? p->ranges[i].end : 0;
}

/* The same for what is kept: its end. */
static uint64_t met_kept(uint64_t start, uint64_t size)
{
	for (uint32_t i = 0; i < kept_count; i++)
		if (kept[i].start < start + size && kept[i].end > start)
			return kept[i].end;
	return 0;
}

static uint64_t first_fit(enum space_part part, uint64_t size)
{
	uint64_t align = size >= HUGE ? HUGE : PAGE;
	uint64_t start = bounds[part].start, end;

	while ((end = end_of_overlap(&parts[part], start, size)) ||
		(end = met_kept(start, size)))
		start = (end + align - 1) & ~(align - 1);
	return start;
}

static void note_taken(uint64_t start, uint64_t size)
{
	if (taken.count == SPACE_TAKEN) {
		taken.lost = 1;
		return;
	}
	start = (start + SPACE_STEP - 1) & ~(SPACE_STEP - 1);
	taken.ranges[taken.count++] = (struct space_range){start, start + size};
}

static void forget_taken(uint64_t start, uint64_t end)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < taken.count; i++)
		if (taken.ranges[i].start < start || taken.ranges[i].end > end)
			taken.ranges[n++] = taken.ranges[i];
	taken.count = n;
}

const struct space_taken *space_taken(void)
{
	return &taken;
}

uint64_t space_take(enum space_part part, uint64_t size)
{
	struct space_list *p = &parts[part];
	uint64_t start;

	raw_lock(&p->lock);
	start = first_fit(part, size);
	if (start + size < start || start + size > bounds[part].end ||
		!add_range(p, start, start + size))
		start = 0;
	if (start && part == SPACE_DRIVER && size > SPACE_STEP &&
		size % SPACE_STEP == SPACE_STEP - PAGE)
		note_taken(start, size - SPACE_STEP + PAGE);
	raw_unlock(&p->lock);
	return start;
}

uint64_t space_take_hinted(enum space_part part, uint64_t size, uint64_t *hinted)
{
	const struct hints *w = &hints[part];
	struct space_list *p = &parts[part];
	uint64_t start = 0;

	raw_lock(&p->lock);
	for (uint32_t i = 0; i < w->count && !start; i++) {
		uint64_t address = w->list[i].address, room = w->list[i].size;

		if (size != room + SPACE_STEP - PAGE || end_of_overlap(p, address, room) ||
			!add_range(p, address, address + room))
			continue;
		start = address;
		*hinted = room;
		note_taken(start, room);
	}
	raw_unlock(&p->lock);
	return start;
}

void space_hint(enum space_part part, uint64_t address, uint64_t size)
{
	struct hints *w = &hints[part];

	raw_lock(&parts[part].lock);
	if (!size) {
		w->count = 0;
	} else if (w->count < SPACE_HINTS) {
		w->list[w->count].address = address;
		w->list[w->count++].size = size;
	}
	raw_unlock(&parts[part].lock);
}

int space_keep(enum space_part part, uint64_t start, uint64_t end)
{
	if (start < bounds[part].start || end > bounds[part].end || kept_count == SPACE_KEPT)
		return -1;
	raw_lock(&parts[part].lock);
	kept[kept_count++] = (struct space_range){start, end};
	raw_unlock(&parts[part].lock);
	return 0;
}

static void note_change(uint64_t start, uint64_t size, bool taken)
{
	uint64_t end = start + ((size + PAGE - 1) & ~(PAGE - 1));

	for (unsigned i = 0; i < SPACE_PARTS; i++) {
		struct space_list *p = &parts[i];
		uint64_t low = start > bounds[i].start ? start : bounds[i].start;
		uint64_t high = end < bounds[i].end ? end : bounds[i].end;

		if (low >= high)
			continue;
		raw_lock(&p->lock);
		if (taken)
			add_range(p, low, high);
		else
			cut_range(p, low, high);
		raw_unlock(&p->lock);
	}
}

const struct space_list *space_lists(void)
{
	return parts;
}

void space_found(uint64_t start, uint64_t size)
{
	struct space_list *p = &parts[SPACE_FOUND];

	raw_lock(&p->lock);
	add_range(p, start, start + size); /* when there are that many, more do not matter */
	raw_unlock(&p->lock);
}

void space_mark(uint64_t start, uint64_t size)
{
	note_change(start, size, true);
}

void space_release(uint64_t start, uint64_t size)
{
	raw_lock(&parts[SPACE_DRIVER].lock);
	forget_taken(start, start + size);
	raw_unlock(&parts[SPACE_DRIVER].lock);
	note_change(start, size, false);
}
