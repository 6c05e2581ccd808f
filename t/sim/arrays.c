/*
 * Arrays and mipmapped ones. Of the order that a device has its arrays in nothing is simulated:
 * rows lie one behind the other. One thread at a time makes such in the tests.
 */
#include "t/sim/arrays.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shared/cuda/array_params.h"
#include "t/sim/device.h"
#include "t/sim/external.h"
#include "t/sim/graph.h"
#include "t/sim/memory.h"
#include "t/sim/object.h"
#include "t/sim/sim.h"
#include "t/sim/stream.h"

#define NV12         0xb0
#define BC1          0x91 /* blocks of four by four elements */
#define LEVELS       16
#define PAGE         4096ul
#define HOST         1
#define CUBEMAP      4
#define LAYERED      1
#define STREAM_WAITS ((void *)-1) /* of a copy that is not asynchronous */

struct array {
	struct object object;
	struct array_description d;
	void *context;
	struct array *whole;         /* of a level or plane */
	struct array *parts[LEVELS]; /* of a mipmapped array, or one of several planes */
	unsigned part_count;
	uint64_t row, rows, slices;
	char *data;
	bool is_external; /* the data */
	struct array *next;
};

/* CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC */
struct mapped_array {
	uint64_t offset;
	struct array_description description;
	unsigned levels;
};

SIM_EXPORT int cuArrayCreate_v2(void **array, const void *description);
SIM_EXPORT int cuArray3DCreate_v2(void **array, const struct array_description *description);
SIM_EXPORT int cuArrayGetDescriptor_v2(void *description, void *array);
SIM_EXPORT int cuArray3DGetDescriptor_v2(struct array_description *description, void *array);
SIM_EXPORT int cuArrayGetPlane(void **plane, void *array, unsigned index);
SIM_EXPORT int cuArrayDestroy(void *array);
SIM_EXPORT int cuMipmappedArrayCreate(
	void **array, const struct array_description *description, unsigned levels);
SIM_EXPORT int cuExternalMemoryGetMappedMipmappedArray(
	void **array, void *memory, const struct mapped_array *mapped);
SIM_EXPORT int cuMipmappedArrayGetLevel(void **level, void *array, unsigned index);
SIM_EXPORT int cuMipmappedArrayDestroy(void *array);
SIM_EXPORT int cuMemcpy2D_v2(const void *copy);
SIM_EXPORT int cuMemcpy2DUnaligned_v2(const void *copy);
SIM_EXPORT int cuMemcpy2DAsync_v2(const void *copy, void *stream);
SIM_EXPORT int cuMemcpy3D_v2(const struct graph_memcpy *copy);
SIM_EXPORT int cuMemcpy3DAsync_v2(const struct graph_memcpy *copy, void *stream);
SIM_EXPORT int cuMemcpyHtoA_v2(void *array, size_t offset, const void *from, size_t size);
SIM_EXPORT int cuMemcpyAtoH_v2(void *to, void *array, size_t offset, size_t size);
SIM_EXPORT int cuMemcpy3DBatchAsync_v2(
	size_t count, const void *list, uint64_t flags, void *stream);
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size);

static struct array *arrays;

/* ---- arrays ---- */

static unsigned format_bytes(const struct array_description *d)
{
	switch (d->format) {
	case 0x01:
	case 0x08:
		return d->channels;
	case 0x02:
	case 0x09:
	case 0x10:
		return 2 * d->channels;
	case 0x03:
	case 0x0a:
	case 0x20:
		return 4 * d->channels;
	case 0xc5: /* UNORM_INT16X4 */
		return 8;
	case NV12:
		return 1;
	case BC1: /* of a block */
		return 8;
	default:
		return 0;
	}
}

static struct array *new_array(
	enum object_kind kind, const struct array_description *d, struct array *whole)
{
	struct array *a = object_new(kind, sizeof(*a));

	a->d = *d;
	a->context = current_context();
	a->whole = whole;
	a->row = d->width * format_bytes(d);
	a->rows = d->height ? d->height : 1;
	a->slices = d->depth ? d->depth : 1;
	if (d->format == BC1) {
		a->row = (d->width + 3) / 4 * format_bytes(d);
		a->rows = (a->rows + 3) / 4;
	}
	a->next = arrays;
	arrays = a;
	return a;
}

/* Memory of the device comes as it was left. */
static int give_memory(struct array *a)
{
	uint64_t size = a->row * a->rows * a->slices;

	if (!memory_take(size))
		return SIM_OUT_OF_MEMORY;
	a->data = malloc(size);
	memset(a->data, 0xa5, size);
	return 0;
}

