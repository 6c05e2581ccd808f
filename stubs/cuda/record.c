/*
 * Calls that make objects, change or destroy them: the records that they leave. All are alike,
 * told apart by what the API table says of them (struct call_info).
 */
#include <string.h>

#include "shared/cuda/calls.h"
#include "shared/cuda/memory_state.h"
#include "shared/raw.h"
#include "stubs/cuda/graphs.h"
#include "stubs/cuda/linker.h"
#include "stubs/cuda/memory.h"
#include "stubs/cuda/objects.h"

#include "cuda.index.h"

STUB_HIDDEN int cuda_call_words(void **slot, const uint64_t words[CALL_WORDS]);
STUB_HIDDEN int cuda_record_call(
	unsigned index, const uint64_t registers[6], const uint64_t *stack);

STUB_HIDDEN void *current_context(void)
{
	void *context = NULL;

	return real_cuCtxGetCurrent(&context) ? NULL : context;
}

STUB_HIDDEN int cuda_call_down(unsigned index, const uint64_t *words)
{
	return cuda_call_words(&cuda_targets[index], words);
}

/* ---- records of calls ---- */

STUB_HIDDEN void call_free(struct cuda_call *call)
{
	if (call)
		block_free(call, call->size);
}

/* What a pointer leads to that must be kept; 0: nothing, or it stays where it is. */
static uint64_t bytes_to_keep(
	const struct call_info *info, const struct call_param *p, const uint64_t *arguments)
{
	if (!p->stars || !arguments[p->word])
		return 0;
	if (p->direction != API_IN && p->direction != API_INOUT && p->direction != API_STRING)
		return 0;
	if (p->length_kind == API_IMAGE)
		return image_bytes((const void *)arguments[p->word]);
	return call_bytes(info, p, arguments);
}

static uint64_t aligned_size(uint64_t size)
{
	return (size + 15) & ~15ul;
}

STUB_HIDDEN struct cuda_call *call_new(unsigned index, const uint64_t *arguments)
{
	const struct call_info *info = &cuda_info[index];
	uint64_t size = sizeof(struct cuda_call) + CALL_WORDS * sizeof(uint64_t), at = size;
	struct cuda_call *call;

	for (unsigned i = 0; i < info->param_count; i++)
		size += aligned_size(bytes_to_keep(info, &info->params[i], arguments));
	size += options_bytes(index, arguments);
	call = block_new(size);
	if (!call)
		return NULL;
	call->size = size;
	call->index = index;
	call->words = CALL_WORDS;
	call->context = current_context();
	raw_copy(call->arguments, arguments, CALL_WORDS * sizeof(uint64_t));
	for (unsigned i = 0; i < info->param_count; i++) {
		const struct call_param *p = &info->params[i];
		uint64_t bytes = bytes_to_keep(info, p, arguments);
		char *copy = (char *)call + at;

		if (!bytes)
			continue;
		if (p->length_kind == API_IMAGE)
			image_copy(copy, (const void *)arguments[p->word]);
		else
			raw_copy(copy, (const void *)arguments[p->word], bytes);
		call->arguments[p->word] = (uint64_t)copy;
		at += aligned_size(bytes);
	}
	options_filter(info, call->arguments);
	options_copy(index, call->arguments, (char *)call + at);
	return call;
}

/* ---- calls ---- */

struct performed {
	const struct call_info *info;
	unsigned index;
	const uint64_t *arguments; /* as the program gave them */
	uint64_t lowered[CALL_WORDS];
};

/* The object that a handle among the arguments stands for; NULL: none that we know of. */
static struct object *argument_object(const struct call_param *p, const uint64_t *arguments)
{
	void *handle = p ? (void *)arguments[p->word] : NULL;

	if (in_records_window((uintptr_t)handle))
		return handle;
	return handle ? object_find(p->object, handle) : NULL;
}

/* Part of something else that is there: the driver gives the same handle each time. */
static int is_looked_up(const struct call_info *info, const struct call_param *first)
{
	return first && (info->class == API_CREATE || info->class == API_PURE);
}

