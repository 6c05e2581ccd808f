/* Objects: their memory, who lives, who dies with whom. */
#include "stubs/cuda/memory.h"
#include "stubs/cuda/objects.h"

#include <signal.h>

#include "stubs/cuda/graphs.h"
#include "stubs/cuda/linker.h"
#include "shared/raw.h"

STUB_HIDDEN uint64_t guarded_lock(uint32_t *lock)
{
	uint64_t all = ~0ul, mask = 0;

	raw(SYS_rt_sigprocmask, SIG_BLOCK, &all, &mask, 8); /* cannot fail */
	raw_lock(lock);
	return mask;
}

STUB_HIDDEN void guarded_unlock(uint32_t *lock, uint64_t mask)
{
	raw_unlock(lock);
	raw(SYS_rt_sigprocmask, SIG_SETMASK, &mask, 0, 8); /* cannot fail */
}

STUB_HIDDEN uint64_t state_lock(void)
{
	return guarded_lock(&CUDA_STATE->lock);
}

STUB_HIDDEN void state_unlock(uint64_t mask)
{
	guarded_unlock(&CUDA_STATE->lock, mask);
}

/* ---- memory ---- */

static unsigned power_class(uint64_t size)
{
	return size <= 64 ? 6 : 64 - __builtin_clzl(size - 1);
}

STUB_HIDDEN void *block_new(uint64_t size)
{
	unsigned n = power_class(size);
	uint64_t mask = state_lock();
	void **block = CUDA_STATE->blocks[n];

	if (block)
		CUDA_STATE->blocks[n] = *block;
	state_unlock(mask);
	if (!block)
		return records_alloc(1ul << n);
	raw_zero(block, size);
	return block;
}

STUB_HIDDEN void block_free(void *block, uint64_t size)
{
	unsigned n = power_class(size);
	uint64_t mask;

	if (!block)
		return;
	mask = state_lock();
	*(void **)block = CUDA_STATE->blocks[n];
	CUDA_STATE->blocks[n] = block;
	state_unlock(mask);
}

/* Under the lock. */
static struct object *take_dead(enum cuda_kind kind)
{
	struct cuda_state *s = CUDA_STATE;
	struct object *o = s->dead[kind];

	/* A handle that is used too late should not be of something new already. */
	if (s->dead_count[kind] < CUDA_DEAD_KEPT)
		return NULL;
	s->dead_count[kind]--;
	s->dead[kind] = o->next;
	return o;
}

static void put_dead(struct object *o)
{
	struct cuda_state *s = CUDA_STATE;

	o->real = (void *)CUDA_DEAD;
	o->next = NULL;
	s->dead_count[o->kind]++;
	if (s->dead_end[o->kind])
		s->dead_end[o->kind]->next = o;
	else
		s->dead[o->kind] = o;
	s->dead_end[o->kind] = o;
}

STUB_HIDDEN struct object *object_new(enum cuda_kind kind, unsigned flags)
{
	uint64_t mask = state_lock();
	struct object *o = take_dead(kind);

	state_unlock(mask);
	if (!o)
		o = records_alloc(sizeof(*o));
	if (!o)
		return NULL;
	*o = (struct object){
		.real = (void *)CUDA_DEAD, .kind = kind, .flags = flags, .size = sizeof(*o)};
	return o;
}

STUB_HIDDEN void object_drop(struct object *o)
{
	uint64_t mask;

	if (!o)
		return;
	call_free(o->made);
	mask = state_lock();
	put_dead(o);
	state_unlock(mask);
}

/* ---- who dies with whom ---- */

/* cuCtxDestroy() lists what goes with a context. (Graphs, which do not, are made in graphs.c, without one.) */
STUB_HIDDEN void *object_context(enum cuda_kind kind, void *current)
{
	switch (kind) {
	case CUDA_LIBRARY:
	case CUDA_KERNEL:
	case CUDA_USER_OBJECT:
	case CUDA_GREEN_CONTEXT:
	case CUDA_RESOURCE_DESCRIPTION:
	case CUDA_ASYNC_CALLBACK:
	case CUDA_LOG_CALLBACK:
		return NULL;
	default:
		return current;
	}
}