static void end_array(struct array *a)
{
	struct array **at = &arrays;

	for (unsigned i = 0; i < a->part_count; i++)
		end_array(a->parts[i]);
	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	if (a->is_external) {
		munmap(a->data, a->row * a->rows * a->slices);
	} else if (a->data) {
		memory_give(a->row * a->rows * a->slices);
		free(a->data);
	}
	object_free(a);
}

/* Half as large in two directions, and two channels in one. */
static int add_planes(struct array *a)
{
	struct array_description d = a->d;

	for (a->part_count = 0; a->part_count < 2; a->part_count++) {
		d.format = 1;
		d.channels = a->part_count + 1;
		a->parts[a->part_count] = new_array(OBJECT_ARRAY, &d, a);
		if (give_memory(a->parts[a->part_count]))
			return SIM_OUT_OF_MEMORY;
		d.width /= 2;
		d.height /= 2;
	}
	return 0;
}

static int create(void **array, const struct array_description *d)
{
	struct array *a;

	if (sim_have_context())
		return SIM_INVALID_CONTEXT;
	if (!d->width || !format_bytes(d) ||
		(d->flags & CUBEMAP && (d->depth % 6 || d->width != d->height)))
		return SIM_INVALID_VALUE;
	*array = a = new_array(OBJECT_ARRAY, d, NULL);
	if (d->flags & ARRAY_WITHOUT_MEMORY)
		return 0;
	return d->format == NV12 ? add_planes(a) : give_memory(a);
}

int cuArray3DCreate_v2(void **array, const struct array_description *description)
{
	SIM_ENTER();
	return create(array, description);
}

/* CUDA_ARRAY_DESCRIPTOR */
struct flat_description {
	uint64_t width, height;
	uint32_t format, channels;
};

int cuArrayCreate_v2(void **array, const void *description)
{
	const struct flat_description *f = description;

	SIM_ENTER();
	return create(array, &(struct array_description){
				     f->width, f->height, 0, f->format, f->channels, 0, 0});
}

int cuArray3DGetDescriptor_v2(struct array_description *description, void *array)
{
	const struct array *a;

	SIM_ENTER();
	a = object_get(OBJECT_ARRAY, array, __func__);
	if (!a)
		return SIM_INVALID_HANDLE;
	*description = a->d;
	return 0;
}

int cuArrayGetDescriptor_v2(void *description, void *array)
{
	const struct array *a;

	SIM_ENTER();
	a = object_get(OBJECT_ARRAY, array, __func__);
	if (!a)
		return SIM_INVALID_HANDLE;
	*(struct flat_description *)description =
		(struct flat_description){a->d.width, a->d.height, a->d.format, a->d.channels};
	return 0;
}

static int get_part(
	void **part, enum object_kind kind, void *whole, unsigned index, const char *function)
{
	struct array *a = object_get(kind, whole, function);

	if (!a)
		return SIM_INVALID_HANDLE;
	if (index >= a->part_count)
		return SIM_INVALID_VALUE;
	*part = a->parts[index];
	return 0;
}

int cuArrayGetPlane(void **plane, void *array, unsigned index)
{
	SIM_ENTER();
	return get_part(plane, OBJECT_ARRAY, array, index, __func__);
}

static int destroy_array(enum object_kind kind, void *handle, const char *function)
{
	struct array *a = object_get(kind, handle, function);

	if (!a || a->whole)
		return SIM_INVALID_HANDLE;
	end_array(a);
	return 0;
}

int cuArrayDestroy(void *array)
{
	SIM_ENTER();
	return destroy_array(OBJECT_ARRAY, array, __func__);
}

/* ---- mipmapped arrays ---- */

static uint64_t half(uint64_t size)
{
	return size > 1 ? size / 2 : size;
}

/* Memory of @memory, at @offset, or NULL: of its own. */
static int give_level(struct array *level, void *memory, uint64_t offset, const char *function)
{
	if (!memory)
		return give_memory(level);
	level->is_external = true;
	level->data = external_map(
		memory, offset, level->row * level->rows * level->slices, function);
	return level->data ? 0 : SIM_INVALID_VALUE;
}

