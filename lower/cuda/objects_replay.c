/*
 * Everything that the program holds a handle of, made again in a fresh driver: the calls that
 * made it, those that changed it, and the loading of functions, all in the order they came in.
 * A driver that is asked the same in the same order gives the same addresses, and where it
 * must, that is verified.
 */
#include <stdlib.h>
#include <string.h>

#include "lower/cuda/cuda.h"
#include "lower/cuda/placement.h"
#include "lower/cuda/saved_places.h"
#include "lower/heap.h"
#include "shared/cuda/calls.h"
#include "shared/cuda/memory_state.h"

#include "shared/cuda/call_index.inc"

extern const struct call_info cuda_info[];

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

static int add(struct steps *s, const struct step *step)
{
	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 1024;
		struct step *more = realloc(s->list, room * sizeof(*more));

		if (!more)
			return agent_fail("no memory to restore what the program has of CUDA");
		s->list = more;
		s->room = room;
	}
	s->list[s->count++] = *step;
	return 0;
}

static int add_made(struct steps *s, struct object *o)
{
	return o->made ? add(s, &(struct step){o->sequence, MAKE, .object = o}) : 0;
}

static int add_later(struct steps *s, struct object *o)
{
	for (const struct cuda_call *c = o->changes; c; c = c->next)
		if (add(s, &(struct step){c->sequence, CHANGE, .object = o, .call = c}))
			return -1;
	return o->used ? add(s, &(struct step){o->used, LOAD, .object = o}) : 0;
}

static int add_managed(struct steps *s, const struct memory_state *memory)
{
	for (const struct memory_managed *m = memory ? memory->managed : NULL; m; m = m->next)
		if (add(s, &(struct step){m->sequence, MANAGED, .managed = m}))
			return -1;
	return 0;
}

static int earlier(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

/* ---- a call ---- */

struct call_again {
	const struct call_info *info;
	uint64_t words[CALL_WORDS];
	void *scratch[CALL_WORDS]; /* by parameter: where results go */
	void *real;                /* the handle that came out */
};

static int prepare(struct call_again *again, const struct cuda_call *call)
{
	const struct call_info *info = again->info = &cuda_info[call->index];
	const struct call_param *out = call_out(info);

	if (call_lower(info, call->arguments, again->words))
		return agent_fail("%s: it needs an object that is no more", info->name);
	for (unsigned i = 0; i < info->param_count; i++) {
		const struct call_param *p = &info->params[i];
		uint64_t size;

		if (!p->stars || p->direction != API_OUT || !call->arguments[p->word])
			continue;
		if (p == out) {
			again->words[p->word] = (uint64_t)&again->real;
			continue;
		}
		size = call_bytes(info, p, call->arguments);
		again->scratch[i] = calloc(1, size < 8 ? 8 : size);
		if (!again->scratch[i])
			return agent_fail("no memory for results of %s", info->name);
		again->words[p->word] = (uint64_t)again->scratch[i];
	}
	return 0;
}

static void finish(struct call_again *again)
{
	for (unsigned i = 0; i < CALL_WORDS; i++)
		free(again->scratch[i]);
}

typedef int words_function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
	uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
	uint64_t);

static int invoke(const struct call_again *again)
{
	words_function *f = (words_function *)cuda_function(again->info->name);
	const uint64_t *w = again->words;
	int r = f(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11],
		w[12], w[13], w[14], w[15]);

	return r ? cuda_failed(again->info->name, r) : 0;
}

/* Results that the program has seen stand in the record in place of where they went to. */
static int same_results(const struct call_again *again, const struct cuda_call *call)
{
	const struct call_info *info = again->info;

	for (unsigned i = 0; i < info->param_count; i++) {
		uint64_t was = call->arguments[info->params[i].word], is;

		if (!again->scratch[i])
			continue;
		memcpy(&is, again->scratch[i], sizeof(is));
		if (is != was)
			return agent_fail(
				"%s gives %#lx here, where the program was given %#lx",
				info->name, is, was);
	}
	return 0;
}

/* A result that was an address in the program's hands when the record was made is in the record
 * as a value; call_bytes() must not follow it, so one word each is enough. */
