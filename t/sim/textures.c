/*
 * Textures and surfaces. As the real driver (580.159.04) does it, they are numbers, of which each
 * context has one set for both kinds: the lowest that is free. One thread at a time makes them
 * in the tests.
 */
#include <stdlib.h>
#include <string.h>

#include "shared/cuda/array_params.h"
#include "t/sim/arrays.h"
#include "t/sim/device.h"
#include "t/sim/memory.h"
#include "t/sim/object.h"
#include "t/sim/sim.h"

struct texture {
	enum object_kind kind;
	uint64_t number;
	const void *context;
	struct resource resource;
	char description[104], view[112];
	struct texture *next;
};

SIM_EXPORT int cuTexObjectCreate(uint64_t *texture, const struct resource *resource,
	const void *description, const void *view);
SIM_EXPORT int cuTexObjectDestroy(uint64_t texture);
SIM_EXPORT int cuTexObjectGetResourceDesc(struct resource *resource, uint64_t texture);
SIM_EXPORT int cuTexObjectGetTextureDesc(void *description, uint64_t texture);
SIM_EXPORT int cuTexObjectGetResourceViewDesc(void *view, uint64_t texture);
SIM_EXPORT int cuSurfObjectCreate(uint64_t *surface, const struct resource *resource);
SIM_EXPORT int cuSurfObjectDestroy(uint64_t surface);
SIM_EXPORT int cuSurfObjectGetResourceDesc(struct resource *resource, uint64_t surface);

static struct texture *textures;

static struct texture **find(const void *context, uint64_t number)
{
	struct texture **at = &textures;

	while (*at && ((*at)->context != context || (*at)->number != number))
		at = &(*at)->next;
	return at;
}

static struct texture *get(enum object_kind kind, uint64_t number)
{
	struct texture *t = *find(current_context(), number);

	return t && t->kind == kind ? t : NULL;
}

static uint64_t free_number(const void *context)
{
	uint64_t number = atoi(sim_machine("textures_from", "1"));

	while (*find(context, number))
		number++;
	return number;
}

/* The driver looks at what it is given. */
static int check_resource(const struct resource *r, const char *function)
{
	int is_memory;

	if (r->type == RESOURCE_ARRAY)
		return object_get(OBJECT_ARRAY, r->of.array, function) ? 0 : SIM_INVALID_VALUE;
	if (r->type == RESOURCE_MIPMAPPED_ARRAY)
		return object_get(OBJECT_MIPMAPPED_ARRAY, r->of.array, function)
			       ? 0
			       : SIM_INVALID_VALUE;
	ranges_lock();
	is_memory = range_memory(r->of.linear.address) != NULL;
	ranges_unlock();
	return is_memory ? 0 : SIM_INVALID_VALUE;
}

static int create(enum object_kind kind, uint64_t *number, const struct resource *resource,
	const void *description, const void *view, const char *function)
{
	struct texture *t;
	int r;

	if (sim_have_context())
		return SIM_INVALID_CONTEXT;
	r = check_resource(resource, function);
	if (r)
		return r;
	t = calloc(1, sizeof(*t));
	t->kind = kind;
	t->context = current_context();
	t->number = *number = free_number(t->context);
	t->resource = *resource;
	if (description)
		memcpy(t->description, description, sizeof(t->description));
	if (view)
		memcpy(t->view, view, sizeof(t->view));
	t->next = textures;
	textures = t;
	return 0;
}

/* By the function for the other kind, too. */
static int destroy(uint64_t number)
{
	struct texture *t = *find(current_context(), number);

	if (!t)
		return SIM_INVALID_VALUE;
	*find(t->context, number) = t->next;
	free(t);
	return 0;
}

int cuTexObjectCreate(uint64_t *texture, const struct resource *resource,
	const void *description, const void *view)
{
	SIM_ENTER();
	return description
		       ? create(OBJECT_TEXTURE, texture, resource, description, view, __func__)
		       : SIM_INVALID_VALUE;
}

int cuTexObjectDestroy(uint64_t texture)
{
	SIM_ENTER();
	return destroy(texture);
}

static int get_resource(struct resource *resource, enum object_kind kind, uint64_t number)
{
	const struct texture *t = get(kind, number);

	if (!t)
		return SIM_INVALID_VALUE;
	*resource = t->resource;
	return 0;
}

int cuTexObjectGetResourceDesc(struct resource *resource, uint64_t texture)
{
	SIM_ENTER();
	return get_resource(resource, OBJECT_TEXTURE, texture);
}

int cuTexObjectGetTextureDesc(void *description, uint64_t texture)
{
	const struct texture *t;

	SIM_ENTER();
	t = get(OBJECT_TEXTURE, texture);
	if (!t)
		return SIM_INVALID_VALUE;
	memcpy(description, t->description, sizeof(t->description));
	return 0;
}

int cuTexObjectGetResourceViewDesc(void *view, uint64_t texture)
{
	const struct texture *t;

	SIM_ENTER();
	t = get(OBJECT_TEXTURE, texture);
	if (!t)
		return SIM_INVALID_VALUE;
	memcpy(view, t->view, sizeof(t->view));
	return 0;
}

int cuSurfObjectCreate(uint64_t *surface, const struct resource *resource)
{
	SIM_ENTER();
	return create(OBJECT_SURFACE, surface, resource, NULL, NULL, __func__);
}

int cuSurfObjectDestroy(uint64_t surface)
{
	SIM_ENTER();
	return destroy(surface);
}

int cuSurfObjectGetResourceDesc(struct resource *resource, uint64_t surface)
{
	SIM_ENTER();
	return get_resource(resource, OBJECT_SURFACE, surface);
}

void textures_context_gone(const void *context)
{
	struct texture **at = &textures, *t;

	while ((t = *at)) {
		if (t->context != context) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		free(t);
	}
}

void *texture_data(const void *context, uint64_t number, uint64_t size)
{
	struct texture *t = *find(context, number);
	void *array;

	if (!t)
		sim_hostile("a texture that is none", __func__);
	array = t->resource.of.array;
	if (t->resource.type == RESOURCE_MIPMAPPED_ARRAY)
		array = object_get(OBJECT_MIPMAPPED_ARRAY, array, __func__) ? array_level(array)
									    : NULL;
	if (resource_has_array(&t->resource))
		return array_data(array, size, __func__);
	memory_check(t->resource.of.linear.address, size, __func__);
	return (void *)t->resource.of.linear.address;
}