/* Levels that external memory has lie in pages of their own, one behind the other. */
static int create_mipmapped(void **array, const struct array_description *description,
	unsigned levels, void *memory, uint64_t offset, const char *function)
{
	struct array_description d = *description;
	struct array *a;
	int r;

	if (sim_have_context())
		return SIM_INVALID_CONTEXT;
	if (!d.width || !levels || levels > LEVELS || !format_bytes(&d))
		return SIM_INVALID_VALUE;
	*array = a = new_array(OBJECT_MIPMAPPED_ARRAY, &d, NULL);
	while (a->part_count < levels) {
		struct array *level = new_array(OBJECT_ARRAY, &d, a);

		a->parts[a->part_count++] = level;
		r = give_level(level, memory, offset, function);
		if (r)
			return r;
		offset += (level->row * level->rows * level->slices + PAGE - 1) / PAGE * PAGE;
		if (d.width == 1 && d.height <= 1 && d.depth <= 1)
			break;
		d.width = half(d.width);
		d.height = half(d.height);
		if (!(d.flags & LAYERED))
			d.depth = half(d.depth);
	}
	return 0;
}

int cuMipmappedArrayCreate(
	void **array, const struct array_description *description, unsigned levels)
{
	SIM_ENTER();
	return create_mipmapped(array, description, levels, NULL, 0, __func__);
}

int cuExternalMemoryGetMappedMipmappedArray(
	void **array, void *memory, const struct mapped_array *mapped)
{
	SIM_ENTER();
	return create_mipmapped(
		array, &mapped->description, mapped->levels, memory, mapped->offset, __func__);
}

int cuMipmappedArrayGetLevel(void **level, void *array, unsigned index)
{
	SIM_ENTER();
	return get_part(level, OBJECT_MIPMAPPED_ARRAY, array, index, __func__);
}

int cuMipmappedArrayDestroy(void *array)
{
	SIM_ENTER();
	return destroy_array(OBJECT_MIPMAPPED_ARRAY, array, __func__);
}

void arrays_context_gone(void *context)
{
	struct array *a = arrays;

	while (a) {
		if (a->context == context && !a->whole) {
			end_array(a);
			a = arrays;
		} else {
			a = a->next;
		}
	}
}

void *array_data(void *array, uint64_t size, const char *function)
{
	const struct array *a = object_get(OBJECT_ARRAY, array, function);

	if (!a || !a->data || a->row * a->rows * a->slices < size)
		sim_hostile("an array that is gone or too small", function);
	return a->data;
}

void *array_level(void *mipmapped)
{
	const struct array *a = mipmapped;

	return a->parts[0];
}

/* ---- copies ---- */

static uint64_t extent(const struct graph_memcpy_side *s, const struct graph_memcpy *c)
{
	return ((s->z + c->depth - 1) * s->height + s->y + c->height - 1) * s->pitch + s->x +
	       c->width;
}

static int check_side(
	const struct graph_memcpy_side *s, const struct graph_memcpy *c, const char *function)
{
	const struct array *a;

	if (s->type == HOST)
		return 0;
	if (s->type != COPY_OF_ARRAY) {
		memory_check(s->device, extent(s, c), function);
		return 0;
	}
	a = object_get(OBJECT_ARRAY, s->array, function);
	if (!a)
		return SIM_INVALID_HANDLE;
	return a->data && s->x + c->width <= a->row && s->y + c->height <= a->rows &&
			       s->z + c->depth <= a->slices
		       ? 0
		       : SIM_INVALID_VALUE;
}

int array_check_copy(const struct graph_memcpy *copy, const char *function)
{
	int r = check_side(&copy->from, copy, function);

	if (!copy->width || !copy->height || !copy->depth)
		return SIM_INVALID_VALUE;
	return r ? r : check_side(&copy->to, copy, function);
}

static char *row_of(const struct graph_memcpy_side *s, uint64_t y, uint64_t z)
{
	const struct array *a = s->type == COPY_OF_ARRAY ? s->array : NULL;
	char *data = a ? a->data : (char *)(s->type == HOST ? s->host : s->device);

	y += s->y;
	z += s->z;
	return data + s->x + (a ? (z * a->rows + y) * a->row : (z * s->height + y) * s->pitch);
}

void array_copy(const struct graph_memcpy *copy)
{
	for (uint64_t z = 0; z < copy->depth; z++)
		for (uint64_t y = 0; y < copy->height; y++)
			memmove(row_of(&copy->to, y, z), row_of(&copy->from, y, z),
				copy->width);
}

static void run_copy(void *data)
{
	array_copy(data);
}

static int queue_copy(const struct graph_memcpy *copy, void *stream, const char *function)
{
	const union graph_params node = {.copy = *copy};
	int r = array_check_copy(copy, function);

	if (r)
		return r;
	if (stream == STREAM_WAITS) {
		stream_wait_all();
		array_copy(copy);
		return 0;
	}
	if (capture_work(stream, GRAPH_MEMCPY, &node, &r))
		return r;
	return stream_queue(stream, run_copy, stream_data(copy, sizeof(*copy)), function);
}