/* Whether what comes out as @out could not be made again. */
static int is_lost(
	const struct performed *p, const struct call_param *out, const struct object *from)
{
	return out->holding == API_LOST || options_have_lists(p->info, p->arguments) ||
	       (from && (from->kind == CUDA_GREEN_CONTEXT ||
				from->kind == CUDA_EXTERNAL_MEMORY));
}

/* The new object for what comes out as @out of a call; NULL: no memory. */
static struct object *new_object(struct performed *p, const struct call_param *out)
{
	struct object *from = argument_object(call_first_handle(p->info), p->arguments), *o;
	unsigned flags = out->holding == API_VIRTUAL ? 0 : CUDA_OBJECT_REAL;

	if (is_lost(p, out, from))
		flags |= CUDA_OBJECT_LOST;
	o = object_new(out->object, flags);
	if (!o)
		return NULL;
	if (out->holding != API_LOST) {
		o->made = call_new(p->index, p->arguments);
		if (!o->made) {
			object_drop(o);
			return NULL;
		}
	}
	o->context = object_context(o->kind, o->made ? o->made->context : current_context());
	o->parent = object_whole(o->kind, from);
	return o;
}

/* The program is given the same handle as before for what it has asked for before. That is what
 * libraries do all the time, so it takes no more than looking at what the driver says. */
static int perform_lookup(struct performed *p, const struct call_param *out)
{
	void *real = NULL, **given = (void **)p->arguments[out->word];
	struct object *o;
	int r;

	if (given)
		p->lowered[out->word] = (uint64_t)&real;
	r = cuda_call_down(p->index, p->lowered);
	if (r || !given)
		return r;
	o = real ? object_find(out->object, real) : NULL;
	if (real && !o) {
		o = new_object(p, out);
		if (!o)
			return CUDA_ERROR_OUT_OF_MEMORY;
		o = object_live_once(o, real);
	}
	if (out->object == CUDA_CONTEXT && o)
		o->context = real;
	*given = out->holding == API_VIRTUAL ? o : real;
	return 0;
}

static int perform_create(struct performed *p, const struct call_param *out)
{
	void *real = NULL, **given = (void **)p->arguments[out->word];
	struct object *o = new_object(p, out);
	int r;

	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (given)
		p->lowered[out->word] = (uint64_t)&real;
	r = cuda_call_down(p->index, p->lowered);
	if (r || !given) {
		object_drop(o);
		return r;
	}
	if (out->object == CUDA_CONTEXT)
		o->context = real;
	object_live(o, real);
	*given = out->holding == API_VIRTUAL ? o : real;
	return 0;
}

/* Addresses and sizes: what came out is kept, and must come out again. */
static int same_results(const struct cuda_call *a, const struct cuda_call *b)
{
	const struct call_info *info = &cuda_info[a->index];

	for (unsigned i = 0; i < info->param_count; i++) {
		const struct call_param *p = &info->params[i];

		if (p->direction == API_OUT && a->arguments[p->word] != b->arguments[p->word])
			return 0;
	}
	return 1;
}

static int is_known_address(const struct object *parent, const struct cuda_call *call)
{
	uint64_t mask = state_lock();
	const struct object *o = CUDA_STATE->alive[CUDA_ADDRESS] ? CUDA_STATE->objects : NULL;

	while (o && (o->kind != CUDA_ADDRESS || o->parent != parent ||
			    o->made->index != call->index || !same_results(o->made, call)))
		o = o->next;
	state_unlock(mask);
	return o != NULL;
}

