/* linker.h - linker states: shared/cuda/linker_state.h tells what is kept of them. For use in guarded bodies. */
#ifndef STUBS_CUDA_LINKER_H
#define STUBS_CUDA_LINKER_H

#include "shared/cuda/linker_state.h"
#include "stubs/cuda/bodies.h"

/* With what belongs to it; it may be NULL. */
STUB_HIDDEN void linker_free(struct linker_state *state);

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
