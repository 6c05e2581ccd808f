/*
 * Texture and surface objects: small numbers, which programs hand to kernels among other
 * arguments, so the program holds the driver's own. Each context has numbers of its own, for
 * both kinds together. lower/cuda/arrays_replay.c makes them again, each with its number.
 */
#include "stubs/cuda/textures.h"

#include "shared/cuda/calls.h"
#include "stubs/cuda/array_copies.h"

#include "cuda.index.h"

/* Under the lock. */
static struct object *find_of_kind(enum cuda_kind kind, uint64_t number, const void *context)
{
	struct object *o = CUDA_STATE->by_real[object_list(kind, (void *)number)];

	while (o && (o->kind != kind || (uint64_t)o->real != number || o->context != context))
		o = o->alike;
	return o;
}

/* What has @number in the current context, of either kind: the driver (580.159.04) destroys a
 * texture by the function for surfaces, too. NULL: nothing that we know of. */
static struct object *find_by_number(uint64_t number)
{
	void *context = current_context();
	uint64_t mask = state_lock();
	struct object *o = find_of_kind(CUDA_TEXTURE, number, context);

	if (!o)
		o = find_of_kind(CUDA_SURFACE, number, context);
	state_unlock(mask);
	return o;
}

/* The call of cuda_info[index] with @given; the structure that tells what it is of is replaced. */
static int create_texture(enum cuda_kind kind, unsigned index, const uint64_t given[CALL_WORDS])
{
	const struct resource *resource = (const struct resource *)given[1];
	uint64_t words[CALL_WORDS], *number = (uint64_t *)given[0];
	struct resource ours;
	struct object *o;
	int r;

	if (!state_usable() || !resource || !number)
		return cuda_call_down(index, given);
	ours = *resource;
	if (resource_has_array(&ours))
		ours.of.array = object_real(ours.of.array);
	if (resource_has_array(&ours) && is_dead(ours.of.array))
		return CUDA_ERROR_INVALID_HANDLE;
	o = object_new(kind, CUDA_OBJECT_REAL);
	if (o)
		o->made = call_new(index, given);
	if (!o || !o->made) {
		object_drop(o);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	o->context = o->made->context;
	for (unsigned i = 0; i < CALL_WORDS; i++)
		words[i] = given[i];
	words[1] = (uint64_t)&ours;
	r = cuda_call_down(index, words);
	if (r)
		object_drop(o);
	else
		object_live(o, (void *)*number);
	return r;
}

/* It is no more before the driver may give its number to another thread. */
static int destroy_texture(unsigned index, uint64_t number)
{
	struct object *o = state_usable() ? find_by_number(number) : NULL;
	int r;

	if (o)
		o->real = (void *)CUDA_DEAD;
	r = cuda_call_down(index, (const uint64_t[CALL_WORDS]){number});
	if (o)
		o->real = (void *)number;
	if (!r)
		object_kill(o);
	return r;
}

/* The array by the handle that the program has of it. */
static int get_resource(unsigned index, struct resource *resource, uint64_t number)
{
	int r = cuda_call_down(index, (const uint64_t[CALL_WORDS]){(uint64_t)resource, number});
	struct object *o = NULL;

	if (r || !state_usable())
		return r;
	if (resource_has_array(resource))
		o = object_find(
			resource->type == RESOURCE_ARRAY ? CUDA_ARRAY : CUDA_MIPMAPPED_ARRAY,
			resource->of.array);
	if (o)
		resource->of.array = o;
	return 0;
}

int body_cuTexObjectCreate(uint64_t *texture, const struct resource *resource,
	const void *description, const void *view)
{
	return create_texture(CUDA_TEXTURE, INDEX_cuTexObjectCreate,
		(const uint64_t[CALL_WORDS]){(uint64_t)texture, (uint64_t)resource,
			(uint64_t)description, (uint64_t)view});
}

int body_cuTexObjectDestroy(uint64_t texture)
{
	return destroy_texture(INDEX_cuTexObjectDestroy, texture);
}

int body_cuTexObjectGetResourceDesc(struct resource *resource, uint64_t texture)
{
	return get_resource(INDEX_cuTexObjectGetResourceDesc, resource, texture);
}

int body_cuSurfObjectCreate(uint64_t *surface, const struct resource *resource)
{
	return create_texture(CUDA_SURFACE, INDEX_cuSurfObjectCreate,
		(const uint64_t[CALL_WORDS]){(uint64_t)surface, (uint64_t)resource});
}

int body_cuSurfObjectDestroy(uint64_t surface)
{
	return destroy_texture(INDEX_cuSurfObjectDestroy, surface);
}

int body_cuSurfObjectGetResourceDesc(struct resource *resource, uint64_t surface)
{
	return get_resource(INDEX_cuSurfObjectGetResourceDesc, resource, surface);
}