/* Made of something is not part of it: an executable graph and a clone outlive their graph, a
 * graph the stream that was captured, a stream its green context. */
STUB_HIDDEN struct object *object_whole(enum cuda_kind kind, struct object *from)
{
	switch (from ? from->kind : 0) {
	case CUDA_MODULE:
	case CUDA_LIBRARY:
	case CUDA_KERNEL:
	case CUDA_FUNCTION: /* its module, if nothing else has led there */
	case CUDA_ARRAY:    /* its planes */
	case CUDA_MIPMAPPED_ARRAY:
		return from;
	case CUDA_GREEN_CONTEXT:
		return kind == CUDA_CONTEXT ? from : NULL;
	default:
		return NULL;
	}
}

/* ---- living and dying ---- */

/* Under the lock. */
static struct object *find_object(enum cuda_kind kind, const void *real)
{
	struct object *o = CUDA_STATE->by_real[object_list(kind, real)];

	while (o && (o->kind != kind || o->real != real || o->flags & CUDA_OBJECT_GOING))
		o = o->alike;
	return o;
}

/* Under the lock. */
static void make_live(struct object *o, void *real)
{
	struct cuda_state *s = CUDA_STATE;

	o->sequence = object_sequence();
	if (o->made)
		o->made->sequence = o->sequence;
	o->previous = s->objects_end;
	o->next = NULL;
	if (o->previous)
		o->previous->next = o;
	else
		s->objects = o;
	s->objects_end = o;
	s->alive[o->kind]++;
	s->graphs_launchable |= o->kind == CUDA_GRAPH_EXEC;
	o->real = real;
	object_enlist(s, o);
}

STUB_HIDDEN void object_live(struct object *o, void *real)
{
	uint64_t mask = state_lock();

	make_live(o, real);
	state_unlock(mask);
}

STUB_HIDDEN struct object *object_live_once(struct object *o, void *real)
{
	uint64_t mask = state_lock();
	struct object *known = find_object(o->kind, real);

	if (!known)
		make_live(o, real);
	state_unlock(mask);
	if (!known)
		return o;
	object_drop(o);
	return known;
}

STUB_HIDDEN struct object *object_find(enum cuda_kind kind, const void *real)
{
	uint64_t mask = state_lock();
	struct object *o = find_object(kind, real);

	state_unlock(mask);
	return o;
}

/* What the dead leave to be freed, when the lock has been given back. */
struct left {
	struct cuda_call *calls;
	struct cuda_global *globals;
	struct graph_state *graphs;
	struct linker_state *linkers;
};

static int is_graph(const struct object *o)
{
	return o->kind == CUDA_GRAPH || o->kind == CUDA_GRAPH_EXEC;
}

/* Under the lock. */
static void unlink_object(struct object *o, struct left *left)
{
	struct cuda_state *s = CUDA_STATE;
	struct object **at = &s->by_real[o->list];
	struct cuda_global *global;
	struct cuda_call *call;

	while (*at != o)
		at = &(*at)->alike;
	*at = o->alike;
	*(o->previous ? &o->previous->next : &s->objects) = o->next;
	*(o->next ? &o->next->previous : &s->objects_end) = o->previous;
	s->alive[o->kind]--;
	while ((call = o->changes)) {
		o->changes = call->next;
		call->next = left->calls;
		left->calls = call;
	}
	while ((global = o->globals)) {
		o->globals = global->next;
		global->next = left->globals;
		left->globals = global;
	}
	if (o->made) {
		o->made->next = left->calls;
		left->calls = o->made;
		o->made = NULL;
	}
	if (is_graph(o) && o->value) {
		graph_state(o)->next = left->graphs;
		left->graphs = graph_state(o);
	}
	if (o->kind == CUDA_LINKER && o->value) {
		struct linker_state *linker = (struct linker_state *)o->value;

		linker->next = left->linkers;
		left->linkers = linker;
	}
	put_dead(o);
}

