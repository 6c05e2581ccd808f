/*
 * Copies that are described by a structure, which may hold handles of arrays. They run behind
 * the crossing, on the lower half's thread-local storage, and call the driver's function
 * themselves: on a copy of the structure, as it is the program's.
 */
#include "shared/raw.h"
#include "stubs/cuda/array_copies.h"

#include "cuda.index.h"

/* Where a structure has the kind of memory and the array of each side. */
struct layout {
	uint16_t size, type[2], array[2];
};

static const struct layout copy_2d = {128, {16, 72}, {40, 96}};   /* CUDA_MEMCPY2D */
static const struct layout copy_3d = {200, {32, 120}, {56, 144}}; /* CUDA_MEMCPY3D, _PEER */
static const struct layout copy_2d_v1 = {96, {8, 52}, {32, 72}};
static const struct layout copy_3d_v1 = {144, {16, 80}, {40, 104}};
static const struct layout operation = {112, {0, 40}, {8, 48}}; /* CUDA_MEMCPY3D_BATCH_OP */

#define OPERAND_ARRAY 2 /* CU_MEMCPY_OPERAND_TYPE_ARRAY */
#define COPY_ROOM     200

static int lower_handles(char *params, const struct layout *l, uint32_t kind)
{
	for (int side = 0; side < 2; side++) {
		void **array = (void **)(params + l->array[side]);

		if (*(uint32_t *)(params + l->type[side]) != kind)
			continue;
		*array = object_real(*array);
		if (is_dead(*array))
			return CUDA_ERROR_INVALID_HANDLE;
	}
	return 0;
}

STUB_HIDDEN int arrays_lower_copy(struct graph_memcpy *copy)
{
	return lower_handles((char *)copy, &copy_3d, COPY_OF_ARRAY);
}

static void raise_side(struct graph_memcpy_side *side)
{
	struct object *o = NULL;

	if (side->type == COPY_OF_ARRAY)
		o = object_find(CUDA_ARRAY, side->array);
	if (o)
		side->array = o;
}

STUB_HIDDEN void arrays_raise_copy(struct graph_memcpy *copy)
{
	raise_side(&copy->from);
	raise_side(&copy->to);
}

static int make_copy(const void *params, unsigned index, const struct layout *l)
{
	int (*real)(const void *) = (int (*)(const void *))cuda_targets[index];
	uint64_t ours[COPY_ROOM / 8];
	int r;

	if (!params)
		return real(NULL);
	raw_copy(ours, params, l->size);
	r = lower_handles((char *)ours, l, COPY_OF_ARRAY);
	return r ? r : real(ours);
}

