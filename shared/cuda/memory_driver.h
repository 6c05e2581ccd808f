/*
 * memory_driver.h - the driver as the allocator (devmem/) calls it, in both halves: the upper half
 * crosses to the driver's functions, the lower half has looked them up. memory_driver.c is built
 * for each.
 */
#ifndef SHARED_CUDA_MEMORY_DRIVER_H
#define SHARED_CUDA_MEMORY_DRIVER_H

#include "shared/cuda/memory_state.h"

/* Pinned memory is for all contexts and mapped (CU_MEMHOSTREGISTER_PORTABLE, _DEVICEMAP). */
#define PINNED_FLAGS 3

/* Registered memory goes with its context. The context stands in place of a handle. */
#define PINNED_BY(context) ((uint64_t)(context) | 1)

struct memory_functions {
	int (*cuCtxGetCurrent)(void **context);
	int (*cuMemAddressReserve)(
		uint64_t *address, size_t size, size_t align, uint64_t wanted, uint64_t flags);
	int (*cuMemAddressFree)(uint64_t address, size_t size);
	int (*cuMemCreate)(uint64_t *handle, size_t size,
		const struct memory_properties *properties, uint64_t flags);
	int (*cuMemRelease)(uint64_t handle);
	int (*cuMemMap)(
		uint64_t address, size_t size, size_t offset, uint64_t handle, uint64_t flags);
	int (*cuMemUnmap)(uint64_t address, size_t size);
	int (*cuMemSetAccess)(uint64_t address, size_t size, const struct memory_access *access,
		size_t count);
	int (*cuMemHostRegister_v2)(void *address, size_t size, unsigned flags);
	int (*cuMemHostUnregister)(void *address);
	/* For tables; NULL: none is available. */
	void *(*allocate)(uint64_t size);
	/* Whether memory to be pinned is mapped first, or is there. */
	int maps_pinned;
};

/* Each half's own. */
__attribute__((visibility("hidden"))) const struct memory_functions *memory_functions(void);

extern __attribute__((visibility("hidden"))) const struct devmem_driver memory_driver;

#endif
