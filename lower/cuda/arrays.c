/*
 * Contents of arrays. The driver has them in an order of its own, and copies rows, slices and
 * parts of a row. In an image an array is its rows without gaps, one slice behind the other,
 * at an address that nothing else has; a mipmapped array is its levels, one behind the other,
 * an array of several planes its planes.
 */
#include "lower/cuda/arrays.h"

#include <stdlib.h>
#include <string.h>

#include "lower/cuda/cuda.h"
#include "lower/cuda/growing_list.h"
#include "shared/cuda/array_params.h"
#include "shared/cuda/graph_params.h"

#define BLOCK      4096ul
#define ZEROES     (1ul << 20)
#define MAX_LEVELS 32
#define MAX_PLANES 3

/* Something that the driver copies as a whole. */
struct part {
	uint64_t address, size;
	void *array, *context; /* real */
	uint64_t row, rows;    /* bytes of a row, rows of a slice */
};

static struct part *parts;
static size_t part_count, part_room;

/* ---- formats ---- */

/* Bytes of one channel; for formats that say how many channels there are, of all of them. 0: not
 * known. */
static unsigned format_bytes(uint32_t format, uint32_t channels)
{
	static const unsigned char each[] = {[0x01] = 1,
		[0x02] = 2,
		[0x03] = 4,
		[0x08] = 1,
		[0x09] = 2,
		[0x0a] = 4,
		[0x10] = 2,
		[0x20] = 4};
	/* UNORM_INT8X1, X2, X4, UNORM_INT16X1, ... SNORM_INT16X4 */
	static const unsigned char normalised[] = {1, 2, 4, 2, 4, 8, 1, 2, 4, 2, 4, 8};

	if (format < sizeof(each))
		return each[format] * channels;
	if (format >= 0xc0 && format - 0xc0 < sizeof(normalised))
		return normalised[format - 0xc0];
	return format == 0x50 ? 4 : 0; /* UNORM_INT_101010_2 */
}

/* Of BC1_UNORM to BC7_UNORM_SRGB, which have blocks of four by four elements; 0: of no such. */
static unsigned block_bytes(uint32_t format)
{
	int is_small = format <= 0x92 || format == 0x97 || format == 0x98; /* BC1, BC4 */

	return format < 0x91 || format > 0x9e ? 0 : is_small ? 8 : 16;
}

/* Luminance and chrominance each in a plane of its own. */
static int has_planes(uint32_t format)
{
	static const unsigned char planar[] = {
		0x9f, 0xa1, 0xa2, 0xa3, 0xa4, 0xb0, 0xb2, 0xb3, 0xb4, 0xb5};

	return !!memchr(planar, format, sizeof(planar));
}

/* ---- what there is ---- */

static int add_part(const struct part *p)
{
	if (list_reserve(&parts, part_count, &part_room, sizeof(*parts),
		    "for a list of CUDA arrays"))
		return -1;
	parts[part_count++] = *p;
	return 0;
}

static int describe_array(void *array, struct array_description *d)
{
	int r = CUDA(cuArray3DGetDescriptor_v2, (struct array_description *, void *))(d, array);

	return r ? cuda_failed("cuArray3DGetDescriptor", r) : 0;
}

/* Its contents lie at *@address, which is moved behind. */
static int list_plain(void *array, void *context, uint64_t *address)
{
	struct array_description d;
	struct part p = {.array = array, .context = context, .address = *address};
	unsigned bytes;

	if (describe_array(array, &d))
		return -1;
	bytes = block_bytes(d.format);
	if (bytes) { /* what is copied are blocks and rows of them */
		d.width = (d.width + 3) / 4;
		d.height = (d.height + 3) / 4;
	} else {
		bytes = format_bytes(d.format, d.channels);
	}
	if (!bytes)
		return agent_fail("it holds a CUDA array of format %#x, whose contents cannot "
				  "be saved yet",
			d.format);
	p.row = d.width * bytes;
	p.rows = d.height ? d.height : 1;
	p.size = p.row * p.rows * (d.depth ? d.depth : 1);
	*address += (p.size + BLOCK - 1) & ~(BLOCK - 1);
	return add_part(&p);
}

static int list_array(void *array, void *context, uint64_t *address)
{
	struct array_description d;
	void *plane = NULL;
	int r = describe_array(array, &d);

	if (r || d.flags & ARRAY_WITHOUT_MEMORY)
		return r;
	if (!has_planes(d.format))
		return list_plain(array, context, address);
	for (unsigned i = 0; i < MAX_PLANES && !r; i++) {
		if (CUDA(cuArrayGetPlane, (void **, void *, unsigned))(&plane, array, i))
			return i ? 0 : cuda_failed("cuArrayGetPlane", 1);
		r = list_plain(plane, context, address);
	}
	return r;
}

static int list_levels(void *array, void *context, uint64_t *address)
{
	void *level = NULL;
	int r = 0;

	for (unsigned i = 0; i < MAX_LEVELS && !r; i++) {
		if (CUDA(cuMipmappedArrayGetLevel, (void **, void *, unsigned))(
			    &level, array, i))
			return i ? 0 : cuda_failed("cuMipmappedArrayGetLevel", 1);
		r = list_array(level, context, address);
	}
	return r;
}

/* Others are levels and planes of such. */
static int has_contents(const struct object *o)
{
	return (o->kind == CUDA_ARRAY && !o->parent) || o->kind == CUDA_MIPMAPPED_ARRAY;
}

static int push_context(void *context)
{
	int r = CUDA(cuCtxPushCurrent_v2, (void *))(context);

	return r ? cuda_failed("cuCtxPushCurrent", r) : 0;
}

