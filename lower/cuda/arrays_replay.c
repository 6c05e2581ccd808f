/*
 * Arrays again, when there is memory and nothing depends on places of the driver's any more;
 * and then what textures and surfaces there are.
 *
 * Textures and surfaces are numbers in what the program hands to its kernels. The driver gives
 * the lowest free number of a context, so they are made in the order of their numbers,
 * and an object with too low a number fills a hole: it goes again when all are there.
 */
#include "lower/cuda/arrays.h"

#include <stdlib.h>
#include <string.h>

#include "lower/cuda/call_replay.h"
#include "lower/cuda/context_replay.h"
#include "lower/cuda/cuda.h"
#include "lower/cuda/growing_list.h"
#include "shared/cuda/array_params.h"

/* ---- arrays ---- */

static int is_array(const struct object *o)
{
	return o->kind == CUDA_ARRAY || o->kind == CUDA_MIPMAPPED_ARRAY;
}

static int make_array(const struct cuda_state *s, struct object *o)
{
	if (context_set(context_then(s, o->made->context)))
		return -1;
	return call_create(o->made, &o->real);
}

/* ---- textures and surfaces ---- */

static int is_texture(const struct object *o)
{
	return o->kind == CUDA_TEXTURE || o->kind == CUDA_SURFACE;
}

/* Numbers of the context that is being worked at. */
struct numbers {
	const struct cuda_state *s;
	int trial;
	struct object **list; /* wanted, by number */
	size_t count;
	void *stand_in; /* an array for what has none */
	struct {
		uint32_t kind;
		uint64_t number;
	} * holes;
	size_t hole_count, hole_room;
};

static uint64_t number_of(const struct object *o)
{
	return (uint64_t)o->real;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = number_of(*(struct object *const *)a),
		 y = number_of(*(struct object *const *)b);

	return x < y ? -1 : x > y;
}

static int destroy_object(uint32_t kind, uint64_t number)
{
	return kind == CUDA_TEXTURE ? CUDA(cuTexObjectDestroy, (uint64_t))(number)
				    : CUDA(cuSurfObjectDestroy, (uint64_t))(number);
}

static int create_object(
	const struct object *o, const struct resource *resource, uint64_t *number)
{
	const uint64_t *a = o->made->arguments;

	if (o->kind == CUDA_SURFACE)
		return CUDA(cuSurfObjectCreate, (uint64_t *, const void *))(number, resource);
	return CUDA(cuTexObjectCreate, (uint64_t *, const void *, const void *, const void *))(
		number, resource, (const void *)a[2], (const void *)a[3]);
}

/* Nothing is seen through it: it keeps a number. */
static int create_stand_in(struct numbers *n, const struct object *o, uint64_t *number)
{
	static const struct array_description small = {
		4, 4, 0, 0x20 /* FLOAT */, 1, 2 /* CUDA_ARRAY3D_SURFACE_LDST */, 0};
	static const char plain[104]; /* CUDA_TEXTURE_DESC */
	struct resource resource = {.type = RESOURCE_ARRAY};
	int r = 0;

	if (!n->stand_in)
		r = CUDA(cuArray3DCreate_v2, (void **, const void *))(&n->stand_in, &small);
	if (r)
		return r;
	resource.of.array = n->stand_in;
	if (o->kind == CUDA_SURFACE)
		return CUDA(cuSurfObjectCreate, (uint64_t *, const void *))(number, &resource);
	return CUDA(cuTexObjectCreate, (uint64_t *, const void *, const void *, const void *))(
		number, &resource, plain, NULL);
}

static int is_live(const struct cuda_state *s, uint64_t address)
{
	for (const struct allocation *a = s->allocations; a; a = a->next)
		if (address - a->address < a->size)
			return 1;
	return 0;
}

static int is_array_gone(const struct resource *given)
{
	return resource_has_array(given) &&
	       (uint64_t)((const struct object *)given->of.array)->real >> 63;
}

/* What it is of may have been freed: the program has only to destroy it. Memory need not be in
 * the list to be there, as pinned memory is not, so the driver is asked first. */
static int create_one(struct numbers *n, const struct object *o, uint64_t *number)
{
	const struct resource *given = (const struct resource *)o->made->arguments[1];
	struct resource resource = *given;
	int r;

	if (n->trial || is_array_gone(given))
		return create_stand_in(n, o, number);
	if (resource_has_array(given))
		resource.of.array = ((const struct object *)given->of.array)->real;
	r = create_object(o, &resource, number);
	if (!r || resource_has_array(given) || is_live(n->s, given->of.linear.address))
		return r;
	return create_stand_in(n, o, number);
}

static int keep_hole(struct numbers *n, uint32_t kind, uint64_t number)
{
	if (list_reserve(&n->holes, n->hole_count, &n->hole_room, sizeof(*n->holes),
		    "for numbers of textures"))
		return -1;
	n->holes[n->hole_count].kind = kind;
	n->holes[n->hole_count++].number = number;
	return 0;
}

static int make_texture(struct numbers *n, const struct object *o)
{
	const char *what = o->kind == CUDA_TEXTURE ? "cuTexObjectCreate" : "cuSurfObjectCreate";
	uint64_t number = 0;

	for (;;) {
		int r = create_one(n, o, &number);

		if (r)
			return cuda_failed(what, r);
		if (number == number_of(o))
			return 0;
		if (keep_hole(n, o->kind, number))
			return -1;
		if (number > number_of(o))
			return agent_fail(
				"%s gives %#lx here, where the program was given %#lx", what,
				number, number_of(o));
	}
}

static int make_in_context(struct numbers *n, void *context)
{
	int r;

	n->count = n->hole_count = 0;
	n->stand_in = NULL; /* goes with the context */
	for (struct object *o = n->s->objects; o; o = o->next)
		if (is_texture(o) && o->context == context)
			n->list[n->count++] = o;
	if (!n->count)
		return 0;
	qsort(n->list, n->count, sizeof(*n->list), by_number);
	r = context_set(context);
	for (size_t i = 0; i < n->count && !r; i++)
		r = make_texture(n, n->list[i]);
	for (size_t i = 0; i < n->hole_count && !r; i++)
		r = destroy_object(n->holes[i].kind, n->holes[i].number)
			    ? agent_fail("a texture that has reserved a number cannot be "
					 "destroyed")
			    : 0;
	return r;
}

static int make_textures(const struct cuda_state *s, int trial)
{
	struct numbers n = {.s = s, .trial = trial};
	size_t count = 0;
	int r = 0;

	for (const struct object *o = s->objects; o; o = o->next)
		count += is_texture(o);
	if (!count)
		return 0;
	n.list = calloc(count, sizeof(struct object *));
	if (!n.list)
		return agent_fail("no memory for numbers of textures");
	for (const struct object *o = s->objects; o && !r; o = o->next)
		if (o->kind == CUDA_CONTEXT)
			r = make_in_context(&n, o->real);
	free(n.list);
	free(n.holes);
	return r;
}

int arrays_replay(struct cuda_state *s, int trial)
{
	int r = 0;

	for (struct object *o = s->objects; o && !r && !trial; o = o->next)
		if (is_array(o))
			r = make_array(s, o);
	if (!r)
		r = make_textures(s, trial);
	if (!r && !trial)
		r = arrays_list(s, NULL, NULL);
	if (!r)
		cuda_enlist(s);
	CUDA(cuCtxSetCurrent, (void *))(NULL); /* this thread has none of its own */
	return r;
}