static int prepare_address(struct call_again *again, const struct cuda_call *call)
{
	const struct call_info *info = again->info = &cuda_info[call->index];

	if (call_lower(info, call->arguments, again->words))
		return agent_fail("%s: it needs an object that is no more", info->name);
	for (unsigned i = 0; i < info->param_count; i++) {
		const struct call_param *p = &info->params[i];

		if (!p->stars || p->direction != API_OUT || !call->arguments[p->word])
			continue;
		again->scratch[i] = calloc(1, sizeof(uint64_t));
		if (!again->scratch[i])
			return agent_fail("no memory for results of %s", info->name);
		again->words[p->word] = (uint64_t)again->scratch[i];
	}
	return 0;
}

/* ---- objects ---- */

static int set_current(void *context)
{
	int r = CUDA(cuCtxSetCurrent, (void *))(context);

	return r ? cuda_failed("cuCtxSetCurrent", r) : 0;
}

/* The context that was current when something was made or changed. If it is no more, what
 * outlives it does not mind in which that is done. */
static void *context_then(const struct cuda_state *s, void *context)
{
	const struct object *o = s->objects, *any = NULL;

	if (!context)
		return NULL;
	for (; o && (o->kind != CUDA_CONTEXT || o->real != context); o = o->next)
		if (!any && o->kind == CUDA_CONTEXT)
			any = o;
	return o ? context : any ? any->real : NULL;
}

int cuda_is_primary(const struct object *o, unsigned device)
{
	return o->kind == CUDA_CONTEXT && o->made &&
	       o->made->index == INDEX_cuDevicePrimaryCtxRetain &&
	       o->made->arguments[1] == device;
}

/* The device is an argument of whatever makes a context. */
int cuda_device_of(const struct object *context)
{
	const struct call_info *info = context->made ? &cuda_info[context->made->index] : NULL;

	for (unsigned i = 0; info && i < info->param_count; i++)
		if (info->params[i].kind == API_DEVICE)
			return context->made->arguments[info->params[i].word];
	return -1;
}

static int verify_context(const struct object *o, const void *real)
{
	return real == o->real ? 0
			       : agent_fail("a context comes to lie at %p here, it was at %p",
					 real, o->real);
}

static int retain_primary(const struct object *o, void **context)
{
	int device = o->made->arguments[1], r = 0;

	for (uint64_t i = 0; i < o->value && !r; i++)
		r = CUDA(cuDevicePrimaryCtxRetain, (void **, int))(context, device);
	return r ? cuda_failed("cuDevicePrimaryCtxRetain", r) : 0;
}

static int release_primary(const struct object *o)
{
	int device = o->made->arguments[1], r = 0;

	for (uint64_t i = 0; i < o->value && !r; i++)
		r = CUDA(cuDevicePrimaryCtxRelease_v2, (int))(device);
	return r ? cuda_failed("cuDevicePrimaryCtxRelease", r) : 0;
}

/* What makes a context leaves it current. */
static int create_context(const struct object *o, void **context)
{
	struct call_again again = {0};
	int r = prepare(&again, o->made);
	void *popped;

	if (!r)
		r = invoke(&again);
	if (!r)
		CUDA(cuCtxPopCurrent_v2, (void **))(&popped);
	*context = again.real;
	finish(&again);
	return r;
}

/* So many that are no more may have lain below one. */
#define FILLERS 8

struct fillers {
	void *contexts[FILLERS];
	unsigned count;
};

/* In the place of a context that is no more. */
static int fill(struct fillers *f, const struct object *o)
{
	int r = CUDA(cuCtxCreate_v2, (void **, unsigned, int))(
		&f->contexts[f->count], 0, cuda_device_of(o));

	void *popped;

	if (r)
		return cuda_failed("cuCtxCreate", r);
	CUDA(cuCtxPopCurrent_v2, (void **))(&popped); /* as above */
	f->count++;
	return 0;
}

/* The lowest place that is free is where a context comes to lie. One that was made when there
 * were others, which are no more, has to find their places taken. */
static int make_in_place(const struct object *o, struct fillers *f)
{
	int primary = o->made->index == INDEX_cuDevicePrimaryCtxRetain, r;
	void *context = NULL;

	for (;;) {
		r = primary ? retain_primary(o, &context) : create_context(o, &context);
		if (r || context >= o->real || f->count == FILLERS)
			return r ? r : verify_context(o, context);
		if (!primary)
			f->contexts[f->count++] = context;
		else if (release_primary(o) || fill(f, o))
			return -1;
	}
}

