/* linker.h - linker states: shared/cuda/linker_state.h tells what is kept of them. For use in guarded bodies. */
#ifndef STUBS_CUDA_LINKER_H
#define STUBS_CUDA_LINKER_H

#include "shared/cuda/cuda_state.h"
#include "shared/cuda/linker_state.h"
#include "stubs/cuda/bodies.h"

/* With what belongs to it; it may be NULL. */
STUB_HIDDEN void linker_free(struct linker_state *state);

/* Before and after @object, a linker state, is destroyed by the driver: what the program and the driver have written. */
STUB_HIDDEN void linker_ends(const struct object *object);
STUB_HIDDEN void linker_ended(const struct object *object);

STUB_HIDDEN int body_cuLinkCreate(
	unsigned count, const uint32_t *options, uint64_t *values, void **state);
STUB_HIDDEN int body_cuLinkCreate_v2(
	unsigned count, const uint32_t *options, uint64_t *values, void **state);
STUB_HIDDEN int body_cuLinkAddData(void *state, int type, void *data, size_t size,
	const char *name, unsigned count, const uint32_t *options, uint64_t *values);
STUB_HIDDEN int body_cuLinkAddData_v2(void *state, int type, void *data, size_t size,
	const char *name, unsigned count, const uint32_t *options, uint64_t *values);
STUB_HIDDEN int body_cuLinkAddFile(void *state, int type, const char *path, unsigned count,
	const uint32_t *options, uint64_t *values);
STUB_HIDDEN int body_cuLinkAddFile_v2(void *state, int type, const char *path, unsigned count,
	const uint32_t *options, uint64_t *values);
STUB_HIDDEN int body_cuLinkComplete(void *state, void **code, size_t *size);

#endif
