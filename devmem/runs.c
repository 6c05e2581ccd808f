/*
 * Runs are kept in bins by length, four to a doubling, newest first: finding one takes a look
 * into the bin that the length belongs to and the next bin that is not empty. A run's length
 * stands at both of its ends, so neighbours are found without searching.
 */
#include "devmem/runs.h"

/* Runs of the bin itself that are looked at: some are too short, or do not fit otherwise. */
#define LOOKS 32

static uint32_t bin_of(uint32_t count)
{
	uint32_t log = 31 - __builtin_clz(count);

	return log < 2 ? count - 1 : (log - 1) * 4 + (count >> (log - 2) & 3);
}

static void link_run(struct devmem_device *d, uint32_t state, uint32_t start, uint32_t count)
{
	struct devmem_granule *g = &d->granules[start];
	uint32_t bin = bin_of(count), *head = &d->bins[state][bin];

	g->state = d->granules[start + count - 1].state = state;
	g->run = d->granules[start + count - 1].run = count;
	g->previous = DEVMEM_NONE;
	g->next = *head;
	if (*head != DEVMEM_NONE)
		d->granules[*head].previous = start;
	*head = start;
	d->filled[state][bin / 64] |= 1ul << bin % 64;
}

static void unlink_run(struct devmem_device *d, uint32_t start)
{
	struct devmem_granule *g = &d->granules[start];
	uint32_t bin = bin_of(g->run);

	if (g->next != DEVMEM_NONE)
		d->granules[g->next].previous = g->previous;
	if (g->previous != DEVMEM_NONE) {
		d->granules[g->previous].next = g->next;
		return;
	}
	d->bins[g->state][bin] = g->next;
	if (g->next == DEVMEM_NONE)
		d->filled[g->state][bin / 64] &= ~(1ul << bin % 64);
}

uint32_t runs_give(struct devmem_device *d, uint32_t state, uint32_t start, uint32_t count)
{
	uint32_t end = start + count;

	/* Addresses that were never used need not be touched, and are many. */
	for (uint32_t i = start; i < end && i < d->top; i++)
		d->granules[i].state = state;
	if (start && d->granules[start - 1].state == state) {
		start -= d->granules[start - 1].run;
		unlink_run(d, start);
	}
	if (end < DEVMEM_GRANULES && d->granules[end].state == state) {
		uint32_t more = d->granules[end].run;

		unlink_run(d, end);
		end += more;
	}
	link_run(d, state, start, end - start);
	return start;
}

void runs_take(struct devmem_device *d, uint32_t run, uint32_t start, uint32_t count)
{
	uint32_t state = d->granules[run].state, end = run + d->granules[run].run;

	unlink_run(d, run);
	if (start > run)
		link_run(d, state, run, start - run);
	if (end > start + count)
		link_run(d, state, start + count, end - start - count);
}

static uint32_t next_filled(const struct devmem_device *d, uint32_t state, uint32_t bin)
{
	for (; bin < DEVMEM_BINS; bin = (bin | 63) + 1) {
		uint64_t word = d->filled[state][bin / 64] >> bin % 64;

		if (word)
			return bin + __builtin_ctzl(word);
	}
	return DEVMEM_BINS;
}

uint32_t runs_find(const struct devmem_device *d, uint32_t state, uint32_t count,
	int (*fits)(const struct devmem_device *d, uint32_t run, uint32_t count))
{
	uint32_t bin = next_filled(d, state, bin_of(count));

	for (; bin < DEVMEM_BINS; bin = next_filled(d, state, bin + 1)) {
		uint32_t at = d->bins[state][bin];

		for (uint32_t i = 0; at != DEVMEM_NONE && i < LOOKS; i++) {
			if (d->granules[at].run >= count && fits(d, at, count))
				return at;
			at = d->granules[at].next;
		}
	}
	return DEVMEM_NONE;
}