static int make_context(const struct object *o)
{
	struct fillers f = {0};
	int r = make_in_place(o, &f);

	while (f.count)
		CUDA(cuCtxDestroy_v2, (void *))(f.contexts[--f.count]); /* ours */
	return r;
}

typedef int storage_put(void *context, void *key, void *value, void *destructor);

/* The table's own words lead to the upper half by now. */
static storage_put *storage_function(const struct cuda_state *s)
{
	void **functions = NULL;

	if (CUDA(cuGetExportTable, (const void **, const void *))(
		    (const void **)&functions, s->storage_table))
		return NULL;
	for (const struct cuda_patch *p = s->patches; p; p = p->next)
		if (p->word == functions)
			return (storage_put *)p->before;
	return NULL;
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
	return r ? cuda_failed("what a library keeps with a context", r) : 0;
}

static int make_address(struct object *o)
{
	struct call_again again = {0};
	int r = prepare_address(&again, o->made);

	if (!r)
		r = invoke(&again);
	if (!r)
		r = same_results(&again, o->made);
	finish(&again);
	return r;
}

static int make(const struct cuda_state *s, struct object *o)
{
	struct call_again again = {0};
	int r;

	if (o->kind == CUDA_STORAGE)
		return put_storage(s, o);
	if (o->kind == CUDA_CONTEXT)
		return make_context(o);
	if (set_current(context_then(s, o->made->context)))
		return -1;
	if (o->kind == CUDA_ADDRESS)
		return make_address(o);
	r = prepare(&again, o->made);
	if (!r)
		r = invoke(&again);
	if (!r)
		o->real = again.real;
	finish(&again);
	return r;
}

static int change(const struct cuda_state *s, const struct cuda_call *call)
{
	struct call_again again = {0};
	int r = set_current(context_then(s, call->context));

	if (!r)
		r = prepare(&again, call);
	if (!r)
		r = invoke(&again);
	finish(&again);
	return r;
}

