/* textures.h - calls about texture and surface objects (textures.c). */
#ifndef STUBS_CUDA_TEXTURES_H
#define STUBS_CUDA_TEXTURES_H

#include <stdint.h>

struct resource;

int body_cuTexObjectCreate(uint64_t *texture, const struct resource *resource,
	const void *description, const void *view);
int body_cuTexObjectDestroy(uint64_t texture);
int body_cuTexObjectGetResourceDesc(struct resource *resource, uint64_t texture);
int body_cuSurfObjectCreate(uint64_t *surface, const struct resource *resource);
int body_cuSurfObjectDestroy(uint64_t surface);
int body_cuSurfObjectGetResourceDesc(struct resource *resource, uint64_t surface);

#endif
