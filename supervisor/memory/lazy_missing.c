/* Pages that are still to be filled, and the blocks of the image that belong there. */
#include "supervisor/memory/lazy_missing.h"

static uint64_t extent_end(const struct image_extent *x)
{
	return x->address + (uint64_t)x->blocks * IMAGE_BLOCK;
}

void missing_add(struct missing *m, uint64_t start, uint64_t end, uint64_t origin)
{
	struct missing_piece piece = {start, end, origin};

	if (start < end)
		buf_push(&m->pieces, struct missing_piece, &piece);
}

/* What of @p is left outside of [@start, @end) is added anew. */
static void cut_piece(struct missing *m, struct missing_piece p, uint64_t start, uint64_t end)
{
	if (p.start < start)
		missing_add(m, p.start, start, p.origin);
	if (end < p.end)
		missing_add(m, end, p.end, p.origin + (end - p.start));
}

static bool piece_overlaps(const struct missing_piece *p, uint64_t start, uint64_t end)
{
	return p->start < end && start < p->end;
}

void missing_cut(struct missing *m, uint64_t start, uint64_t end)
{
	struct buf old = m->pieces;

	m->pieces = (struct buf){0};
	for (size_t i = 0; i < buf_count(&old, struct missing_piece); i++) {
		const struct missing_piece *p = buf_at(&old, struct missing_piece, i);

		if (piece_overlaps(p, start, end))
			cut_piece(m, *p, start, end);
		else
			buf_push(&m->pieces, struct missing_piece, p);
	}
	buf_free(&old);
}

void missing_move(struct missing *m, uint64_t from, uint64_t to, uint64_t size)
{
	struct missing old = missing_copy(m);

	missing_cut(m, from, from + size);
	missing_cut(m, to, to + size);
	for (size_t i = 0; i < buf_count(&old.pieces, struct missing_piece); i++) {
		const struct missing_piece *p = buf_at(&old.pieces, struct missing_piece, i);
		uint64_t start = p->start > from ? p->start : from;
		uint64_t end = p->end < from + size ? p->end : from + size;

		missing_add(m, start - from + to, start < end ? end - from + to : 0,
			p->origin + (start - p->start));
	}
	buf_free(&old.pieces);
}

const struct missing_piece *missing_find(const struct missing *m, uint64_t address)
{
	for (size_t i = 0; i < buf_count(&m->pieces, struct missing_piece); i++) {
		const struct missing_piece *p = buf_at(&m->pieces, struct missing_piece, i);

		if (piece_overlaps(p, address, address + 1))
			return p;
	}
	return NULL;
}

struct missing missing_copy(const struct missing *m)
{
	struct missing copy = {{0}};

	buf_add(&copy.pieces, m->pieces.data, m->pieces.len);
	return copy;
}

/* The first extent that ends behind @address, NULL for none. */
static const struct image_extent *extent_behind(const struct image *img, uint64_t address)
{
	size_t count, low = 0, high;
	const struct image_extent *x = image_extents(img, 0, &count);

	high = count;
	while (low < high) {
		size_t mid = (low + high) / 2;

		if (extent_end(&x[mid]) <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low < count ? &x[low] : NULL;
}

/* The blocks of @x that were in the image from @from to @to. */
static void set_blocks(const struct missing_piece *piece, const struct image_extent *x,
	uint64_t from, uint64_t to, struct missing_blocks *out)
{
	uint64_t last = piece->origin + (piece->end - piece->start);

	from = from > piece->origin ? from : piece->origin;
	from = from > x->address ? from : x->address;
	to = to < last ? to : last;
	to = to < extent_end(x) ? to : extent_end(x);
	out->extent = x;
	out->first = (from - x->address) / IMAGE_BLOCK;
	out->count = (to - from) / IMAGE_BLOCK;
	out->address = from - piece->origin + piece->start;
}

bool missing_around(const struct image *img, const struct missing_piece *piece,
	uint64_t address, uint32_t most, struct missing_blocks *out)
{
	uint64_t was = address - piece->start + piece->origin, size = most * IMAGE_BLOCK;
	const struct image_extent *x = extent_behind(img, was);

	if (!x || x->address > was || !image_extent_is_stored(x))
		return false;
	if (x->kind == IMAGE_EXTENT_PACKED)
		set_blocks(piece, x, x->address, extent_end(x), out);
	else
		set_blocks(piece, x, align_down(was, size), align_down(was, size) + size, out);
	return true;
}

bool missing_first(const struct image *img, const struct missing_piece *piece, uint32_t most,
	struct missing_blocks *out)
{
	uint64_t last = piece->origin + (piece->end - piece->start);
	const struct image_extent *x = extent_behind(img, piece->origin);
	uint64_t from;

	while (x && x->address < last && !image_extent_is_stored(x))
		x = extent_behind(img, extent_end(x));
	if (!x || x->address >= last)
		return false;
	from = piece->origin > x->address ? piece->origin : x->address;
	set_blocks(piece, x, from,
		x->kind == IMAGE_EXTENT_PACKED ? extent_end(x) : from + most * IMAGE_BLOCK,
		out);
	return true;
}