/* CUDA_MEMCPY2D */
struct flat_side {
	uint64_t x, y;
	uint32_t type, pad;
	uint64_t host, device;
	void *array;
	uint64_t pitch;
};
struct flat_copy {
	struct flat_side from, to;
	uint64_t width, height;
};
_Static_assert(sizeof(struct flat_copy) == 128, "");

static struct graph_memcpy_side deepened(const struct flat_side *s)
{
	return (struct graph_memcpy_side){.x = s->x,
		.y = s->y,
		.type = s->type,
		.host = s->host,
		.device = s->device,
		.array = s->array,
		.pitch = s->pitch};
}

static int queue_flat(const struct flat_copy *c, void *stream, const char *function)
{
	const struct graph_memcpy copy = {
		deepened(&c->from), deepened(&c->to), c->width, c->height, 1};

	return queue_copy(&copy, stream, function);
}

int cuMemcpy2D_v2(const void *copy)
{
	SIM_ENTER();
	return queue_flat(copy, STREAM_WAITS, __func__);
}

int cuMemcpy2DUnaligned_v2(const void *copy)
{
	SIM_ENTER();
	return queue_flat(copy, STREAM_WAITS, __func__);
}

int cuMemcpy2DAsync_v2(const void *copy, void *stream)
{
	SIM_ENTER();
	return queue_flat(copy, stream, __func__);
}

int cuMemcpy3D_v2(const struct graph_memcpy *copy)
{
	SIM_ENTER();
	return queue_copy(copy, STREAM_WAITS, __func__);
}

int cuMemcpy3DAsync_v2(const struct graph_memcpy *copy, void *stream)
{
	SIM_ENTER();
	return queue_copy(copy, stream, __func__);
}

static struct graph_memcpy_side of_array(void *array, size_t offset)
{
	return (struct graph_memcpy_side){.x = offset, .type = COPY_OF_ARRAY, .array = array};
}

static struct graph_memcpy_side of_host(const void *data)
{
	return (struct graph_memcpy_side){.type = HOST, .host = (uint64_t)data};
}

int cuMemcpyHtoA_v2(void *array, size_t offset, const void *from, size_t size)
{
	const struct graph_memcpy copy = {of_host(from), of_array(array, offset), size, 1, 1};

	SIM_ENTER();
	return queue_copy(&copy, STREAM_WAITS, __func__);
}

int cuMemcpyAtoH_v2(void *to, void *array, size_t offset, size_t size)
{
	const struct graph_memcpy copy = {of_array(array, offset), of_host(to), size, 1, 1};

	SIM_ENTER();
	return queue_copy(&copy, STREAM_WAITS, __func__);
}

/* CUDA_MEMCPY3D_BATCH_OP */
struct operand {
	uint32_t type, pad; /* 2: an array */
	union {
		struct {
			uint64_t address, row, height;
			uint32_t location[2];
		} memory;
		struct {
			void *array;
			uint64_t x, y, z;
		} array;
	} of;
};
struct operation {
	struct operand from, to;
	uint64_t width, height, depth; /* elements */
	uint32_t order, flags;
};
_Static_assert(sizeof(struct operation) == 112, "");

/* Elements of one side have the size of an array's elements on the other. */
static struct graph_memcpy_side side_of(const struct operand *o, uint64_t bytes)
{
	if (o->type != 2)
		return (struct graph_memcpy_side){.type = HOST,
			.host = o->of.memory.address,
			.pitch = o->of.memory.row * bytes,
			.height = o->of.memory.height};
	return (struct graph_memcpy_side){.type = COPY_OF_ARRAY,
		.array = o->of.array.array,
		.x = o->of.array.x * bytes,
		.y = o->of.array.y,
		.z = o->of.array.z};
}

int cuMemcpy3DBatchAsync_v2(size_t count, const void *list, uint64_t flags, void *stream)
{
	const struct operation *o = list;
	int r = 0;

	SIM_ENTER();
	for (size_t i = 0; i < count && !r; i++, o++) {
		const struct operand *of = o->from.type == 2 ? &o->from : &o->to;
		const struct array *a = object_get(OBJECT_ARRAY, of->of.array.array, __func__);
		uint64_t bytes = a ? format_bytes(&a->d) : 1;
		const struct graph_memcpy copy = {side_of(&o->from, bytes),
			side_of(&o->to, bytes), o->width * bytes, o->height, o->depth};

		r = a ? queue_copy(&copy, stream, __func__) : SIM_INVALID_HANDLE;
	}
	return r;
}
