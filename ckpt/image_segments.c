/*
 * image_segments.c - ranges and extents of one process are walked side by side, and become
 * PT_LOADs without a gap.
 */
#include "ckpt/image_segments.h"

struct builder {
	struct buf *loads;
	const struct image_range *range; /* the one being cut up */
	size_t first;                    /* its first load */
	size_t hole_loads;
	uint64_t hole_size;
};

static struct image_load *last_load(const struct builder *b)
{
	size_t n = buf_count(b->loads, struct image_load);

	return n > b->first ? buf_at(b->loads, struct image_load, n - 1) : NULL;
}

static void add_load(struct builder *b, uint64_t address, uint64_t size)
{
	struct image_load load = {
		.address = address, .memory_size = size, .flags = b->range->flags};

	buf_push(b->loads, struct image_load, &load);
}

static void add_stored(struct builder *b, uint64_t address, uint64_t size, uint64_t offset)
{
	struct image_load *last = last_load(b);

	if (last && !last->hole && last->file_size && last->file_size == last->memory_size &&
		last->file_offset + last->file_size == offset) {
		last->memory_size += size;
		last->file_size += size;
		return;
	}
	add_load(b, address, size);
	last = last_load(b);
	last->file_offset = offset;
	last->file_size = size;
}

/* Memory without contents in this file: the segment before stretches over it. */
static void add_absent(struct builder *b, uint64_t address, uint64_t size)
{
	struct image_load *last = last_load(b);

	if (last)
		last->memory_size += size;
	else
		add_load(b, address, size);
}

static void add_zero(struct builder *b, uint64_t address, uint64_t size)
{
	uint64_t pieces = (size + IMAGE_HOLE_MAX - 1) / IMAGE_HOLE_MAX;

	if (pieces > IMAGE_HOLE_LOADS - b->hole_loads) {
		add_absent(b, address, size);
		return;
	}
	b->hole_loads += pieces;
	for (uint64_t done = 0; done < size; done += IMAGE_HOLE_MAX) {
		uint64_t piece = size - done < IMAGE_HOLE_MAX ? size - done : IMAGE_HOLE_MAX;

		add_load(b, address + done, piece);
		last_load(b)->file_size = piece;
		last_load(b)->hole = true;
		if (piece > b->hole_size)
			b->hole_size = piece;
	}
}

static void add_gap(struct builder *b, uint64_t start, uint64_t end)
{
	if (start >= end)
		return;
	if (b->range->zero)
		add_zero(b, start, end - start);
	else
		add_absent(b, start, end - start);
}

/* The part of @x from @start to @end. */
static void add_extent(
	struct builder *b, const struct image_extent *x, uint64_t start, uint64_t end)
{
	if (x->kind == IMAGE_EXTENT_ZERO)
		add_zero(b, start, end - start);
	else if (x->source || x->kind == IMAGE_EXTENT_PACKED)
		add_absent(b, start, end - start);
	else
		add_stored(b, start, end - start, x->file_offset + (start - x->address));
}

static uint64_t extent_end(const struct image_extent *x)
{
	return x->address + (uint64_t)x->blocks * IMAGE_BLOCK;
}

uint64_t image_loads(const struct image_range *ranges, size_t range_count,
	const struct image_extent *extents, size_t extent_count, struct buf *loads)
{
	struct builder b = {.loads = loads};
	size_t x = 0;

	for (size_t r = 0; r < range_count; r++) {
		uint64_t at = ranges[r].start, end = ranges[r].end;

		b.range = &ranges[r];
		b.first = buf_count(loads, struct image_load);
		while (x < extent_count && extent_end(&extents[x]) <= at)
			x++;
		/* An extent may reach into the next range, so x stays on it. */
		for (size_t i = x; i < extent_count && extents[i].address < end; i++) {
			uint64_t to =
				extent_end(&extents[i]) < end ? extent_end(&extents[i]) : end;

			add_gap(&b, at, extents[i].address);
			if (extents[i].address > at)
				at = extents[i].address;
			add_extent(&b, &extents[i], at, to);
			at = to;
		}
		add_gap(&b, at, end);
	}
	return b.hole_size;
}

/* A segment without contents must not say offset 0: gdb looks for a build id in whatever ELF
 * file a segment starts with, which would be the core itself, read again for each of them. */
Elf64_Phdr image_load_header(const struct image_load *load, uint64_t hole)
{
	bool behind = load->hole || !load->file_size;

	return (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = load->flags,
		.p_offset = load->file_offset + (behind ? hole : 0),
		.p_vaddr = load->address,
		.p_filesz = load->file_size,
		.p_memsz = load->memory_size,
		.p_align = IMAGE_BLOCK,
	};
}