static int has_parts(const struct object *o)
{
	return o->kind != CUDA_STREAM && o->kind != CUDA_EVENT && o->kind != CUDA_FUNCTION;
}

/* Under the lock. A graph that was moved into another one may be older than what it is part of: so it is
 * asked of all that @o is part of. */
static int is_orphan(const struct object *o)
{
	for (const struct object *whole = o->parent; whole; whole = whole->parent)
		if (is_dead(whole->real))
			return 1;
	return 0;
}

/* Under the lock: all that has died as its parent has. Parts are younger than the whole, as a rule. */
static void kill_orphans(struct object *from, struct left *left)
{
	struct object *next;

	for (struct object *o = from; o; o = next) {
		next = o->next;
		if (is_orphan(o))
			unlink_object(o, left);
	}
}

static void free_graph(struct graph_state *state)
{
	struct graph_capture *capture;

	while ((capture = state->captures)) {
		state->captures = capture->next;
		block_free(capture, capture->size);
	}
	if (state->pairs)
		block_free(state->pairs, state->pair_bytes);
	if (state->disabled)
		block_free(state->disabled, state->disabled_bytes);
	if (state->handles)
		block_free(state->handles, state->handle_bytes);
	graph_free_conditionals(&state->conditionals);
	graph_free_conditionals(&state->update_conditionals);
	graph_memory_gone(state);
	user_objects_drop(state);
	block_free(state, sizeof(*state));
}

static void free_left(struct left *left)
{
	struct linker_state *linker;
	struct graph_state *graph;
	struct cuda_global *global;
	struct cuda_call *call;

	while ((call = left->calls)) {
		left->calls = call->next;
		call_free(call);
	}
	while ((global = left->globals)) {
		left->globals = global->next;
		block_free(global->data, global->data_size);
		block_free(global, global->size_of_this);
	}
	while ((graph = left->graphs)) {
		left->graphs = graph->next;
		free_graph(graph);
	}
	while ((linker = left->linkers)) {
		left->linkers = linker->next;
		linker_free(linker);
	}
}

/* A graph may have been moved into it. */
static int has_older_parts(const struct object *o)
{
	return o->kind == CUDA_GRAPH || o->flags & CUDA_OBJECT_ADOPTS;
}

static int is_inside(const struct object *o, const struct object *whole)
{
	while (o && o != whole)
		o = o->parent;
	return o != NULL;
}

STUB_HIDDEN void object_set_going(struct object *whole, int is_going)
{
	uint64_t mask = state_lock();
	struct object *o = has_older_parts(whole) ? CUDA_STATE->objects : whole;

	for (; o; o = o->next) {
		if (!is_inside(o, whole))
			continue;
		if (is_going)
			__atomic_or_fetch(&o->flags, CUDA_OBJECT_GOING, __ATOMIC_RELAXED);
		else
			__atomic_and_fetch(&o->flags, ~CUDA_OBJECT_GOING, __ATOMIC_RELAXED);
	}
	state_unlock(mask);
}

/* Under the lock: what was made in a green context's context survives it, but could not
 * be made again. */
static void detach_from_green(const struct object *green)
{
	for (struct object *c = CUDA_STATE->objects; c; c = c->next)
		for (struct object *o = c->parent == green ? CUDA_STATE->objects : NULL; o;
			o = o->next)
			if (o->context == c->real)
				o->flags |= CUDA_OBJECT_LOST;
}

