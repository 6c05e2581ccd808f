/*
 * Everything that the program holds a handle of (streams, events, modules ...), made again in a fresh driver: the calls
 * that made it, calls that changed it, and the loading of functions, all in the order they came in.
 * A driver that is asked the same in the same order gives the same addresses, and where it
 * must, that is verified.
 */
#include <stdlib.h>
#include <string.h>

#include "lower/cuda/call_replay.h"
#include "lower/cuda/context_replay.h"
#include "lower/cuda/cuda.h"
#include "lower/cuda/growing_list.h"
#include "lower/cuda/module_replay.h"
#include "lower/cuda/placement.h"
#include "lower/cuda/saved_places.h"
#include "lower/cuda/shared_memory.h"
#include "shared/cuda/linker_state.h"
#include "shared/cuda/memory_state.h"

enum step_kind { MAKE, CHANGE, LOAD, MANAGED };

struct step {
	uint64_t sequence;
	enum step_kind kind;
	struct object *object;
	const struct cuda_call *call;
	const struct memory_managed *managed;
};

struct steps {
	struct step *list;
	size_t count, room;
};

static int add_step(struct steps *s, const struct step *step)
{
	if (list_reserve(&s->list, s->count, &s->room, sizeof(*s->list),
		    "to restore the program's CUDA objects"))
		return -1;
	s->list[s->count++] = *step;
	return 0;
}

static int add_made(struct steps *s, struct object *o)
{
	/* Another process's is had when that process has it again (cuda_import_again()). */
	return o->made && !cuda_event_origin(o)
		       ? add_step(s, &(struct step){o->sequence, MAKE, .object = o})
		       : 0;
}

static int add_later(struct steps *s, struct object *o)
{
	for (const struct cuda_call *c = o->changes; c; c = c->next)
		if (add_step(s, &(struct step){c->sequence, CHANGE, .object = o, .call = c}))
			return -1;
	return o->used ? add_step(s, &(struct step){o->used, LOAD, .object = o}) : 0;
}

static int add_managed(struct steps *s, const struct memory_state *memory)
{
	for (const struct memory_managed *m = memory ? memory->managed : NULL; m; m = m->next)
		if (add_step(s, &(struct step){m->sequence, MANAGED, .managed = m}))
			return -1;
	return 0;
}