static int perform_address(struct performed *p)
{
	struct object *o = object_new(CUDA_ADDRESS, CUDA_OBJECT_REAL);
	int r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!o)
		return r;
	o->made = call_new(p->index, p->arguments);
	if (o->made)
		r = cuda_call_down(p->index, p->lowered);
	if (!r) {
		o->context = o->made->context;
		o->parent = argument_object(call_first_handle(p->info), p->arguments);
		/* In the record, results stand in place of where they went to. */
		for (unsigned i = 0; i < p->info->param_count; i++) {
			const struct call_param *q = &p->info->params[i];
			uint64_t *word = &o->made->arguments[q->word], result = 0;

			if (!q->stars || q->direction != API_OUT || !*word)
				continue;
			raw_copy(&result, (void *)*word, call_bytes(p->info, q, p->arguments));
			*word = result;
		}
	}
	if (r || is_known_address(o->parent, o->made))
		object_drop(o);
	else
		object_live(o, NULL);
	return r;
}

static int perform_destroy(struct performed *p)
{
	const struct call_param *first = call_first_handle(p->info);
	struct object *o = argument_object(first, p->arguments);
	void *real = o ? o->real : NULL;
	int r;

	if (!o)
		return cuda_call_down(p->index, p->lowered);
	if (o->kind == CUDA_STREAM)
		memory_stream_gone(o);
	if (o->kind == CUDA_LINKER)
		linker_ends(o);
	/* Before the driver may give the same handle out again, to another thread. */
	o->real = (void *)CUDA_DEAD;
	r = cuda_call_down(p->index, p->lowered);
	o->real = real;
	if (r)
		return r;
	if (o->kind == CUDA_LINKER)
		linker_ended(o);
	if (o->kind == CUDA_CONTEXT)
		objects_kill_context(real);
	else
		object_kill(o);
	return 0;
}

/* Each context has a default stream, which is no object. */
static int is_default_stream(const struct call_param *p, const uint64_t *arguments)
{
	return p && p->object == CUDA_STREAM && arguments[p->word] <= (uintptr_t)STREAM_LEGACY;
}

/* ... and another for each thread. */
static int is_stream_of_thread(const struct performed *p, const struct call_param *first)
{
	const char *name = p->info->name;
	size_t length = strlen(name);
	void *stream;

	if (!first || first->object != CUDA_STREAM)
		return 0;
	stream = (void *)p->arguments[first->word];
	return stream == STREAM_PER_THREAD ||
	       (!stream && length > 5 && !strcmp(name + length - 5, "_ptsz"));
}

static int is_function(const struct call_param *p)
{
	return p && (p->object == CUDA_FUNCTION || p->object == CUDA_KERNEL);
}

/* What a call has changed. NULL: nothing that we know of. */
static struct object *changed_object(const struct performed *p, const struct cuda_call *call)
{
	const struct call_param *first = call_first_handle(p->info);

	if (is_stream_of_thread(p, first))
		return NULL;
	if (p->info->on_context || is_default_stream(first, p->arguments))
		return object_find(CUDA_CONTEXT, call->context);
	return argument_object(first, p->arguments);
}

/* A part of a graph, with which it goes; graphs are objects themselves. */
static int is_in_graph(const struct call_info *info)
{
	return info->params[0].kind == API_HANDLE && !info->params[0].holding;
}

STUB_HIDDEN int setting_lost(void *context, enum cuda_setting what)
{
	struct object *o = object_new(CUDA_SETTING, CUDA_OBJECT_REAL | CUDA_OBJECT_LOST);

	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	o->context = context;
	o->value = what;
	object_live_once(o, (char *)context + what); /* one of each */
	return 0;
}

STUB_HIDDEN void function_lost(void)
{
	int (*get_current)(void **) = (int (*)(void **))cuda_targets[INDEX_cuCtxGetCurrent];
	void *context = NULL;

	if (!state_usable() || get_current(&context) || !context ||
		object_find(CUDA_SETTING, (char *)context + CUDA_SETTING_FUNCTION))
		return;
	if (setting_lost(context, CUDA_SETTING_FUNCTION))
		CUDA_STATE->unknown_lost = 1;
}

/* Nobody would read a record of it, and of an executable graph there would be more with each
 * step. */
