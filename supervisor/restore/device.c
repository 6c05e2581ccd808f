/* Device memory of a process that comes back: out of the image, through the lower half. */
#include <string.h>
#include <time.h>

#include "supervisor/lower/memory.h"
#include "supervisor/restore/lower.h"

#define COPY_NS 60000000000ull

/* What one order carries. */
struct load {
	struct restore_one *one;
	struct lower_transfer transfers[LOWER_TRANSFERS];
	unsigned count;
	uint64_t used; /* of the staging buffer */
};

static int flush(struct load *l)
{
	int r = 0;

	if (l->count)
		r = lower_order(&l->one->process, LOWER_LOAD, l->transfers, l->count,
			clock_ns(CLOCK_MONOTONIC) + COPY_NS, l->one->e);
	l->count = 0;
	l->used = 0;
	return r;
}

static int add(struct load *l, const struct image_region *g, uint64_t address, uint64_t size,
	uint64_t offset)
{
	if (!size)
		return 0;
	l->transfers[l->count++] = (struct lower_transfer){
		.address = address, .size = size, .offset = offset, .device = g->object};
	return l->count == LOWER_TRANSFERS ? flush(l) : 0;
}

/* Blocks [first, first + count) of @x, in pieces that the buffer has room for. */
static int load_blocks(struct load *l, const struct image_region *g,
	const struct image_extent *x, uint32_t first, uint32_t count)
{
	struct staging *staging = &l->one->process.lower->staging;

	while (count) {
		uint64_t room = (staging->size - l->used) / IMAGE_BLOCK;
		uint32_t n = count < room ? count : room;
		uint64_t at = l->used;

		if (!n) {
			if (flush(l))
				return -1;
			continue;
		}
		/* Compared with their hashes here: no other eye is on this way. */
		if (image_read_blocks(l->one->img, x, first, n, staging->data + at, l->one->e))
			return -1;
		l->used += (uint64_t)n * IMAGE_BLOCK;
		if (add(l, g, x->address + (uint64_t)first * IMAGE_BLOCK,
			    (uint64_t)n * IMAGE_BLOCK, at))
			return -1;
		first += n;
		count -= n;
	}
	return 0;
}

/* What no extent has, and what one says is zero, is zero. */
static int load_region(struct load *l, const struct image_region *g)
{
	uint64_t at = g->start;
	size_t count;
	const struct image_extent *x = image_extents(l->one->img, 0, &count);

	for (size_t i = 0; i < count && at < g->end; i++) {
		uint64_t end = x[i].address + (uint64_t)x[i].blocks * IMAGE_BLOCK;
		uint64_t from = x[i].address > at ? x[i].address : at;

		if (end > g->end)
			end = g->end;
		if (x[i].kind != IMAGE_EXTENT_DATA || from >= end)
			continue;
		if (add(l, g, at, from - at, LOWER_ZERO) ||
			load_blocks(l, g, &x[i], (from - x[i].address) / IMAGE_BLOCK,
				(end - from) / IMAGE_BLOCK))
			return -1;
		at = end;
	}
	return add(l, g, at, g->end - at, LOWER_ZERO);
}

int restore_device_memory(struct restore_one *one)
{
	cleanup_free struct load *l = xcalloc(1, sizeof(*l));
	const struct image_region *g;
	bool staged = false;
	size_t count;

	l->one = one;
	g = image_note_array(one->img, IMAGE_NOTE_REGIONS, struct image_region, &count);
	for (size_t i = 0; i < count; i++) {
		if (g[i].tag != IMAGE_TAG_GPU)
			continue;
		if (!staged && lower_map_staging(&one->process, one->e))
			return -1;
		staged = true;
		if (load_region(l, &g[i]))
			return -1;
	}
	return flush(l);
}
