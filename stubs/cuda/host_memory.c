/*
 * Memory of the host that devices reach: upper memory, which is registered with the driver and
 * so comes back with the rest of the program. What is allocated comes from the allocator's part
 * for pinned memory; memory of the program's own is recorded, to be registered again.
 */
#include "stubs/cuda/memory.h"

#define FLAG_DEVICEMAP     2
#define FLAG_WRITECOMBINED 4
#define FLAGS              7

int body_cuMemHostAlloc(void **address, size_t size, unsigned flags)
{
	/* All memory is mapped, and none is particular to a context. */
	unsigned saved = (flags & FLAG_WRITECOMBINED) | FLAG_DEVICEMAP;
	void *context;
	int device, r;

	r = memory_context(&context, &device);
	if (r)
		return r;
	if (!address || flags & ~FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	*address = NULL;
	return size ? memory_allocate(DEVMEM_PINNED, size, context, saved, (uint64_t *)address)
		    : 0;
}

int body_cuMemAllocHost_v2(void **address, size_t size)
{
	return body_cuMemHostAlloc(address, size, 0);
}

int body_cuMemFreeHost(void *address)
{
	int r;

	if (devmem_part((uint64_t)address) != DEVMEM_PINNED)
		return real_cuMemFreeHost(address);
	r = memory_free((uint64_t)address);
	return r == CUDA_ERROR_NOT_FOUND ? CUDA_ERROR_INVALID_VALUE : r;
}

int body_cuMemHostGetFlags(unsigned *flags, void *address)
{
	struct devmem_allocation *a;
	struct memory_state *s;

	if (devmem_part((uint64_t)address) != DEVMEM_PINNED || !flags)
		return real_cuMemHostGetFlags(flags, address);
	s = memory_lock(0);
	if (!s)
		return CUDA_ERROR_INVALID_VALUE;
	a = devmem_find(&s->devmem, (uint64_t)address);
	if (a)
		*flags = a->flags;
	memory_unlock(s);
	return a ? 0 : CUDA_ERROR_INVALID_VALUE;
}

/* ---- the program's own ---- */

int body_cuMemHostRegister_v2(void *address, size_t size, unsigned flags)
{
	struct memory_registration *record;
	struct memory_state *s;
	void *context = NULL;
	int r;

	/* What we have registered already: as the driver says of memory of its own. */
	if (devmem_part((uint64_t)address) == DEVMEM_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	r = real_cuMemHostRegister_v2(address, size, flags);
	if (r)
		return r;
	real_cuCtxGetCurrent(&context); /* there is one: it has just registered memory */
	s = memory_lock(1);
	record = NULL;
	if (s)
		record = MEMORY_RECORD(s->spare_registrations);
	if (record) {
		record->address = (uint64_t)address;
		record->size = size;
		record->flags = flags;
		record->context = context;
		record->next = s->registrations;
		s->registrations = record;
	}
	if (s)
		memory_unlock(s);
	if (record)
		return 0;
	real_cuMemHostUnregister(address); /* registered above */
	return CUDA_ERROR_OUT_OF_MEMORY;
}

int body_cuMemHostUnregister(void *address)
{
	struct memory_registration **p, *record;
	struct memory_state *s;
	int r;

	if (devmem_part((uint64_t)address) == DEVMEM_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	r = real_cuMemHostUnregister(address);
	s = r ? NULL : memory_lock(0);
	if (!s)
		return r;
	for (p = &s->registrations; *p && (*p)->address != (uint64_t)address; p = &(*p)->next)
		;
	record = *p;
	if (record) {
		*p = record->next;
		record->next = s->spare_registrations;
		s->spare_registrations = record;
	}
	memory_unlock(s);
	return 0;
}
