/*
 * Graphs before a checkpoint: the driver is asked for the nodes of each, for their parameters
 * and for what they depend on. Of an executable graph it is asked for the snapshot
 * (shared/cuda/graph.h). What cannot be made again exactly is refused.
 */
#include <stdlib.h>
#include <string.h>

#include "lower/cuda/saved_graphs.h"

#define DEVICE_LAUNCH 4 /* CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH */

struct object *graph_object(const struct cuda_state *s, uint32_t kind, const void *real)
{
	struct object *o = s->by_real[object_list(kind, real)];

	while (o && (o->kind != kind || o->real != real))
		o = o->alike;
	return o;
}

/* The program's object for the real handle of a graph or node, which is described. */
static struct object *described_object(
	const struct cuda_state *s, uint32_t kind, const void *real)
{
	struct object *o = graph_object(s, kind, real);

	if (o)
		o->flags |= CUDA_OBJECT_SAVED;
	return o;
}

/* ---- a graph ---- */

static int save_edges(
	struct cuda_state *s, struct graph_node *n, const struct graph_index *index)
{
	uint32_t *list;
	uint64_t *edges;
	long count = graph_edges(n->real, index, &list, &edges);

	if (count > 0) {
		n->dependencies = graph_copy(s, list, count * sizeof(*list));
		n->edges = graph_copy(s, edges, count * sizeof(*edges));
		n->dependency_count = count;
	}
	free(list);
	free(edges);
	return count < 0 || (count && (!n->dependencies || !n->edges)) ? -1 : 0;
}

static int save_node(struct cuda_state *s, struct graph_node *n,
	const struct graph_index *index, struct graph_conditional *conditionals,
	enum graph_detail detail)
{
	int r = CUDA(cuGraphNodeGetType, (void *, uint32_t *))(n->real, &n->type);

	if (r)
		return cuda_failed("cuGraphNodeGetType", r);
	n->object = described_object(s, CUDA_GRAPH_NODE, n->real);
	return graph_save_node(s, n, conditionals, detail) || save_edges(s, n, index) ? -1 : 0;
}

static int save_nodes(struct cuda_state *s, struct graph_record *g, void *const *nodes,
	size_t count, struct graph_conditional *conditionals, enum graph_detail detail)
{
	struct graph_index *index = graph_index_new(nodes, count);
	int r = index ? 0 : -1;

	g->count = count;
	g->nodes = r ? NULL : graph_records_alloc(s, count * sizeof(*g->nodes));
	for (size_t i = 0; i < count && g->nodes && !r; i++) {
		g->nodes[i].real = nodes[i];
		r = save_node(s, &g->nodes[i], index, conditionals, detail);
	}
	graph_index_free(index);
	return g->nodes ? r : -1;
}

struct graph_record *graph_describe(struct cuda_state *s, void *graph,
	struct graph_conditional *conditionals, enum graph_detail detail)
{
	struct graph_record *g = graph_records_alloc(s, sizeof(*g));
	void **nodes = NULL;
	size_t count;
	int r = g ? graph_nodes(graph, &nodes, &count) : -1;

	if (g)
		g->object = described_object(s, CUDA_GRAPH, graph);
	if (!r)
		r = save_nodes(s, g, nodes, count, conditionals, detail);
	free(nodes);
	return r ? NULL : g;
}

/* ---- executable graphs ---- */

static int is_alike(const struct graph_node *a, const struct graph_node *b)
{
	return a->type == b->type && a->dependency_count == b->dependency_count &&
	       (!a->dependency_count ||
		       !memcmp(a->dependencies, b->dependencies,
			       a->dependency_count * sizeof(*a->dependencies)));
}

static int match_nodes(struct graph_record *g, const struct graph_record *nodes);

static int match_inner(const struct graph_node *n, const struct graph_node *as)
{
	int r = n->inner_count == as->inner_count ? 0 : -1;

	for (uint64_t i = 0; i < n->inner_count && !r; i++)
		r = match_nodes(n->inner[i], as->inner[i]);
	return r;
}

/*
 * The driver pairs the nodes of an update with existing ones by the order of edges, from
 * the last nodes on. If nodes and edges come in the same order in both, so do pairs. @g, with
 * the parameters, takes over who the nodes are.
 */
static int match_nodes(struct graph_record *g, const struct graph_record *nodes)
{
	if (g->count != nodes->count)
		return -1;
	for (uint64_t i = 0; i < g->count; i++) {
		if (!is_alike(&g->nodes[i], &nodes->nodes[i]))
			return -1;
		g->nodes[i].real = nodes->nodes[i].real;
		g->nodes[i].conditional = nodes->nodes[i].conditional;
		if (match_inner(&g->nodes[i], &nodes->nodes[i]))
			return -1;
	}
	return 0;
}

