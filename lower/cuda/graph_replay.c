/*
 * Graphs after a restart: made again by the calls that add nodes, from what the driver said of
 * them before the checkpoint. Then it is asked again and compared. Executable graphs are
 * instantiated from their snapshots.
 */
#include <stdlib.h>
#include <string.h>

#include "lower/cuda/saved_graphs.h"
#include "lower/cuda/growing_list.h"
#include "lower/records_alloc.h"
#include "shared/cuda/array_params.h"

static int set_current(void *context)
{
	int r = CUDA(cuCtxSetCurrent, (void *))(context);

	return r ? cuda_failed("cuCtxSetCurrent", r) : 0;
}

/* ---- nodes ---- */

#define NO_DEPENDENCIES NULL, 0

/* Calls that add nodes take their parameters by address, or are given a handle. */
typedef int add_function(
	void **node, void *graph, void *const *dependencies, size_t count, const void *params);

static int add_by(const char *name, void *graph, struct graph_node *n, const void *params)
{
	add_function *add = (add_function *)cuda_function(name);
	int r = add(&n->made, graph, NO_DEPENDENCIES, params);

	return r ? cuda_failed(name, r) : 0;
}

static int set_attribute(void *node, const struct graph_attribute *a)
{
	uint64_t value[8] = {0};
	int r = CUDA(cuGraphKernelNodeGetAttribute, (void *, int, void *))(node, a->id, value);

	if (!r && !memcmp(value, a->value, sizeof(value)))
		return 0;
	r = CUDA(cuGraphKernelNodeSetAttribute, (void *, int, const void *))(
		node, a->id, a->value);
	return r ? cuda_failed("cuGraphKernelNodeSetAttribute", r) : 0;
}

static int get_function(const struct graph_node *n, void **function)
{
	int r = 0;

	*function = n->handle->real;
	if (n->function_of_kernel)
		r = CUDA(cuKernelGetFunction, (void **, void *))(function, n->handle->real);
	return r ? cuda_failed("cuKernelGetFunction", r) : 0;
}

static int add_kernel(void *graph, struct graph_node *n)
{
	struct graph_kernel k = n->params.kernel;
	int r = n->context ? set_current(n->context) : 0;

	if (r)
		return r;
	if (!k.function)
		k.kernel = n->handle->real;
	else if (get_function(n, &k.function))
		return -1;
	else
		k.kernel = n->kernel ? n->kernel->real : NULL;
	r = add_by("cuGraphAddKernelNode_v2", graph, n, &k);
	for (uint32_t i = 0; i < n->attribute_count && !r; i++)
		r = set_attribute(n->made, &n->attributes[i]);
	return r;
}

static void lower_side(struct graph_memcpy_side *side)
{
	if (side->type == COPY_OF_ARRAY)
		side->array = ((const struct object *)side->array)->real;
}

static int add_copy(void *graph, struct graph_node *n)
{
	struct graph_memcpy copy = n->params.copy;
	int r;

	lower_side(&copy.from);
	lower_side(&copy.to);
	r = CUDA(cuGraphAddMemcpyNode,
		(void **, void *, void *const *, size_t, const struct graph_memcpy *, void *))(
		&n->made, graph, NO_DEPENDENCIES, &copy, n->context);

	return r ? cuda_failed("cuGraphAddMemcpyNode", r) : 0;
}

static int add_set(void *graph, struct graph_node *n)
{
	int r = CUDA(cuGraphAddMemsetNode,
		(void **, void *, void *const *, size_t, const struct graph_memset *, void *))(
		&n->made, graph, NO_DEPENDENCIES, &n->params.set, n->context);

	return r ? cuda_failed("cuGraphAddMemsetNode", r) : 0;
}

static int add_empty(void *graph, struct graph_node *n)
{
	int r = CUDA(cuGraphAddEmptyNode, (void **, void *, void *const *, size_t))(
		&n->made, graph, NO_DEPENDENCIES);

	return r ? cuda_failed("cuGraphAddEmptyNode", r) : 0;
}

/* ---- graphs ---- */