/* With lazy loading a function's code comes to the device when it is first used. */
static int load(const struct cuda_state *s, struct object *o)
{
	void *function = o->real;
	int r = set_current(cuda_context_of(s, o));

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

/* ---- variables ---- */

/* The library that @o is of, or is. */
static const struct object *library_of(const struct object *o)
{
	while (o && o->kind != CUDA_LIBRARY)
		o = o->parent;
	return o;
}

/* Another one like @o, in @context, if that is a module's. */
static int load_copy(const struct object *o, void *context, struct object *copy)
{
	struct call_again again = {0};
	int r = set_current(context);

	if (!r)
		r = prepare(&again, o->made);
	heap_aside++;
	if (!r)
		r = invoke(&again);
	heap_aside--;
	*copy = *o;
	copy->real = again.real;
	finish(&again);
	return r;
}

static int unload_copy(const struct object *copy)
{
	int r = copy->kind == CUDA_MODULE ? CUDA(cuModuleUnload, (void *))(copy->real)
					  : CUDA(cuLibraryUnload, (void *))(copy->real);

	return r ? cuda_failed("unloading a copy of a module", r) : 0;
}

/* Whether variables of @o in @context come to lie where they lay in this way, or -1. */
static int try_way(const struct object *o, void *context, unsigned way)
{
	struct object copy;
	int r;

	if (placement_open(o, context, way) || load_copy(o, context, &copy))
		return -1;
	heap_aside++;
	r = cuda_globals_match(&copy, context);
	heap_aside--;
	return unload_copy(&copy) || placement_close() ? -1 : r;
}

/* Let the places of @o in @context be empty so that it comes to lie there. */
static int open_places(const struct object *o, void *context)
{
	unsigned way = 0;
	int r = placement_count(o, context) > 1 ? 0 : 1;

	for (; !r && way < PLACEMENT_WAYS; way++)
		r = try_way(o, context, way);
	if (r < 0)
		return -1;
	return placement_open(o, context, r && way ? way - 1 : 0);
}

static int close_places(const struct object *o, const void *context)
{
	if (cuda_verify_globals(o, context))
		return -1;
	placement_made(o, context);
	return placement_close();
}

/* Its variables come to lie where they lay in @context. */
static int load_library(const struct object *library, void *context)
{
	if (!placement_count(library, context))
		return 0;
	return open_places(library, context) || close_places(library, context) ? -1 : 0;
}

#define EAGER 1 /* CU_MODULE_EAGER_LOADING */

static int loads_eagerly(void)
{
	int mode = 0;

	return !CUDA(cuModuleGetLoadingMode, (int *))(&mode) && mode == EAGER;
}

static int has_managed(const struct object *o)
{
	for (const struct cuda_global *g = o->globals; g; g = g->next)
		if (g->managed)
			return 1;
	return 0;
}

/* A module has its variables when it is made. So has a library, in all contexts, if it is not
 * loaded only when something in it is needed; its managed variables it has in any case. */
static int make_loaded(const struct cuda_state *s, struct object *o)
{
	void *context = o->kind == CUDA_MODULE ? o->context
			: has_managed(o)       ? places_first_context(o)
					       : NULL;

	if ((!context && !loads_eagerly()) || !placement_count(o, context))
		return make(s, o);
	if (context ? open_places(o, context) : placement_open(o, NULL, 0))
		return -1;
	return make(s, o) || close_places(o, context) ? -1 : 0;
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

static int take(const struct cuda_state *s, const struct step *step)
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
	if (context && load_library(library, context))
		return -1;
	return step->kind == MAKE     ? make(s, o)
	       : step->kind == CHANGE ? change(s, step->call)
				      : load(s, o);
}

/* What is left, as nothing that the records hold had it loaded: in the order that a checkpoint
 * has looked for variables in (module_variables.c). */
static int load_libraries(const struct cuda_state *s)
{
	for (const struct object *o = s->objects; o; o = o->next)
		for (const struct object *c = s->objects; c; c = c->next)
			if (o->kind == CUDA_LIBRARY && c->kind == CUDA_CONTEXT &&
				load_library(o, c->real))
				return -1;
	return 0;
}

static int run(const struct cuda_state *s, const struct steps *steps)
{
	int r = 0;

	for (size_t i = 0; i < steps->count && !r; i++)
		r = take(s, &steps->list[i]);
	return r;
}

void cuda_enlist(struct cuda_state *s)
{
	memset(s->by_real, 0, sizeof(s->by_real));
	for (struct object *o = s->objects; o; o = o->next)
		object_enlist(s, o);
}

static int run_in_order(struct cuda_state *s, struct steps *steps)
{
	int r;

	qsort(steps->list, steps->count, sizeof(*steps->list), earlier);
	r = run(s, steps);
	if (!r)
		cuda_enlist(s);
	CUDA(cuCtxSetCurrent, (void *))(NULL); /* this thread has none of its own */
	return r;
}

/* Also of devices whose primary context has not been made yet. */
static int set_primary_flags(const struct cuda_state *s)
{
	for (unsigned i = 0; i < s->device_count; i++) {
		int r = s->devices[i].primary_flags_set
				? CUDA(cuDevicePrimaryCtxSetFlags_v2, (int, unsigned))(
					  i, s->devices[i].primary_flags)
				: 0;

		if (r)
			return cuda_failed("cuDevicePrimaryCtxSetFlags", r);
	}
	return 0;
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
	int r = set_primary_flags(s);

	move_numbers(s);
	for (struct object *o = s->objects; o && !r; o = o->next) {
		if (o->kind != CUDA_CONTEXT)
			continue;
		r = add_object(&steps, o);
	}
	if (!r)
		r = run_in_order(s, &steps);
	free(steps.list);
	return r;
}

int cuda_replay_objects(struct cuda_state *s)
{
	struct steps steps = {0};
	int r = add_managed(&steps, s->memory);

	for (struct object *o = s->objects; o && !r; o = o->next) {
		if (o->kind == CUDA_CONTEXT)
			continue;
		r = add_object(&steps, o);
	}
	if (!r)
		r = run_in_order(s, &steps);
	if (!r)
		r = load_libraries(s);
	CUDA(cuCtxSetCurrent, (void *))(NULL); /* this thread has none of its own */
	free(steps.list);
	return r;
}
