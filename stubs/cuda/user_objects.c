/*
 * User objects: the driver calls a function of the program's when the last reference to one goes. The driver cannot be asked
 * who has how many, so all are counted here as well, by the rules of NVIDIA's programming guide (CUDA User Objects): a clone and
 * an executable have as many as the graph that they are made of, an update exchanges those of the executable, and a graph that
 * is a node keeps its own. What is released while a graph still runs, the driver releases later: a checkpoint waits until
 * the destructor of an object without references has been called (lower/cuda/saved_user_objects.c). A restart makes objects and
 * references again.
 */
#include "stubs/cuda/graphs.h"

#include "cuda.index.h"

#define DOWN(name, ...) cuda_call_down(INDEX_##name, WORDS(__VA_ARGS__))

#define MOVE 1 /* CU_GRAPH_USER_OBJECT_MOVE */

/* ---- objects ---- */

static struct user_object *user_of(void *handle)
{
	const struct object *o = in_records_window((uintptr_t)handle) ? handle : NULL;

	return o && o->kind == CUDA_USER_OBJECT && !is_dead(o->real) ? (void *)o->value : NULL;
}

/* What the driver calls, on a thread where the program's functions run. No lock is taken: it may run at any time. */
static void call_destructor(void *data)
{
	struct user_object *u = data;

	__atomic_store_n(&u->end, USER_OBJECT_ENDS, __ATOMIC_RELEASE);
	((void (*)(void *))u->destroy)(u->data);
	__atomic_store_n(&u->end, USER_OBJECT_ENDED, __ATOMIC_RELEASE);
}

static uint64_t changed(uint64_t count, int64_t change)
{
	return change < 0 && count < (uint64_t)-change ? 0 : count + change;
}

/* The program's own references, and all: without any, the handle is no more. */
static void change_references(struct user_object *u, int64_t owned, int64_t total)
{
	uint64_t mask = state_lock();
	struct object *gone = NULL;

	u->owned = changed(u->owned, owned);
	u->total = changed(u->total, total);
	if (!u->total) {
		gone = u->object;
		u->object = NULL;
	}
	state_unlock(mask);
	object_kill(gone);
}

/* Those whose destructors have returned. */
static void free_ended(void)
{
	uint64_t mask = state_lock();
	struct user_object **at = &CUDA_STATE->user_objects, *ended = NULL, *u;

	while ((u = *at)) {
		if (u->total ||
			__atomic_load_n(&u->end, __ATOMIC_ACQUIRE) != USER_OBJECT_ENDED) {
			at = &u->next;
			continue;
		}
		*at = u->next;
		u->next = ended;
		ended = u;
	}
	state_unlock(mask);
	while ((u = ended)) {
		ended = u->next;
		block_free(u, sizeof(*u));
	}
}

static int create(void **object, struct user_object *u, struct object *o, unsigned flags)
{
	void *real = NULL;
	uint64_t mask;
	int r = DOWN(
		cuUserObjectCreate, WORD(&real), WORD(u), WORD(u->callback), u->owned, flags);

	if (r)
		return r;
	o->value = (uint64_t)u;
	object_live(o, real);
	mask = state_lock();
	u->next = CUDA_STATE->user_objects;
	CUDA_STATE->user_objects = u;
	state_unlock(mask);
	*object = o;
	return 0;
}

int body_cuUserObjectCreate(
	void **object, void *data, void *destroy, unsigned references, unsigned flags)
{
	struct user_object *u;
	struct object *o;
	int r;

	if (!state_usable() || !object || !destroy) /* the driver says what is wrong */
		return real_cuUserObjectCreate(
			object, data, crossing_callback_pointer(destroy), references, flags);
	free_ended();
	u = block_new(sizeof(*u));
	o = u ? object_new(CUDA_USER_OBJECT, 0) : NULL;
	r = o ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
	if (!r) {
		*u = (struct user_object){.object = o,
			.destroy = destroy,
			.data = data,
			.callback = crossing_callback_pointer((void *)call_destructor),
			.owned = references,
			.total = references};
		r = create(object, u, o, flags);
	}
	if (r) {
		object_drop(o);
		block_free(u, sizeof(*u));
	}
	return r;
}