static int make_graph(const struct graph_record *g, void **graph);
static int fill_graph(const struct graph_record *g, void *graph);
static int compare_graph(const struct graph_record *g);

static int destroy_graph(void *graph)
{
	int r = CUDA(cuGraphDestroy, (void *))(graph);

	return r ? cuda_failed("cuGraphDestroy", r) : 0;
}

/* A node has a clone of the graph that it is given, with the nodes in their order. */
static int rename_nodes(const struct graph_record *g, void *graph);

static int take_child(const struct graph_node *n)
{
	void *graph = NULL;
	int r = CUDA(cuGraphChildGraphNodeGetGraph, (void *, void **))(n->made, &graph);

	if (r)
		return cuda_failed("cuGraphChildGraphNodeGetGraph", r);
	if (n->inner[0]->object)
		n->inner[0]->object->real = graph;
	return rename_nodes(n->inner[0], graph) || compare_graph(n->inner[0]) ? -1 : 0;
}

static int rename_nodes(const struct graph_record *g, void *graph)
{
	void **nodes;
	size_t count;
	int r = graph_nodes(graph, &nodes, &count);

	if (!r && count != g->count)
		r = agent_fail("a child graph has %zu nodes here, it had %lu", count, g->count);
	for (uint64_t i = 0; i < g->count && !r; i++) {
		g->nodes[i].made = nodes[i];
		if (g->nodes[i].type == GRAPH_CHILD)
			r = take_child(&g->nodes[i]);
	}
	free(nodes);
	return r;
}

static int add_child(void *graph, struct graph_node *n)
{
	void *child = NULL;

	if (make_graph(n->inner[0], &child) ||
		add_by("cuGraphAddChildGraphNode", graph, n, child))
		return -1;
	return take_child(n) || destroy_graph(child) ? -1 : 0;
}

/* CUgraphNodeParams of a conditional node */
struct conditional_params {
	uint32_t node_type, reserved[3];
	uint64_t handle;
	uint32_t type, count;
	void **graphs, *context;
	uint64_t rest[26];
};
_Static_assert(sizeof(struct conditional_params) == 256, "");

static int add_conditional(void *graph, struct graph_node *n)
{
	struct graph_conditional *c = n->conditional;
	struct conditional_params p = {.node_type = GRAPH_CONDITIONAL,
		.handle = c->handle,
		.type = c->type,
		.count = c->count,
		.context = c->context};
	int r = set_current(c->context);

	if (r)
		return r;
	r = CUDA(cuGraphAddNode_v2,
		(void **, void *, void *const *, const uint64_t *, size_t, void *))(
		&n->made, graph, NULL, NO_DEPENDENCIES, &p);
	if (r)
		return cuda_failed("cuGraphAddNode", r);
	c->node = n->made;
	for (uint32_t i = 0; i < c->count && !r; i++) {
		*graph_body(c, i) = p.graphs[i];
		r = fill_graph(n->inner[i], p.graphs[i]);
	}
	return r;
}

static int add_node(void *graph, struct graph_node *n)
{
	switch (n->type) {
	case GRAPH_KERNEL:
		return add_kernel(graph, n);
	case GRAPH_MEMCPY:
		return add_copy(graph, n);
	case GRAPH_MEMSET:
		return add_set(graph, n);
	case GRAPH_HOST:
		return add_by("cuGraphAddHostNode", graph, n, &n->params.host);
	case GRAPH_CHILD:
		return add_child(graph, n);
	case GRAPH_EMPTY:
		return add_empty(graph, n);
	case GRAPH_WAIT_EVENT:
		return add_by("cuGraphAddEventWaitNode", graph, n, n->handle->real);
	case GRAPH_EVENT_RECORD:
		return add_by("cuGraphAddEventRecordNode", graph, n, n->handle->real);
	case GRAPH_BATCH_MEM_OP:
		return add_by("cuGraphAddBatchMemOpNode", graph, n, &n->params.batch);
	case GRAPH_CONDITIONAL:
		return add_conditional(graph, n);
	default:
		return agent_fail("a node of kind %u in a CUDA graph", n->type);
	}
}

/* ---- edges ---- */

