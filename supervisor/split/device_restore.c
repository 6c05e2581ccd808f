/*
 * Device memory of a process that comes back: out of the image, through the lower half.
 *
 * Several threads read, each into a part of the staging buffer that is its own: the others go
 * on while the lower half copies what one has read.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "lib/threads.h"
#include "supervisor/split/device_memory.h"
#include "supervisor/split/lower_restore.h"

#define COPY_NS 60000000000ull

/* What a thread takes at a time. */
#define PIECE        (8ul << 20)
#define MOST_LOADERS 16

struct loading {
	struct new_process *np;
	const struct image_region *regions;
	size_t region_count;
	pthread_mutex_t lock; /* of what follows, and one order at a time */
	size_t region;        /* the next piece: region and offset in it */
	uint64_t offset;
	bool failed;
};

/* What one order carries. */
struct load {
	struct loading *all;
	char *data; /* its part of the staging buffer */
	uint64_t start, size, used;
	struct lower_transfer transfers[LOWER_TRANSFERS];
	unsigned count;
	struct err e;
};

static int flush_transfers(struct load *l)
{
	int r = 0;

	pthread_mutex_lock(&l->all->lock);
	if (l->count && !l->all->failed)
		r = lower_order(&l->all->np->process, LOWER_LOAD, l->transfers, l->count,
			clock_ns(CLOCK_MONOTONIC) + COPY_NS, &l->e);
	pthread_mutex_unlock(&l->all->lock);
	l->count = 0;
	l->used = 0;
	return r;
}

static int add_range(struct load *l, const struct image_region *g, uint64_t address,
	uint64_t size, uint64_t offset)
{
	if (!size)
		return 0;
	l->transfers[l->count++] = (struct lower_transfer){
		.address = address, .size = size, .offset = offset, .device = g->object};
	return l->count == LOWER_TRANSFERS ? flush_transfers(l) : 0;
}

/* Blocks [first, first + count) of @x, in pieces that there is room for. */
static int load_blocks(struct load *l, const struct image_region *g,
	const struct image_extent *x, uint32_t first, uint32_t count)
{
	while (count) {
		uint64_t room = (l->size - l->used) / IMAGE_BLOCK;
		uint32_t n = count < room ? count : room;
		uint64_t at = l->used;

		if (!n) {
			if (flush_transfers(l))
				return -1;
			continue;
		}
		/* Compared with their hashes here: no other eye is on this way. */
		if (image_read_blocks(l->all->np->img, x, first, n, l->data + at, &l->e))
			return -1;
		l->used += (uint64_t)n * IMAGE_BLOCK;
		if (add_range(l, g, x->address + (uint64_t)first * IMAGE_BLOCK,
			    (uint64_t)n * IMAGE_BLOCK, l->start + at))
			return -1;
		first += n;
		count -= n;
	}
	return 0;
}

/* The first of @count extents that ends behind @address, or @count. */
static size_t first_behind(const struct image_extent *x, size_t count, uint64_t address)
{
	size_t low = 0;

	while (low < count) {
		size_t middle = low + (count - low) / 2;

		if (x[middle].address + (uint64_t)x[middle].blocks * IMAGE_BLOCK > address)
			count = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* What no extent has, and what one says is zero, is zero. */
static int load_range(
	struct load *l, const struct image_region *g, uint64_t start, uint64_t range_end)
{
	uint64_t at = start;
	size_t count;
	const struct image_extent *x = image_extents(l->all->np->img, 0, &count);

	for (size_t i = first_behind(x, count, start); i < count && at < range_end; i++) {
		uint64_t end = x[i].address + (uint64_t)x[i].blocks * IMAGE_BLOCK;
		uint64_t from = x[i].address > at ? x[i].address : at;

		if (end > range_end)
			end = range_end;
		if (!image_extent_is_stored(&x[i]) || from >= end)
			continue;
		if (add_range(l, g, at, from - at, LOWER_ZERO) ||
			load_blocks(l, g, &x[i], (from - x[i].address) / IMAGE_BLOCK,
				(end - from) / IMAGE_BLOCK))
			return -1;
		at = end;
	}
	return add_range(l, g, at, range_end - at, LOWER_ZERO);
}

/* The next piece for a thread to load; NULL: there is none. */
static const struct image_region *next_piece(struct loading *a, uint64_t *start, uint64_t *end)
{
	const struct image_region *g = NULL;

	pthread_mutex_lock(&a->lock);
	while (a->region < a->region_count &&
		(a->regions[a->region].tag != IMAGE_TAG_GPU ||
			a->offset >= a->regions[a->region].end - a->regions[a->region].start)) {
		a->region++;
		a->offset = 0;
	}
	if (a->region < a->region_count && !a->failed) {
		g = &a->regions[a->region];
		*start = g->start + a->offset;
		*end = g->end - *start < PIECE ? g->end : *start + PIECE;
		a->offset += PIECE;
	}
	pthread_mutex_unlock(&a->lock);
	return g;
}

static void *load_pieces(void *argument)
{
	struct load *l = argument;
	const struct image_region *g;
	uint64_t start, end;
	int r = 0;

	while (!r && (g = next_piece(l->all, &start, &end)))
		r = load_range(l, g, start, end);
	if (!r)
		r = flush_transfers(l);
	if (!r)
		return NULL;
	/* The first error is reported; all stop at it. */
	pthread_mutex_lock(&l->all->lock);
	if (!l->all->failed && l->all->np->e)
		*l->all->np->e = l->e;
	l->all->failed = true;
	pthread_mutex_unlock(&l->all->lock);
	return NULL;
}

static int load_all(struct loading *a)
{
	unsigned count = threads_wanted(a->np->plan.wanted_threads, MOST_LOADERS), started = 1;
	cleanup_free struct load *loads = xcalloc(count, sizeof(*loads));
	cleanup_free pthread_t *threads = xcalloc(count, sizeof(*threads));
	struct staging *staging = &a->np->process.lower->staging;
	uint64_t part = align_down(staging->size / count, IMAGE_BLOCK);
	sigset_t all, mask;

	for (unsigned i = 0; i < count; i++) {
		loads[i].all = a;
		loads[i].start = i * part;
		loads[i].data = staging->data + i * part;
		loads[i].size = part;
	}
	/* Signals are for the thread that called us. Fewer threads only make it slower. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	while (started < count &&
		!thread_start(&threads[started], load_pieces, &loads[started]))
		started++;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	load_pieces(&loads[0]);
	for (unsigned i = 1; i < started; i++)
		pthread_join(threads[i], NULL);
	return a->failed ? -1 : 0;
}

int restore_device_memory(struct new_process *np)
{
	struct loading a = {.np = np, .lock = PTHREAD_MUTEX_INITIALIZER};

	a.regions = image_note_array(
		np->img, IMAGE_NOTE_REGIONS, struct image_region, &a.region_count);
	for (size_t i = 0; i < a.region_count; i++)
		if (a.regions[i].tag == IMAGE_TAG_GPU)
			return staging_map(&np->process, np->e) ? -1 : load_all(&a);
	return 0;
}