int body_cuUserObjectRetain(void *object, unsigned count)
{
	struct user_object *u = user_of(object);
	int r = real_cuUserObjectRetain(object, count);

	if (!r && u)
		change_references(u, count, count);
	return r;
}

int body_cuUserObjectRelease(void *object, unsigned count)
{
	struct user_object *u = user_of(object);
	int r = real_cuUserObjectRelease(object, count);

	if (!r && u)
		change_references(u, -(int64_t)count, -(int64_t)count);
	return r;
}

/* ---- references of graphs ---- */

static int add_reference(struct graph_state *state, struct user_object *u, uint64_t count)
{
	struct user_reference *r = state->user_references;

	while (r && r->user != u)
		r = r->next;
	if (!r) {
		r = block_new(sizeof(*r));
		if (!r)
			return -1;
		*r = (struct user_reference){.next = state->user_references, .user = u};
		state->user_references = r;
	}
	r->count += count;
	return 0;
}

static void remove_reference(
	struct graph_state *state, const struct user_object *u, uint64_t count)
{
	struct user_reference **at = &state->user_references, *r;

	while (*at && (*at)->user != u)
		at = &(*at)->next;
	r = *at;
	if (!r)
		return;
	r->count = changed(r->count, -(int64_t)count);
	if (r->count)
		return;
	*at = r->next;
	block_free(r, sizeof(*r));
}

static void drop_references(struct user_reference *list)
{
	struct user_reference *r;

	while ((r = list)) {
		list = r->next;
		change_references(r->user, 0, -(int64_t)r->count);
		block_free(r, sizeof(*r));
	}
}

STUB_HIDDEN void user_objects_drop(struct graph_state *state)
{
	drop_references(state->user_references);
	state->user_references = NULL;
}

static int copy_references(struct graph_state *to, const struct graph_state *from)
{
	for (const struct user_reference *r = from->user_references; r; r = r->next) {
		if (add_reference(to, r->user, r->count))
			return -1;
		change_references(r->user, 0, r->count);
	}
	return 0;
}

/* The guide does not say whose the references of a graph in a conditional node are. */
static int is_conditional(const struct object *graph)
{
	for (const struct object *o = graph; o; o = o->parent)
		if (o->kind == CUDA_GRAPH_NODE && graph_node_type(o->real) == GRAPH_CONDITIONAL)
			return 1;
	return 0;
}

int body_cuGraphRetainUserObject(void *graph, void *object, unsigned count, unsigned flags)
{
	struct user_object *u = user_of(object);
	struct object *o;
	int r = real_cuGraphRetainUserObject(graph, object, count, flags);

	if (r || !u)
		return r;
	o = graph_argument(CUDA_GRAPH, graph);
	if (!o || add_reference(graph_state(o), u, count))
		__atomic_or_fetch(&u->object->flags, CUDA_OBJECT_LOST, __ATOMIC_RELAXED);
	else if (is_conditional(o))
		graph_lose(o, GRAPH_OF_USER_OBJECT);
	change_references(u, flags & MOVE ? -(int64_t)count : 0, flags & MOVE ? 0 : count);
	return 0;
}

int body_cuGraphReleaseUserObject(void *graph, void *object, unsigned count)
{
	struct user_object *u = user_of(object);
	struct object *o = graph_argument(CUDA_GRAPH, graph);
	int r = real_cuGraphReleaseUserObject(graph, object, count);

	if (r || !u)
		return r;
	if (o)
		remove_reference(graph_state(o), u, count);
	change_references(u, 0, -(int64_t)count);
	return 0;
}

/* ---- graphs with graphs inside ---- */

static int is_inside(const struct object *o, const struct object *graph)
{
	while (o && o != graph)
		o = o->parent;
	return o != NULL;
}

/* A graph with references that is @graph or inside it, behind @after (NULL: the first); NULL: there is no other. */
static const struct object *next_with_references(
	const struct object *after, const struct object *graph)
{
	uint64_t mask = state_lock();
	const struct object *o = after ? after->next : CUDA_STATE->objects;

	while (o && (o->kind != CUDA_GRAPH || !graph_state(o)->user_references ||
			    !is_inside(o, graph)))
		o = o->next;
	state_unlock(mask);
	return o;
}