static int has_data(const struct graph_node *n)
{
	for (uint32_t i = 0; i < n->dependency_count; i++)
		if (n->edges[i])
			return 1;
	return 0;
}

static int add_dependencies(void *graph, void **from, void **to, const struct graph_node *n)
{
	if (!has_data(n))
		return CUDA(cuGraphAddDependencies, (void *, void **, void **, size_t))(
			graph, from, to, n->dependency_count);
	return CUDA(cuGraphAddDependencies_v2,
		(void *, void **, void **, const uint64_t *, size_t))(
		graph, from, to, n->edges, n->dependency_count);
}

/* Those to one node at a time, in their order. */
static int add_edges(const struct graph_record *g, void *graph, const struct graph_node *n)
{
	void **from = calloc(n->dependency_count, sizeof(*from)),
	     **to = calloc(n->dependency_count, sizeof(*to));
	int r = from && to ? 0 : 2;

	for (uint32_t i = 0; i < n->dependency_count && !r; i++) {
		from[i] = g->nodes[n->dependencies[i]].made;
		to[i] = n->made;
	}
	if (!r)
		r = add_dependencies(graph, from, to, n);
	free(from);
	free(to);
	return r ? cuda_failed("cuGraphAddDependencies", r) : 0;
}

struct edge {
	uint32_t from;
	uint64_t data;
};