static int copy_async(const void *params, void *stream, unsigned index, const struct layout *l)
{
	int (*real)(const void *, void *) = (int (*)(const void *, void *))cuda_targets[index];
	uint64_t ours[COPY_ROOM / 8];
	int r;

	stream = object_real(stream);
	if (is_dead(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!params)
		return real(NULL, stream);
	raw_copy(ours, params, l->size);
	r = lower_handles((char *)ours, l, COPY_OF_ARRAY);
	return r ? r : real(ours, stream);
}

int inner_cuMemcpy2D(const void *params)
{
	return make_copy(params, INDEX_cuMemcpy2D, &copy_2d_v1);
}

int inner_cuMemcpy2D_v2(const void *params)
{
	return make_copy(params, INDEX_cuMemcpy2D_v2, &copy_2d);
}

int inner_cuMemcpy2D_v2_ptds(const void *params)
{
	return make_copy(params, INDEX_cuMemcpy2D_v2_ptds, &copy_2d);
}

int inner_cuMemcpy2DUnaligned(const void *params)
{
	return make_copy(params, INDEX_cuMemcpy2DUnaligned, &copy_2d_v1);
}

int inner_cuMemcpy2DUnaligned_v2(const void *params)
{
	return make_copy(params, INDEX_cuMemcpy2DUnaligned_v2, &copy_2d);
}

int inner_cuMemcpy2DUnaligned_v2_ptds(const void *params)
{
	return make_copy(params, INDEX_cuMemcpy2DUnaligned_v2_ptds, &copy_2d);
}

int inner_cuMemcpy3D(const void *params)
{
	return make_copy(params, INDEX_cuMemcpy3D, &copy_3d_v1);
}

int inner_cuMemcpy3D_v2(const void *params)
{
	return make_copy(params, INDEX_cuMemcpy3D_v2, &copy_3d);
}

int inner_cuMemcpy3D_v2_ptds(const void *params)
{
	return make_copy(params, INDEX_cuMemcpy3D_v2_ptds, &copy_3d);
}

int inner_cuMemcpy3DPeer(const void *params)
{
	return make_copy(params, INDEX_cuMemcpy3DPeer, &copy_3d);
}

int inner_cuMemcpy3DPeer_ptds(const void *params)
{
	return make_copy(params, INDEX_cuMemcpy3DPeer_ptds, &copy_3d);
}

int inner_cuMemcpy2DAsync(const void *params, void *stream)
{
	return copy_async(params, stream, INDEX_cuMemcpy2DAsync, &copy_2d_v1);
}

int inner_cuMemcpy2DAsync_v2(const void *params, void *stream)
{
	return copy_async(params, stream, INDEX_cuMemcpy2DAsync_v2, &copy_2d);
}

int inner_cuMemcpy2DAsync_v2_ptsz(const void *params, void *stream)
{
	return copy_async(params, stream, INDEX_cuMemcpy2DAsync_v2_ptsz, &copy_2d);
}

int inner_cuMemcpy3DAsync(const void *params, void *stream)
{
	return copy_async(params, stream, INDEX_cuMemcpy3DAsync, &copy_3d_v1);
}

int inner_cuMemcpy3DAsync_v2(const void *params, void *stream)
{
	return copy_async(params, stream, INDEX_cuMemcpy3DAsync_v2, &copy_3d);
}

int inner_cuMemcpy3DAsync_v2_ptsz(const void *params, void *stream)
{
	return copy_async(params, stream, INDEX_cuMemcpy3DAsync_v2_ptsz, &copy_3d);
}

int inner_cuMemcpy3DPeerAsync(const void *params, void *stream)
{
	return copy_async(params, stream, INDEX_cuMemcpy3DPeerAsync, &copy_3d);
}

int inner_cuMemcpy3DPeerAsync_ptsz(const void *params, void *stream)
{
	return copy_async(params, stream, INDEX_cuMemcpy3DPeerAsync_ptsz, &copy_3d);
}

/* ---- many at once ---- */

typedef int batch_v1(size_t, const void *, size_t *, uint64_t, void *);
typedef int batch_v2(size_t, const void *, uint64_t, void *);

/* @failed is of the first version, which alone has it. */
static int call_batch(unsigned index, size_t count, const void *list, size_t *failed,
	uint64_t flags, void *stream)
{
	if (index == INDEX_cuMemcpy3DBatchAsync || index == INDEX_cuMemcpy3DBatchAsync_ptsz)
		return ((batch_v1 *)cuda_targets[index])(count, list, failed, flags, stream);
	return ((batch_v2 *)cuda_targets[index])(count, list, flags, stream);
}

static int copy_batch(unsigned index, size_t count, const void *list, size_t *failed,
	uint64_t flags, void *stream)
{
	char *ours;
	int r = 0;

	stream = object_real(stream);
	if (is_dead(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!list || !count)
		return call_batch(index, count, list, failed, flags, stream);
	ours = block_new(count * operation.size);
	if (!ours)
		return CUDA_ERROR_OUT_OF_MEMORY;
	raw_copy(ours, list, count * operation.size);
	for (size_t i = 0; i < count && !r; i++)
		r = lower_handles(ours + i * operation.size, &operation, OPERAND_ARRAY);
	if (!r)
		r = call_batch(index, count, ours, failed, flags, stream);
	block_free(ours, count * operation.size);
	return r;
}

int inner_cuMemcpy3DBatchAsync(
	size_t count, const void *list, size_t *failed, uint64_t flags, void *stream)
{
	return copy_batch(INDEX_cuMemcpy3DBatchAsync, count, list, failed, flags, stream);
}

int inner_cuMemcpy3DBatchAsync_ptsz(
	size_t count, const void *list, size_t *failed, uint64_t flags, void *stream)
{
	return copy_batch(INDEX_cuMemcpy3DBatchAsync_ptsz, count, list, failed, flags, stream);
}

int inner_cuMemcpy3DBatchAsync_v2(size_t count, const void *list, uint64_t flags, void *stream)
{
	return copy_batch(INDEX_cuMemcpy3DBatchAsync_v2, count, list, NULL, flags, stream);
}

int inner_cuMemcpy3DBatchAsync_v2_ptsz(
	size_t count, const void *list, uint64_t flags, void *stream)
{
	return copy_batch(INDEX_cuMemcpy3DBatchAsync_v2_ptsz, count, list, NULL, flags, stream);
}