static void mark_disabled(const struct graph_record *g, const struct graph_state *state)
{
	for (uint64_t i = 0; i < g->count; i++) {
		struct graph_node *n = &g->nodes[i];

		for (uint64_t j = 0; j < state->disabled_count; j++)
			n->disabled |= state->disabled[j] == n->real;
		for (uint64_t j = 0; j < n->inner_count; j++)
			mark_disabled(n->inner[j], state);
	}
}

/* The graph that an executable of the same is to be made of. What nodes of the snapshot use may be gone once
 * there has been an update. */
static struct graph_record *describe_snapshot(
	struct cuda_state *s, const struct graph_state *state)
{
	struct graph_record *g = graph_describe(s, state->snapshot, state->conditionals,
				    state->update ? GRAPH_SHAPE : GRAPH_WHOLE),
			    *updated;

	if (!g || !state->update)
		return g;
	updated = graph_describe(s, state->update, state->update_conditionals, GRAPH_WHOLE);
	if (!updated)
		return NULL;
	if (!match_nodes(updated, g))
		return updated;
	agent_fail(
		"it holds an executable CUDA graph that was updated from one whose nodes were "
		"added in another order, which cannot be restored");
	return NULL;
}

static int save_flags(struct graph_saved *saved)
{
	int r = CUDA(cuGraphExecGetFlags, (void *, uint64_t *))(
		saved->object->real, &saved->flags);

	if (r)
		return cuda_failed("cuGraphExecGetFlags", r);
	return saved->flags & DEVICE_LAUNCH
		       ? agent_fail("it holds an executable CUDA graph for launches by device "
				    "code, which cannot be restored")
		       : 0;
}

/* ---- all of them ---- */

/* Nodes that allocate or free are empty ones here. */
static void mark_memory(const struct graph_record *g, const struct graph_state *state)
{
	for (uint64_t i = 0; i < g->count; i++) {
		struct graph_memory_node *m = state->memory_nodes;

		while (m && m->node != g->nodes[i].real)
			m = m->next;
		g->nodes[i].memory = m;
	}
}

static int save_graph(struct cuda_state *s, struct object *o)
{
	const struct graph_state *state = graph_state(o);
	struct graph_saved *saved = graph_records_alloc(s, sizeof(*saved));
	void *graph = o->kind == CUDA_GRAPH ? o->real : state->snapshot;

	if (!saved)
		return -1;
	saved->object = o;
	if (o->kind == CUDA_GRAPH_EXEC && save_flags(saved))
		return -1;
	saved->graph = o->kind == CUDA_GRAPH
			       ? graph_describe(s, graph, state->conditionals, GRAPH_WHOLE)
			       : describe_snapshot(s, state);
	if (!saved->graph || graph_mark_origins(saved->graph, state, graph) ||
		graph_find_contexts(s, saved->graph))
		return -1;
	mark_disabled(saved->graph, state);
	mark_memory(saved->graph, state);
	saved->next = s->graphs;
	s->graphs = saved;
	return agent_check_wanted();
}

static int refuse_graph(const struct object *o)
{
	const struct graph_state *state = graph_state(o);

	switch (state->reason) {
	case GRAPH_OF_USER_OBJECT:
		return agent_fail("it holds a CUDA graph with references to user objects that "
				  "could not be followed, which cannot be restored");
	case GRAPH_NO_SNAPSHOT:
		return graph_refuse_type(state->node_type);
	default:
		return agent_fail("it holds an executable CUDA graph with a change that could "
				  "not be followed, which cannot be restored");
	}
}

/* A restart would have nothing to make it of. */
static int refuse_left_over(const struct cuda_state *s)
{
	for (const struct object *o = s->objects; o; o = o->next)
		if ((o->kind == CUDA_GRAPH || o->kind == CUDA_GRAPH_NODE) &&
			!(o->flags & CUDA_OBJECT_SAVED))
			return agent_fail("it holds a part of a CUDA graph that the graph "
					  "does not have any more, which cannot be restored");
	return 0;
}

int cuda_save_graphs(struct cuda_state *s)
{
	int r = 0;

	for (struct object *o = s->objects; o; o = o->next)
		o->flags &= ~CUDA_OBJECT_SAVED;

	s->graphs = NULL;
	for (struct graph_chunk *c = s->graph_chunks; c; c = c->next)
		c->used = sizeof(*c);
	graph_functions_forget();
	for (struct object *o = s->objects; o && !r; o = o->next) {
		if (o->kind != CUDA_GRAPH_EXEC && (o->kind != CUDA_GRAPH || o->parent))
			continue;
		r = o->flags & CUDA_OBJECT_LOST ? refuse_graph(o) : save_graph(s, o);
	}
	graph_functions_forget();
	return r ? r : refuse_left_over(s);
}
