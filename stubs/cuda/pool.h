/* pool.h - what the files about pools offer each other. */
#ifndef STUBS_CUDA_POOL_H
#define STUBS_CUDA_POOL_H

#include "stubs/cuda/memory.h"

/* The pool that the program means by @handle; NULL: none. */
STUB_HIDDEN struct memory_pool *pool_of(void *handle);
/* It no longer exists. */
STUB_HIDDEN void pool_release(struct memory_state *s, struct memory_pool *pool);
/* The pool that allocations on @device come from. 0 or an error. */
STUB_HIDDEN int pool_current(
	struct memory_state *s, uint32_t device, struct memory_pool **pool);

/* A pool for what is another process's, on @device. 0 or an error. */
STUB_HIDDEN int pool_import(void **pool, uint32_t device);

/* CUmemLocation */
struct location {
	uint32_t type, id;
};

/* CUmemPoolProps */
struct pool_properties {
	uint32_t type, handle_types;
	struct location location;
	void *windows;
	uint64_t largest;
	uint16_t usage;
	uint8_t reserved[54];
};
_Static_assert(sizeof(struct pool_properties) == 88, "as in CUDA 12.8 and later");

STUB_HIDDEN int body_cuMemGetDefaultMemPool(
	void **pool, const struct location *location, int type);
STUB_HIDDEN int body_cuMemGetMemPool(void **pool, const struct location *location, int type);
STUB_HIDDEN int body_cuMemSetMemPool(const struct location *location, int type, void *pool);
STUB_HIDDEN int body_cuMemPoolCreate(void **pool, const struct pool_properties *properties);
STUB_HIDDEN int body_cuMemPoolDestroy(void *pool);
STUB_HIDDEN int body_cuMemPoolTrimTo(void *pool, size_t keep);
STUB_HIDDEN int body_cuMemPoolGetAttribute(void *pool, int attribute, void *value);
STUB_HIDDEN int body_cuMemPoolSetAttribute(void *pool, int attribute, const void *value);
STUB_HIDDEN int body_cuMemPoolSetAccess(
	void *pool, const struct memory_access *map, size_t count);
STUB_HIDDEN int body_cuMemPoolGetAccess(
	uint32_t *flags, void *pool, const struct location *location);

#endif
