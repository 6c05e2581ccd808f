/* array_params.h - arrays and what textures are of, as the driver has them: what is used of
 * cuda.h, which is not needed to build. */
#ifndef SHARED_CUDA_ARRAY_PARAMS_H
#define SHARED_CUDA_ARRAY_PARAMS_H

#include <stdint.h>

#define COPY_OF_ARRAY 3 /* CU_MEMORYTYPE_ARRAY: a side of a copy */

/* CUDA_ARRAY3D_DESCRIPTOR. Height 0: one row; depth 0: one slice. */
struct array_description {
	uint64_t width, height, depth;
	uint32_t format, channels, flags, reserved;
};
_Static_assert(sizeof(struct array_description) == 40, "");

/* CUDA_ARRAY3D_SPARSE, CUDA_ARRAY3D_DEFERRED_MAPPING: memory would come by cuMemMapArrayAsync. */
#define ARRAY_WITHOUT_MEMORY (0x40 | 0x80)

/* CUresourcetype */
enum resource_type {
	RESOURCE_ARRAY,
	RESOURCE_MIPMAPPED_ARRAY,
	RESOURCE_LINEAR,
	RESOURCE_PITCH,
};

/* CUDA_RESOURCE_DESC */
struct resource {
	uint32_t type, pad;
	union {
		void *array; /* of either kind */
		struct {
			uint64_t address;
			uint32_t format, channels;
			uint64_t size;
		} linear;
		struct {
			uint64_t address;
			uint32_t format, channels;
			uint64_t width, height, pitch;
		} pitch;
		uint64_t words[16];
	} of;
	uint32_t flags, pad2;
};
_Static_assert(sizeof(struct resource) == 144, "");

static inline int resource_has_array(const struct resource *r)
{
	return r->type == RESOURCE_ARRAY || r->type == RESOURCE_MIPMAPPED_ARRAY;
}

#endif
