/* Which regions of a process can be filled after it has resumed. */
#include "supervisor/memory/lazy_ranges.h"

#include <sys/mman.h>

#include "lib/test_hooks.h"

/* Less is read before anybody could miss it; and what a program needs at once, the data and stacks of
 * its threads, tends to be in small regions. */
#define LEAST (1ul << 20)

/* Where the kernel itself touches memory without waiting (a growing stack, what is locked), where
 * fork gives a child something else, or which userfaultfd does not watch. */
static bool may_wait(const struct image_region *g)
{
	const uint32_t flags = IMAGE_REGION_GROWSDOWN | IMAGE_REGION_LOCKED |
			       IMAGE_REGION_LOCKONFAULT | IMAGE_REGION_HUGETLB |
			       IMAGE_REGION_STACK | IMAGE_REGION_DROPPABLE;
	const uint32_t advice =
		IMAGE_ADVICE_DONTFORK | IMAGE_ADVICE_WIPEONFORK | IMAGE_ADVICE_GUARD;

	return g->kind == IMAGE_REGION_ANON && g->prot & PROT_READ && !(g->flags & flags) &&
	       !(g->advice & advice);
}

static uint64_t extent_end(const struct image_extent *x)
{
	return x->address + (uint64_t)x->blocks * IMAGE_BLOCK;
}

uint64_t stored_in_region(
	const struct image_region *g, const struct image_extent *x, size_t count, size_t *at)
{
	uint64_t bytes = 0;

	while (*at < count && extent_end(&x[*at]) <= g->start)
		++*at;
	for (size_t i = *at; i < count && x[i].address < g->end; i++) {
		uint64_t from = x[i].address > g->start ? x[i].address : g->start;
		uint64_t to = extent_end(&x[i]) < g->end ? extent_end(&x[i]) : g->end;

		if (image_extent_is_stored(&x[i]))
			bytes += to - from;
	}
	return bytes;
}

void lazy_list(const struct image *img, struct buf *ranges)
{
	uint64_t least = test_lazy() ? 1 : LEAST;
	size_t regions, extents, at = 0;
	const struct image_region *g;
	const struct image_extent *x = image_extents(img, 0, &extents);

	g = image_note_array(img, IMAGE_NOTE_REGIONS, struct image_region, &regions);
	for (size_t i = 0; i < regions; i++) {
		struct address_range range = {g[i].start, g[i].end};

		if (may_wait(&g[i]) && stored_in_region(&g[i], x, extents, &at) >= least)
			buf_push(ranges, struct address_range, &range);
	}
}