static void pop_context(void)
{
	void *popped;

	CUDA(cuCtxPopCurrent_v2, (void **))(&popped); /* what was pushed is there */
}

/* Its parts from @address on: *@end is where they end. */
static int list_parts(const struct object *o, uint64_t address, uint64_t *end)
{
	int r;

	*end = address;
	if (push_context(o->context))
		return -1;
	r = o->kind == CUDA_ARRAY ? list_array(o->real, o->context, end)
				  : list_levels(o->real, o->context, end);
	pop_context();
	return r;
}

static int device_of(const struct cuda_state *s, const void *context)
{
	for (const struct object *o = s->objects; o; o = o->next)
		if (o->kind == CUDA_CONTEXT && o->real == context)
			return cuda_device_of(o);
	return -1;
}

/* What had an address keeps it, so that the next image has its contents at the same one. */
static int list_one(const struct cuda_state *s, struct object *o, uint64_t *top,
	arrays_add *add, void *context)
{
	int device = device_of(s, o->context);
	uint64_t address = o->value ? o->value : *top, end;

	if (device < 0)
		return agent_fail("it holds a CUDA array in a context that is not known");
	if (list_parts(o, address, &end))
		return -1;
	if (end > ARRAYS_WINDOW + ARRAYS_WINDOW_SIZE)
		return agent_fail(
			"its CUDA arrays need more addresses than are reserved for them");
	o->value = address;
	if (end > *top)
		*top = end;
	return end > address && add ? add(context, address, end - address, device) : 0;
}

static int by_address(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

int arrays_list(const struct cuda_state *s, arrays_add *add, void *context)
{
	uint64_t top = ARRAYS_WINDOW;
	int r = 0;

	part_count = 0;
	/* Arrays that have addresses first: others come behind them. */
	for (struct object *o = s->objects; o && !r; o = o->next)
		if (has_contents(o) && o->value)
			r = list_one(s, o, &top, add, context);
	for (struct object *o = s->objects; o && !r; o = o->next)
		if (has_contents(o) && !o->value)
			r = list_one(s, o, &top, add, context);
	if (part_count)
		qsort(parts, part_count, sizeof(*parts), by_address);
	return r;
}

/* ---- copies ---- */

struct stretch {
	uint64_t x, y, z; /* where it begins: x in bytes */
	uint64_t width, height, depth;
};

/* The first stretch of [from, to) of @p that one copy takes: a part of a row, rows of a slice,
 * or slices. */
static struct stretch first_stretch(const struct part *p, uint64_t from, uint64_t to)
{
	uint64_t row = from / p->row, rows = (to - from) / p->row;
	struct stretch s = {from % p->row, row % p->rows, row / p->rows, p->row, 1, 1};

	if (s.x || !rows)
		s.width = to - from < p->row - s.x ? to - from : p->row - s.x;
	else if (s.y || rows < p->rows)
		s.height = rows < p->rows - s.y ? rows : p->rows - s.y;
	else
		s.height = p->rows, s.depth = rows / p->rows;
	return s;
}

static int copy_stretch(const struct part *p, const struct stretch *s, char *host, int is_in)
{
	struct graph_memcpy_side array = {
		.x = s->x, .y = s->y, .z = s->z, .type = COPY_OF_ARRAY, .array = p->array};
	struct graph_memcpy_side memory = {.type = 1 /* CU_MEMORYTYPE_HOST */,
		.host = (uint64_t)host,
		.pitch = s->width,
		.height = s->height};
	struct graph_memcpy copy = {
		is_in ? memory : array, is_in ? array : memory, s->width, s->height, s->depth};
	int r = CUDA(cuMemcpy3D_v2, (const struct graph_memcpy *))(&copy);

	return r ? cuda_failed("copying a CUDA array", r) : 0;
}

/* @data is as long as that; NULL: zeroes. */
static int copy_part(const struct part *p, uint64_t from, uint64_t to, char *data, int is_in)
{
	char *zeroes = data ? NULL : calloc(1, ZEROES);
	int r = data || zeroes ? 0 : agent_fail("no memory to clear a CUDA array");

	while (from < to && !r) {
		uint64_t end = data || to - from < ZEROES ? to : from + ZEROES;
		struct stretch s = first_stretch(p, from, end);

		r = copy_stretch(p, &s, data ? data : zeroes, is_in);
		from += s.width * s.height * s.depth;
		if (data)
			data += s.width * s.height * s.depth;
	}
	free(zeroes);
	return r;
}

/* The first part that ends behind @address. */
static size_t first_part(uint64_t address)
{
	size_t low = 0, high = part_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (parts[middle].address + parts[middle].size > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static int copy_linear(uint64_t address, uint64_t size, char *data, int is_in)
{
	uint64_t end = address + size;
	int r = 0;

	for (size_t i = first_part(address); i < part_count && !r; i++) {
		const struct part *p = &parts[i];
		uint64_t from = address > p->address ? address : p->address;
		uint64_t to = end < p->address + p->size ? end : p->address + p->size;

		if (p->address >= end)
			break;
		if (push_context(p->context))
			return -1;
		r = copy_part(p, from - p->address, to - p->address,
			data ? data + (from - address) : NULL, is_in);
		pop_context();
	}
	return r;
}

int arrays_copy_out(uint64_t address, uint64_t size, void *data)
{
	memset(data, 0, size); /* what is between arrays */
	return copy_linear(address, size, data, 0);
}

int arrays_copy_in(uint64_t address, uint64_t size, const void *data)
{
	return copy_linear(address, size, (char *)data, 1);
}
