/*
 * Everything that the program holds a handle of, made again in a fresh driver: the calls that
 * made it, those that changed it, and the loading of functions, all in the order they came in.
 * A driver that is asked the same in the same order gives the same addresses, and where it
 * must, that is verified.
 */
#include <stdlib.h>
#include <string.h>

#include "lower/cuda/cuda.h"
#include "stubs/calls.h"
#include "stubs/cuda/memory_state.h"

#include "stubs/cuda/index.inc"

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

/* The table's own words lead above by now. */
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

static int take(const struct cuda_state *s, const struct step *step)
{
	int r;

	if (step->kind == MANAGED)
		return cuda_make_managed(step->managed);
	cuda_wish_managed(step->object);
	r = step->kind == MAKE     ? make(s, step->object)
	    : step->kind == CHANGE ? change(s, step->call)
				   : load(s, step->object);
	cuda_wish_managed(NULL);
	return r;
}

static int run(const struct cuda_state *s, const struct steps *steps)
{
	int r = 0;

	for (size_t i = 0; i < steps->count && !r; i++)
		r = take(s, &steps->list[i]);
	return r;
}

static int is_first_context(const struct cuda_state *s, const struct object *context)
{
	if (context->kind != CUDA_CONTEXT)
		return 0;
	for (const struct object *o = s->objects; o != context; o = o->next)
		if (o->kind == CUDA_CONTEXT && cuda_device_of(o) == cuda_device_of(context))
			return 0;
	return 1;
}

static uint64_t first_of_contexts(const struct cuda_state *s)
{
	const struct object *o = s->objects;

	while (o && o->kind != CUDA_CONTEXT)
		o = o->next;
	return o ? o->sequence : 0;
}

/* Runtime libraries load their libraries then. */
static int is_before(const struct object *o, uint64_t contexts)
{
	return o->sequence < contexts && o->made && !o->made->context;
}

/* Lists are by the driver's handles, which are others now. */
static void enlist(struct cuda_state *s)
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
		enlist(s);
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

/* Memory is made with the first contexts of its devices, before all else is made in its order.
 */
int cuda_replay_contexts(struct cuda_state *s)
{
	uint64_t contexts = first_of_contexts(s);
	struct steps steps = {0};
	int r = set_primary_flags(s);

	move_numbers(s);
	for (struct object *o = s->objects; o && !r; o = o->next) {
		int first = is_first_context(s, o);

		if (first || is_before(o, contexts))
			r = add_made(&steps, o);
		if (first && !r)
			r = add_later(&steps, o);
	}
	if (!r)
		r = run_in_order(s, &steps);
	free(steps.list);
	return r;
}

int cuda_replay_objects(struct cuda_state *s)
{
	uint64_t contexts = first_of_contexts(s);
	struct steps steps = {0};
	int r = add_managed(&steps, s->memory);

	for (struct object *o = s->objects; o && !r; o = o->next) {
		if (is_first_context(s, o))
			continue;
		if (!is_before(o, contexts))
			r = add_made(&steps, o);
		if (!r)
			r = add_later(&steps, o);
	}
	if (!r)
		r = run_in_order(s, &steps);
	free(steps.list);
	return r;
}