STUB_HIDDEN int user_objects_are_in(const struct object *graph)
{
	return CUDA_STATE->user_objects && next_with_references(NULL, graph);
}

/* Those of @graph and of what is inside it, which nobody changes meanwhile. */
static int copy_all_references(struct graph_state *to, const struct object *graph)
{
	const struct object *o = NULL;

	while ((o = next_with_references(o, graph)))
		if (copy_references(to, graph_state(o)))
			return -1;
	return 0;
}

STUB_HIDDEN void user_objects_in_executable(struct object *o, const struct object *graph)
{
	struct graph_state *state = graph_state(o);
	struct user_reference *before = state->user_references;

	state->user_references = NULL;
	if (user_objects_are_in(graph) && copy_all_references(state, graph))
		graph_lose(o, GRAPH_OF_USER_OBJECT);
	drop_references(before);
}

/* What is done for each graph that is a node of one with references, and for the same in its clone. */
typedef int on_inner(const struct object *inner, void *node, void *graph, void *argument);

static int for_each_inner(void *from, void *to, on_inner *act, void *argument)
{
	struct graph_list a, b = {0};
	int r = graph_list_nodes(from, &a) || graph_list_nodes(to, &b) || a.count != b.count
			? -1
			: 0;

	for (size_t i = 0; i < a.count && !r; i++) {
		const struct object *inner = NULL;

		if (graph_node_type(a.list[i]) == GRAPH_CHILD)
			inner = object_find(CUDA_GRAPH, graph_child(a.list[i]));
		if (inner && user_objects_are_in(inner))
			r = act(inner, b.list[i], graph_child(b.list[i]), argument);
	}
	graph_free_list(&a);
	graph_free_list(&b);
	return r;
}

/* The clone's graph inside has as many; @argument is the graph, or the node, that it is part of. */
static int copy_to_inner(const struct object *inner, void *node, void *graph, void *argument)
{
	struct object *whole = argument, *o;

	if (whole->kind == CUDA_GRAPH)
		whole = graph_raise(CUDA_GRAPH_NODE, node, whole);
	o = in_records_window((uintptr_t)whole) ? graph_raise(CUDA_GRAPH, graph, whole) : NULL;
	if (!in_records_window((uintptr_t)o) ||
		copy_references(graph_state(o), graph_state(inner)))
		return -1;
	return for_each_inner(inner->real, graph, copy_to_inner, o);
}

STUB_HIDDEN void user_objects_cloned(struct object *clone, const struct object *graph)
{
	if (user_objects_are_in(graph) &&
		(copy_references(graph_state(clone), graph_state(graph)) ||
			for_each_inner(graph->real, clone->real, copy_to_inner, clone)))
		graph_lose(clone, GRAPH_OF_USER_OBJECT);
}

STUB_HIDDEN void user_objects_in_child(void *node, const struct object *child)
{
	struct object *o = in_records_window((uintptr_t)node) ? node : NULL;
	int r = 0;

	if (!user_objects_are_in(child))
		return;
	if (o)
		r = copy_to_inner(child, o->real, graph_child(o->real), o);
	else
		o = (struct object *)child; /* it was moved, with all it has */
	if (r || is_conditional(o))
		graph_lose(o, GRAPH_OF_USER_OBJECT);
}

/* ---- clones of ours ---- */

static int strip_inner(const struct object *inner, void *node, void *graph, void *argument)
{
	return user_objects_strip(graph, inner);
}

STUB_HIDDEN int user_objects_strip(void *clone, const struct object *graph)
{
	const struct user_reference *r;

	if (!user_objects_are_in(graph))
		return 0;
	for (r = graph_state(graph)->user_references; r; r = r->next)
		if (r->user->object && DOWN(cuGraphReleaseUserObject, WORD(clone),
					       WORD(r->user->object->real), r->count))
			return -1;
	return for_each_inner(graph->real, clone, strip_inner, NULL);
}