static int is_of_lost(const struct performed *p)
{
	const struct object *o = argument_object(call_first_handle(p->info), p->arguments);

	return o && o->flags & CUDA_OBJECT_REAL && o->flags & CUDA_OBJECT_LOST;
}

/* Of what that is no object of ours. */
static enum cuda_setting setting_of(const struct performed *p)
{
	const struct call_param *first = call_first_handle(p->info);

	return is_function(first) ? CUDA_SETTING_FUNCTION : CUDA_SETTING_STREAM;
}

static int perform_state(struct performed *p)
{
	struct cuda_call *call;
	struct object *o;
	int r;

	if (is_in_graph(p->info) || is_of_lost(p))
		return cuda_call_down(p->index, p->lowered);
	call = call_new(p->index, p->arguments);
	if (!call)
		return CUDA_ERROR_OUT_OF_MEMORY;
	o = changed_object(p, call);
	r = cuda_call_down(p->index, p->lowered);
	if (!r && o) {
		object_change(o, call, p->info->value);
		return 0;
	}
	if (!r)
		r = setting_lost(call->context, setting_of(p));
	call_free(call);
	return r;
}

static int perform_loss(struct performed *p)
{
	struct object *o = argument_object(call_first_handle(p->info), p->arguments);
	int r = cuda_call_down(p->index, p->lowered);

	if (!r && o)
		__atomic_or_fetch(&o->flags, CUDA_OBJECT_LOST, __ATOMIC_RELAXED);
	return r;
}

static int perform_call(struct performed *p)
{
	const struct call_param *out = call_out(p->info);

	if (p->info->loses)
		return perform_loss(p);
	if (p->info->class == API_DESTROY)
		return perform_destroy(p);
	if (p->info->class == API_STATE)
		return perform_state(p);
	if (!out)
		return perform_address(p);
	return is_looked_up(p->info, call_first_handle(p->info)) ? perform_lookup(p, out)
								 : perform_create(p, out);
}

/* Whatever context that is: the program may have a context that we do not know. */
static int concerns_contexts(const struct call_info *info)
{
	for (unsigned i = 0; i < info->param_count; i++)
		if (info->params[i].object == CUDA_CONTEXT ||
			info->params[i].object == CUDA_GREEN_CONTEXT)
			return 1;
	return info->on_context;
}

/* By the driver's handle of a function, as for function_lost(). */
static int has_strange(const struct performed *p)
{
	for (unsigned i = 0; i < p->info->param_count; i++) {
		const struct call_param *q = &p->info->params[i];
		uint64_t handle = p->arguments[q->word];

		if (!q->stars && is_function(q) && handle && !in_records_window(handle))
			return 1;
	}
	return 0;
}

STUB_HIDDEN int cuda_perform(unsigned index, const uint64_t *arguments)
{
	struct performed p = {
		.info = &cuda_info[index], .index = index, .arguments = arguments};
	int changes, r;

	if (!state_usable())
		return cuda_call_down(index, arguments); /* which will say why not */
	if (graph_concerns(p.info))
		return graph_call(index, arguments);
	if (call_lower(p.info, arguments, p.lowered) < 0)
		return CUDA_ERROR_INVALID_HANDLE;
	changes = concerns_contexts(p.info);
	if (changes && p.info->class == API_DESTROY)
		snapshot_wait();
	if (changes)
		query_cache_invalidate();
	do
		r = perform_call(&p);
	while (r == CUDA_ERROR_OUT_OF_MEMORY && snapshot_wait());
	if (changes)
		query_cache_invalidate();
	return r || !has_strange(&p) ? r
				     : setting_lost(current_context(), CUDA_SETTING_FUNCTION);
}

STUB_HIDDEN int cuda_record_call(
	unsigned index, const uint64_t registers[6], const uint64_t *stack)
{
	uint64_t arguments[CALL_WORDS] = {0};

	call_take_arguments(&cuda_info[index], registers, stack, arguments);
	return cuda_perform(index, arguments);
}
