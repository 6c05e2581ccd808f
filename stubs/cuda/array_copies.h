/* array_copies.h - structures of the driver's API that hold handles of arrays: the program's
 * (struct object), which are exchanged for the driver's own and back. */
#ifndef STUBS_CUDA_ARRAY_COPIES_H
#define STUBS_CUDA_ARRAY_COPIES_H

#include "shared/cuda/array_params.h"
#include "shared/cuda/graph_params.h"
#include "stubs/cuda/objects.h"

/* Both sides of a copy. 0, or CUDA_ERROR_INVALID_HANDLE: an array has been destroyed. */
STUB_HIDDEN int arrays_lower_copy(struct graph_memcpy *copy);
/* What the driver says of a copy, as the program knows it. */
STUB_HIDDEN void arrays_raise_copy(struct graph_memcpy *copy);

STUB_HIDDEN int inner_cuMemcpy2D(const void *params);
STUB_HIDDEN int inner_cuMemcpy2D_v2(const void *params);
STUB_HIDDEN int inner_cuMemcpy2D_v2_ptds(const void *params);
STUB_HIDDEN int inner_cuMemcpy2DUnaligned(const void *params);
STUB_HIDDEN int inner_cuMemcpy2DUnaligned_v2(const void *params);
STUB_HIDDEN int inner_cuMemcpy2DUnaligned_v2_ptds(const void *params);
STUB_HIDDEN int inner_cuMemcpy3D(const void *params);
STUB_HIDDEN int inner_cuMemcpy3D_v2(const void *params);
STUB_HIDDEN int inner_cuMemcpy3D_v2_ptds(const void *params);
STUB_HIDDEN int inner_cuMemcpy3DPeer(const void *params);
STUB_HIDDEN int inner_cuMemcpy3DPeer_ptds(const void *params);
STUB_HIDDEN int inner_cuMemcpy2DAsync(const void *params, void *stream);
STUB_HIDDEN int inner_cuMemcpy2DAsync_v2(const void *params, void *stream);
STUB_HIDDEN int inner_cuMemcpy2DAsync_v2_ptsz(const void *params, void *stream);
STUB_HIDDEN int inner_cuMemcpy3DAsync(const void *params, void *stream);
STUB_HIDDEN int inner_cuMemcpy3DAsync_v2(const void *params, void *stream);
STUB_HIDDEN int inner_cuMemcpy3DAsync_v2_ptsz(const void *params, void *stream);
STUB_HIDDEN int inner_cuMemcpy3DPeerAsync(const void *params, void *stream);
STUB_HIDDEN int inner_cuMemcpy3DPeerAsync_ptsz(const void *params, void *stream);
STUB_HIDDEN int inner_cuMemcpy3DBatchAsync(
	size_t count, const void *list, size_t *failed, uint64_t flags, void *stream);
STUB_HIDDEN int inner_cuMemcpy3DBatchAsync_ptsz(
	size_t count, const void *list, size_t *failed, uint64_t flags, void *stream);
STUB_HIDDEN int inner_cuMemcpy3DBatchAsync_v2(
	size_t count, const void *list, uint64_t flags, void *stream);
STUB_HIDDEN int inner_cuMemcpy3DBatchAsync_v2_ptsz(
	size_t count, const void *list, uint64_t flags, void *stream);

#endif