static int compare_sequence(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

/* ---- objects ---- */

typedef int storage_put(void *context, void *key, void *value, void *destructor);

/* The table's own words lead to the upper half by now, unless the program has got it from another build. */
static storage_put *storage_function(const struct cuda_state *s)
{
	void **functions = NULL;

	if (CUDA(cuGetExportTable, (const void **, const void *))(
		    (const void **)&functions, s->storage_table))
		return NULL;
	for (const struct cuda_patch *p = s->patches; p; p = p->next)
		if (p->word == functions)
			return (storage_put *)p->before;
	return functions ? (storage_put *)functions[0] : NULL;
}

static int put_storage(const struct cuda_state *s, struct object *o)
{
	const uint64_t *a = o->made->arguments;
	storage_put *put = storage_function(s);
	int r;

	if (!put)
		return agent_fail("the driver has no storage for libraries");
	r = put(o->context, (void *)a[STORAGE_KEY], (void *)a[STORAGE_VALUE],
		(void *)a[STORAGE_DESTRUCTOR]);
	return r ? cuda_failed("restoring the storage that a library has in a context", r) : 0;
}

static int make_address(struct object *o)
{
	struct call_again again = {0};
	int r = call_prepare_address(&again, o->made);

	if (!r)
		r = call_invoke(&again);
	if (!r)
		r = call_verify(&again, o->made);
	call_finish(&again);
	return r;
}

/* The driver has written sizes and times to the values of options. */
static void reset_linker(const struct object *o)
{
	struct linker_state *linker = (struct linker_state *)o->value;

	memcpy(linker->values, linker->given, linker->count * sizeof(*linker->values));
}

static int make_object(const struct cuda_state *s, struct object *o)
{
	if (o->kind == CUDA_STORAGE)
		return put_storage(s, o);
	if (o->kind == CUDA_CONTEXT)
		return context_make(o);
	if (context_set(context_then(s, o->made->context)))
		return -1;
	if (o->kind == CUDA_ADDRESS)
		return make_address(o);
	if (o->kind == CUDA_LINKER)
		reset_linker(o);
	return call_create(o->made, &o->real);
}

static int change_object(const struct cuda_state *s, const struct cuda_call *call)
{
	struct call_again again = {0};
	int r = context_set(context_then(s, call->context));

	if (!r)
		r = call_prepare(&again, call);
	if (!r)
		r = call_invoke(&again);
	call_finish(&again);
	return r;
}

/* With lazy loading a function's code comes to the device when it is first used. */
static int load_function(const struct cuda_state *s, struct object *o)
{
	void *function = o->real;
	int r = context_set(cuda_context_of(s, o));

	if (r)
		return r;
	if (o->kind == CUDA_KERNEL)
		r = CUDA(cuKernelGetFunction, (void **, void *))(&function, o->real);
	if (!r)
		r = CUDA(cuFuncLoad, (void *))(function);
	if (r == CUDA_MISSING) /* a driver before 12.4 */
		r = 0;
	return r ? cuda_failed("cuFuncLoad", r) : 0;
}

/* The library that @o is of, or is. */
static const struct object *library_of(const struct object *o)
{
	while (o && o->kind != CUDA_LIBRARY)
		o = o->parent;
	return o;
}

/* A module has its variables when it is made. So has a library, in all contexts, if it is not
 * loaded only when something in it is needed; its managed variables it has in any case. */
static int make_loaded(const struct cuda_state *s, struct object *o)
{
	void *context = o->kind == CUDA_MODULE  ? o->context
			: module_has_managed(o) ? places_first_context(o)
						: NULL;

	if ((!context && !module_loads_eagerly()) || !placement_count(o, context))
		return make_object(s, o);
	if (context ? module_open(o, context) : placement_open(o, NULL, 0))
		return -1;
	return make_object(s, o) || module_close(o, context) ? -1 : 0;
}

/* The context that a step with a library is taken in: managed variables may have been asked for
 * when there was none. */
static void *context_of(const struct cuda_state *s, const struct step *step)
{
	switch (step->kind) {
	case LOAD:
		return cuda_context_of(s, step->object);
	case CHANGE:
		return context_then(s, step->call->context);
	case MAKE:
		if (step->object->made->context)
			return context_then(s, step->object->made->context);
		break;
	case MANAGED:
		break;
	}
	return places_first_context(library_of(step->object));
}

static int take_step(const struct cuda_state *s, const struct step *step)
{
	struct object *o = step->object;
	const struct object *library;
	void *context;

	if (step->kind == MANAGED)
		return cuda_make_managed(step->managed);
	library = library_of(o);
	if (step->kind == MAKE && (o == library || (!library && o->kind == CUDA_MODULE)))
		return make_loaded(s, o);
	/* A kernel as such is of no context. */
	context = library && (step->kind != MAKE || o->kind != CUDA_KERNEL)
			  ? context_of(s, step)
			  : NULL;
	if (context && module_load(library, context))
		return -1;
	return step->kind == MAKE     ? make_object(s, o)
	       : step->kind == CHANGE ? change_object(s, step->call)
				      : load_function(s, o);
}

/* These take memory: arrays_replay.c. */
static int is_of_arrays(const struct object *o)
{
	return o->kind == CUDA_ARRAY || o->kind == CUDA_MIPMAPPED_ARRAY ||
	       o->kind == CUDA_TEXTURE || o->kind == CUDA_SURFACE;
}

/* What is left, as nothing that the records hold had it loaded: in the order that a checkpoint
 * has looked for variables in (module_variables.c). */
static int load_libraries(const struct cuda_state *s)
{
	for (const struct object *o = s->objects; o; o = o->next)
		for (const struct object *c = s->objects; c; c = c->next)
			if (o->kind == CUDA_LIBRARY && c->kind == CUDA_CONTEXT &&
				module_load(o, c->real))
				return -1;
	return 0;
}

static int take_steps(const struct cuda_state *s, const struct steps *steps)
{
	int r = 0;

	for (size_t i = 0; i < steps->count && !r; i++)
		r = take_step(s, &steps->list[i]);
	return r;
}

void cuda_enlist(struct cuda_state *s)
{
	memset(s->by_real, 0, sizeof(s->by_real));
	for (struct object *o = s->objects; o; o = o->next)
		object_enlist(s, o);
}

static int take_in_order(struct cuda_state *s, struct steps *steps)
{
	int r;

	qsort(steps->list, steps->count, sizeof(*steps->list), compare_sequence);
	r = take_steps(s, steps);
	if (!r)
		cuda_enlist(s);
	CUDA(cuCtxSetCurrent, (void *))(NULL); /* this thread has none of its own */
	return r;
}

/* What the program sees of numbers from now on is none that it has seen. */
static void move_numbers(struct cuda_state *s)
{
	for (unsigned i = 0; i < NUMBERS_KINDS; i++)
		s->numbers[i].base = s->numbers[i].next;
}

static int add_object(struct steps *steps, struct object *o)
{
	int r = add_made(steps, o);

	return r ? r : add_later(steps, o);
}

int cuda_replay_contexts(struct cuda_state *s)
{
	struct steps steps = {0};
	int r = context_set_primary_flags(s);

	move_numbers(s);
	for (struct object *o = s->objects; o && !r; o = o->next) {
		if (o->kind != CUDA_CONTEXT)
			continue;
		r = add_object(&steps, o);
	}
	if (!r)
		r = take_in_order(s, &steps);
	free(steps.list);
	return r;
}

int cuda_replay_objects(struct cuda_state *s)
{
	struct steps steps = {0};
	int r = add_managed(&steps, s->memory);

	for (struct object *o = s->objects; o && !r; o = o->next) {
		if (o->kind == CUDA_CONTEXT || is_of_arrays(o))
			continue;
		r = add_object(&steps, o);
	}
	if (!r)
		r = take_in_order(s, &steps);
	if (!r)
		r = load_libraries(s);
	CUDA(cuCtxSetCurrent, (void *))(NULL); /* this thread has none of its own */
	free(steps.list);
	return r;
}
