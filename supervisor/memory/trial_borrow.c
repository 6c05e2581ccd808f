/*
 * In a trial the program is still there, and there may be no room for its memory a second time.
 * So pages of the image's files, which the page cache has just been given, are mapped in the
 * place of memory: privately, so that only what is written to takes memory of its own. Short
 * runs are read, as a process may have only so many mappings.
 */
#include "supervisor/memory/trial_borrow.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "supervisor/memory/memory_restore.h"

/* vm.max_map_count is 65530 where nobody has changed it. */
#define MAPPINGS_MAX 16384
#define SHORTEST     (64ul << 10)

/* Whether pages of a file can take the place of @g's: file systems may forbid to execute, and
 * stacks grow. */
static bool may_borrow(const struct image_region *g)
{
	return !(g->prot & PROT_EXEC) &&
	       !(g->flags & (IMAGE_REGION_GROWSDOWN | IMAGE_REGION_DROPPABLE));
}

/* The part of @x that lies in @g. */
struct part {
	uint64_t skip, size;
};

static struct part part_in(const struct image_extent *x, const struct image_region *g)
{
	uint64_t end = x->address + (uint64_t)x->blocks * IMAGE_BLOCK;
	uint64_t from = x->address > g->start ? x->address : g->start;
	uint64_t to = end < g->end ? end : g->end;

	return (struct part){from - x->address, from < to ? to - from : 0};
}

static void add_part(struct restore_plan *p, const struct image_region *g,
	const struct image_extent *x, uint64_t shortest)
{
	struct part part = part_in(x, g);
	struct batch_call *c;

	/* Compressed blocks have no pages to lend: they are brought by decompress.c. */
	if (!part.size || g->kind == IMAGE_REGION_DEVICE || x->kind == IMAGE_EXTENT_PACKED)
		return;
	if (x->kind != IMAGE_EXTENT_DATA || part.size < shortest || !may_borrow(g)) {
		restore_plan_fill(p, &p->fill[0], x, part.skip, part.size);
		return;
	}
	c = BATCH_ADD(&p->fill[0], "map memory from the image", SYS_mmap,
		x->address + part.skip, part.size, g->prot | PROT_WRITE,
		MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, restart_fd_source(p->fds, x->source),
		x->file_offset + part.skip);
	c->check = BATCH_EQUALS;
	c->expect = x->address + part.skip;
}

/* Not every file system can. */
static bool can_be_mapped(const struct image *img)
{
	void *p = mmap(NULL, IMAGE_BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE, img->fd, 0);

	return p != MAP_FAILED && !munmap(p, IMAGE_BLOCK);
}

/* So long that there are not too many. */
static uint64_t shortest_of(const struct image *img, const struct image_extent *x, size_t count)
{
	uint64_t shortest = SHORTEST;
	size_t mappings;

	if (!can_be_mapped(img))
		return UINT64_MAX;
	for (;; shortest *= 2) {
		mappings = 0;
		for (size_t i = 0; i < count; i++)
			mappings += x[i].kind == IMAGE_EXTENT_DATA &&
				    (uint64_t)x[i].blocks * IMAGE_BLOCK >= shortest;
		if (mappings <= MAPPINGS_MAX)
			return shortest;
	}
}

void restore_plan_borrow(struct restore_plan *p)
{
	size_t count, regions, at = 0;
	const struct image_extent *x = image_extents(p->img, 0, &count);
	const struct image_region *g =
		image_note_array(p->img, IMAGE_NOTE_REGIONS, struct image_region, &regions);
	uint64_t shortest = shortest_of(p->img, x, count);

	/* Both are in the order of their addresses (check_layout()). */
	for (size_t i = 0; i < count; i++) {
		uint64_t end = x[i].address + (uint64_t)x[i].blocks * IMAGE_BLOCK;

		while (at < regions && g[at].end <= x[i].address)
			at++;
		for (size_t k = at; k < regions && g[k].start < end; k++)
			add_part(p, &g[k], &x[i], shortest);
	}
}