STUB_HIDDEN void object_kill(struct object *o)
{
	struct left left = {0};
	struct object *after;
	uint64_t mask;

	if (!o)
		return;
	mask = state_lock();
	if (o->kind == CUDA_GREEN_CONTEXT)
		detach_from_green(o);
	after = o->next;
	unlink_object(o, &left);
	if (has_older_parts(o))
		after = CUDA_STATE->objects;
	if (has_parts(o))
		kill_orphans(after, &left);
	state_unlock(mask);
	free_left(&left);
}

/* Under the lock: changes made with @context current, of cuda_info[index] or (UINT32_MAX) any.
 */
static void drop_changes(
	struct object *o, unsigned index, const void *context, struct left *left)
{
	struct cuda_call **at = &o->changes, *call;

	while ((call = *at)) {
		if (call->context != context || (index != UINT32_MAX && call->index != index)) {
			at = &call->next;
			continue;
		}
		*at = call->next;
		call->next = left->calls;
		left->calls = call;
	}
}

/* Under the lock: what a library had in @context. */
static void drop_globals(struct object *o, const void *context, struct left *left)
{
	struct cuda_global **at = &o->globals, *global;

	while ((global = *at)) {
		if (global->context != context) {
			at = &global->next;
			continue;
		}
		*at = global->next;
		global->next = left->globals;
		left->globals = global;
	}
}

STUB_HIDDEN void objects_kill_context(void *context)
{
	struct left left = {0};
	uint64_t mask = state_lock();
	struct object *next;

	for (struct object *o = CUDA_STATE->objects; o; o = next) {
		next = o->next;
		if (o->context == context) {
			unlink_object(o, &left);
			continue;
		}
		drop_globals(o, context, &left);
		if (o->kind == CUDA_CONTEXT) /* access between the two */
			drop_changes(o, UINT32_MAX, context, &left);
	}
	kill_orphans(CUDA_STATE->objects, &left);
	state_unlock(mask);
	free_left(&left);
	memory_context_gone(context);
}

/* ---- changes ---- */

/* Whether @b makes @a needless: they differ in the value that is set, if at all. */
static int replaces_call(const struct cuda_call *a, const struct cuda_call *b, int value)
{
	const struct call_info *info = &cuda_info[a->index];

	if (a->index != b->index)
		return 0;
	for (int i = 0; i < info->param_count; i++) {
		const struct call_param *p = &info->params[i];
		uint64_t mask = p->size >= 8 || p->stars ? ~0ul : (1ul << p->size * 8) - 1;

		if (i != value && (a->arguments[p->word] ^ b->arguments[p->word]) & mask)
			return 0;
	}
	return 1;
}

STUB_HIDDEN void object_change(struct object *o, struct cuda_call *call, int value)
{
	uint64_t mask = state_lock();
	struct cuda_call **at = &o->changes, *old = NULL;

	while (*at) {
		if (!old && replaces_call(*at, call, value)) {
			old = *at;
			*at = old->next;
			continue;
		}
		at = &(*at)->next;
	}
	call->sequence = object_sequence();
	call->next = NULL;
	*at = call;
	state_unlock(mask);
	call_free(old);
}

STUB_HIDDEN void object_unchange(struct object *o, unsigned index, const void *context)
{
	struct left left = {0};
	uint64_t mask;

	if (!o)
		return;
	mask = state_lock();
	drop_changes(o, index, context, &left);
	state_unlock(mask);
	free_left(&left);
}

STUB_HIDDEN int object_lost(enum cuda_kind kind, void *real)
{
	struct object *o = object_new(kind, CUDA_OBJECT_REAL | CUDA_OBJECT_LOST);

	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	o->context = object_context(kind, current_context());
	object_live(o, real);
	return 0;
}

STUB_HIDDEN void object_used(struct object *o)
{
	uint32_t before = __atomic_fetch_or(&o->flags, CUDA_OBJECT_USED, __ATOMIC_RELAXED);

	if (!(before & CUDA_OBJECT_USED) && !is_dead(o->real))
		o->used = object_sequence();
}