static int by_from(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

static struct edge *sorted_edges(const uint32_t *list, const uint64_t *data, size_t count)
{
	struct edge *e = calloc(count + 1, sizeof(*e));

	for (size_t i = 0; e && i < count; i++) {
		e[i].from = list[i];
		e[i].data = data[i];
	}
	if (e)
		qsort(e, count, sizeof(*e), by_from);
	return e;
}

static int is_same(const struct graph_node *n, const uint32_t *list, const uint64_t *data)
{
	struct edge *was = sorted_edges(n->dependencies, n->edges, n->dependency_count),
		    *is = sorted_edges(list, data, n->dependency_count);
	int same = was && is && !memcmp(was, is, n->dependency_count * sizeof(*was));

	free(was);
	free(is);
	return same;
}

static int compare_node(const struct graph_node *n, const struct graph_index *index)
{
	uint32_t type = ~0u, *list = NULL;
	uint64_t *data = NULL;
	long count = graph_edges(n->made, index, &list, &data);
	int r = count < 0 ? -1 : CUDA(cuGraphNodeGetType, (void *, uint32_t *))(n->made, &type);

	if (!r && (type != n->type || count != n->dependency_count || !is_same(n, list, data)))
		r = agent_fail("a node of a CUDA graph is not what it was at the checkpoint");
	free(list);
	free(data);
	return r;
}

static int compare_graph(const struct graph_record *g)
{
	void **nodes = calloc(g->count + 1, sizeof(*nodes));
	struct graph_index *index;
	int r;

	for (uint64_t i = 0; nodes && i < g->count; i++)
		nodes[i] = g->nodes[i].made;
	index = nodes ? graph_index_new(nodes, g->count) : NULL;
	r = index ? 0 : -1;
	for (uint64_t i = 0; i < g->count && !r; i++)
		r = compare_node(&g->nodes[i], index);
	free(nodes);
	graph_index_free(index);
	return r;
}

static int fill_graph(const struct graph_record *g, void *graph)
{
	int r = g->object ? user_objects_retain(graph_state(g->object), graph) : 0;

	for (uint64_t i = 0; i < g->count && !r; i++)
		r = add_node(graph, &g->nodes[i]);
	for (uint64_t i = 0; i < g->count && !r; i++)
		if (g->nodes[i].dependency_count)
			r = add_edges(g, graph, &g->nodes[i]);
	return r ? r : compare_graph(g);
}

static int create_graph(void **graph)
{
	int r = CUDA(cuGraphCreate, (void **, unsigned))(graph, 0);

	return r ? cuda_failed("cuGraphCreate", r) : 0;
}

static int make_graph(const struct graph_record *g, void **graph)
{
	return create_graph(graph) || fill_graph(g, *graph) ? -1 : 0;
}

/* Kernels have them among their arguments. */
static int make_handles(const struct graph_state *state, void *graph)
{
	for (uint64_t i = 0; i < state->handle_count; i++) {
		const struct graph_handle *h = &state->handles[i];
		uint64_t handle = 0;
		int r = CUDA(cuGraphConditionalHandleCreate,
			(uint64_t *, void *, void *, unsigned, unsigned))(
			&handle, graph, h->context, h->value, h->flags);

		if (r)
			return cuda_failed("cuGraphConditionalHandleCreate", r);
		if (handle != i + 1)
			return agent_fail("the driver here has other handles for conditional "
					  "nodes of CUDA graphs: %lu, it was %lu",
				handle, i + 1);
	}
	return 0;
}

/* ---- what the program holds ---- */

static void take_nodes(const struct graph_record *g)
{
	for (uint64_t i = 0; i < g->count; i++) {
		const struct graph_node *n = &g->nodes[i];

		if (n->object)
			n->object->real = n->made;
		if (n->memory)
			n->memory->node = n->made;
		for (uint64_t j = 0; j < n->inner_count; j++)
			take_nodes(n->inner[j]);
	}
}

static int disable_nodes(
	void *executable, const struct graph_record *g, struct graph_state *state)
{
	int r = 0;

	for (uint64_t i = 0; i < g->count && !r; i++) {
		const struct graph_node *n = &g->nodes[i];

		if (n->disabled) {
			state->disabled[state->disabled_count++] = n->made;
			r = CUDA(cuGraphNodeSetEnabled, (void *, void *, unsigned))(
				executable, n->made, 0);
			if (r)
				return cuda_failed("cuGraphNodeSetEnabled", r);
		}
		for (uint64_t j = 0; j < n->inner_count && !r; j++)
			r = disable_nodes(executable, n->inner[j], state);
	}
	return r;
}

static int instantiate_graph(const struct graph_saved *saved, void *snapshot)
{
	struct graph_state *state = graph_state(saved->object);
	void *executable = NULL;
	int r;

	if (user_objects_retain(state, snapshot))
		return -1;
	r = CUDA(cuGraphInstantiateWithFlags, (void **, void *, uint64_t))(
		&executable, snapshot, saved->flags);
	if (r)
		return cuda_failed("cuGraphInstantiate", r);
	if (user_objects_release(state, snapshot))
		return -1;
	saved->object->real = executable;
	state->snapshot = snapshot;
	state->update = NULL;
	state->disabled_count = 0;
	return disable_nodes(executable, saved->graph, state);
}

static int replay_graph(const struct cuda_state *s, const struct graph_saved *saved)
{
	struct graph_state *state = graph_state(saved->object);
	void *graph = NULL;

	for (struct graph_conditional *c = state->conditionals; c; c = c->next)
		c->node = NULL;
	for (struct graph_conditional *c = state->update_conditionals; c; c = c->next)
		c->node = NULL;
	if (set_current(cuda_context_of(s, saved->object)) || create_graph(&graph) ||
		make_handles(state, graph) || fill_graph(saved->graph, graph))
		return -1;
	if (saved->object->kind == CUDA_GRAPH_EXEC)
		return instantiate_graph(saved, graph);
	saved->object->real = graph;
	take_nodes(saved->graph);
	return 0;
}

/* ---- what was cloned from what ---- */

/* All nodes that clones may have been made of: as they were, and are. */
struct renamed {
	struct graph_pair *list;
	size_t count, room;
};

static int add_renamed(struct renamed *all, const struct graph_record *g)
{
	for (uint64_t i = 0; i < g->count; i++) {
		const struct graph_node *n = &g->nodes[i];

		if (list_reserve(&all->list, all->count, &all->room, sizeof(*all->list),
			    "for nodes of CUDA graphs"))
			return -1;
		all->list[all->count++] = (struct graph_pair){n->real, n->made};
		for (uint64_t j = 0; j < n->inner_count; j++)
			if (add_renamed(all, n->inner[j]))
				return -1;
	}
	return 0;
}

static int by_node(const void *a, const void *b)
{
	const struct graph_pair *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

static uint64_t count_origins(const struct graph_record *g)
{
	uint64_t count = 0;

	for (uint64_t i = 0; i < g->count; i++) {
		count += g->nodes[i].origin != NULL;
		for (uint64_t j = 0; j < g->nodes[i].inner_count; j++)
			count += count_origins(g->nodes[i].inner[j]);
	}
	return count;
}

static void add_pairs(
	struct graph_state *state, const struct graph_record *g, const struct renamed *all)
{
	for (uint64_t i = 0; i < g->count; i++) {
		const struct graph_node *n = &g->nodes[i];
		const struct graph_pair key = {.from = n->origin}, *now = NULL;

		if (n->origin && all->count)
			now = bsearch(&key, all->list, all->count, sizeof(key), by_node);
		if (now)
			state->pairs[state->pair_count++] =
				(struct graph_pair){now->to, n->made};
		for (uint64_t j = 0; j < n->inner_count; j++)
			add_pairs(state, n->inner[j], all);
	}
}

/* A block that the program's half can give back: a power of two. */
static int make_room(struct graph_state *state, uint64_t count)
{
	uint64_t bytes = 64;

	while (bytes < count * sizeof(*state->pairs))
		bytes *= 2;
	if (bytes <= state->pair_bytes)
		return 0;
	state->pairs = records_alloc(bytes);
	if (!state->pairs)
		return agent_fail("no memory for records of CUDA graphs");
	state->pair_bytes = bytes;
	return 0;
}

static int pair_clones(const struct graph_saved *saved, const struct renamed *all)
{
	struct graph_state *state = graph_state(saved->object);

	if (!state->origin && saved->object->kind != CUDA_GRAPH_EXEC)
		return 0;
	state->restarted = 1;
	state->pair_count = 0;
	if (!graph_origin(state))
		return 0;
	if (make_room(state, count_origins(saved->graph)))
		return -1;
	add_pairs(state, saved->graph, all);
	return 0;
}

static int pair_all(const struct cuda_state *s)
{
	struct renamed all = {0};
	int r = 0;

	for (const struct graph_saved *g = s->graphs; g && !r; g = g->next)
		if (g->object->kind == CUDA_GRAPH)
			r = add_renamed(&all, g->graph);
	if (all.count)
		qsort(all.list, all.count, sizeof(*all.list), by_node);
	for (const struct graph_saved *g = s->graphs; g && !r; g = g->next)
		r = pair_clones(g, &all);
	free(all.list);
	return r;
}

/* ---- all of them ---- */

static int is_of_graphs(const struct object *o)
{
	return o->kind == CUDA_GRAPH || o->kind == CUDA_GRAPH_EXEC ||
	       o->kind == CUDA_GRAPH_NODE;
}

/* At a trial: handles that came out otherwise could not be exchanged among the arguments of kernels. */
int cuda_try_graphs(const struct cuda_state *s)
{
	int r = 0;

	for (const struct graph_saved *g = s->graphs; g && !r; g = g->next) {
		void *graph = NULL;

		if (!graph_state(g->object)->handle_count)
			continue;
		r = create_graph(&graph);
		if (!r)
			r = make_handles(graph_state(g->object), graph) || destroy_graph(graph);
	}
	return r;
}

int cuda_replay_graphs(struct cuda_state *s)
{
	int r;

	for (struct object *o = s->objects; o; o = o->next)
		if (is_of_graphs(o))
			o->real = NULL;
	r = user_objects_make(s);
	for (const struct graph_saved *g = s->graphs; g && !r; g = g->next)
		r = replay_graph(s, g);
	if (!r)
		r = user_objects_made(s) || pair_all(s) ? -1 : 0;
	for (const struct object *o = s->objects; o && !r; o = o->next)
		if (is_of_graphs(o) && !o->real)
			r = agent_fail("a part of a CUDA graph that the program holds is not "
				       "there any more");
	if (!r)
		cuda_enlist(s);
	CUDA(cuCtxSetCurrent, (void *))(NULL); /* this thread has none of its own */
	return r;
}
