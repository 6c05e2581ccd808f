/* cuMemAlloc and what belongs to it, and which devices reach whose memory. */
#include "shared/cuda/calls.h"
#include "stubs/cuda/external_memory.h"
#include "stubs/cuda/memory.h"
#include "stubs/cuda/objects.h"
#include "stubs/cuda/sharing.h"

#include "cuda.index.h"

int body_cuMemAlloc_v2(uint64_t *address, size_t size)
{
	void *context;
	int device, r;

	r = memory_context(&context, &device);
	if (r)
		return r;
	if (!address || !size)
		return CUDA_ERROR_INVALID_VALUE;
	return memory_allocate(device, size, context, 0, address);
}

/* Rows begin at multiples of this on every device so far, whatever the element. */
#define PITCH 512

int body_cuMemAllocPitch_v2(
	uint64_t *address, size_t *pitch, size_t width, size_t height, unsigned element)
{
	size_t row = (width + PITCH - 1) / PITCH * PITCH, size;
	int r;

	if (!address || !pitch || !width || !height || row < width ||
		__builtin_mul_overflow(row, height, &size) ||
		(element != 4 && element != 8 && element != 16))
		return CUDA_ERROR_INVALID_VALUE;
	r = body_cuMemAlloc_v2(address, size);
	if (!r)
		*pitch = row;
	return r;
}

int body_cuMemFree_v2(uint64_t address)
{
	int r = devmem_part(address) >= DEVMEM_DEVICES ? import_close(address, 1)
		: memory_is_of_graph(address)          ? graph_memory_freed(address)
						       : memory_free(address);

	if (r == CUDA_ERROR_NOT_FOUND)
		r = external_buffer_free(address);
	if (r != CUDA_ERROR_NOT_FOUND)
		return r;
	r = real_cuMemFree_v2(address);
	if (!r && address)
		memory_managed_freed(address);
	return r;
}

/* What nobody has is free, whether or not the driver knows. */
int body_cuMemGetInfo_v2(size_t *free, size_t *total)
{
	int r = real_cuMemGetInfo_v2(free, total), device;
	struct memory_state *s;

	if (r || !free || real_cuCtxGetDevice(&device))
		return r;
	s = memory_lock(0);
	if (!s)
		return 0;
	if ((uint32_t)device < DEVMEM_DEVICES)
		*free += devmem_cached(&s->devmem, device) + snapshot_size(device);
	memory_unlock(s);
	return 0;
}

/* 1: it lies in memory of another process. */
static int range_imported(uint64_t *start, size_t *size, uint64_t address)
{
	struct memory_state *s = memory_lock(0);
	const struct memory_import *i = s ? import_find(s, address) : NULL;

	if (i && start)
		*start = i->address;
	if (i && size)
		*size = i->size;
	if (s)
		memory_unlock(s);
	return i != NULL;
}

int body_cuMemGetAddressRange_v2(uint64_t *start, size_t *size, uint64_t address)
{
	struct devmem_allocation *a;
	struct memory_state *s;
	void *context = NULL;
	int r;

	if (devmem_part(address) == DEVMEM_PARTS)
		return range_imported(start, size, address)
			       ? 0
			       : real_cuMemGetAddressRange_v2(start, size, address);
	r = real_cuCtxGetCurrent(&context);
	if (r || !context)
		return r ? r : CUDA_ERROR_INVALID_CONTEXT;
	s = memory_lock(0);
	if (!s)
		return CUDA_ERROR_NOT_FOUND;
	a = devmem_find(&s->devmem, address);
	if (a && start)
		*start = a->address;
	if (a && size)
		*size = a->size;
	memory_unlock(s);
	return a ? 0 : CUDA_ERROR_NOT_FOUND;
}

/* ---- other devices ---- */

static int change_peers(void *peer, int enabled)
{
	int own, other, r = real_cuCtxGetDevice(&own);
	struct memory_state *s;
	uint32_t peers;

	if (r)
		return r;
	r = memory_device_of(peer, &other);
	if (r || own == other || own >= DEVMEM_DEVICES || other >= DEVMEM_DEVICES)
		return r;
	s = memory_lock(1);
	if (!s)
		return CUDA_ERROR_UNKNOWN;
	peers = s->devmem.devices[other].peers;
	peers = enabled ? peers | 1u << own : peers & ~(1u << own);
	r = devmem_set_peers(&s->devmem, &memory_driver, other, peers);
	memory_unlock(s);
	return r;
}

int body_cuCtxEnablePeerAccess(void *peer, unsigned flags)
{
	int r = cuda_perform(INDEX_cuCtxEnablePeerAccess, WORDS((uint64_t)peer, flags));

	return r ? r : change_peers(peer, 1);
}

int body_cuCtxDisablePeerAccess(void *peer)
{
	int r = real_cuCtxDisablePeerAccess(peer);

	if (r)
		return r;
	object_unchange(object_find(CUDA_CONTEXT, peer), INDEX_cuCtxEnablePeerAccess,
		current_context());
	return change_peers(peer, 0);
}
