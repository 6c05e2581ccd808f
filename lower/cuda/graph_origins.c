/* For the nodes of clones and of executable graphs: which nodes they were made of. */
#include <stdlib.h>

#include "lower/cuda/saved_graphs.h"

/* Nodes of the graphs in @g go by their places: the driver does not tell more. */
static int mark_children(const struct graph_record *g);

static int mark_child(const struct graph_node *n)
{
	void *from = NULL, **nodes;
	size_t count;
	int r = CUDA(cuGraphChildGraphNodeGetGraph, (void *, void **))(n->origin, &from);

	if (r)
		return cuda_failed("cuGraphChildGraphNodeGetGraph", r);
	r = graph_nodes(from, &nodes, &count);
	for (size_t i = 0; i < count && count == n->inner[0]->count && !r; i++)
		n->inner[0]->nodes[i].origin = nodes[i];
	free(nodes);
	return r ? r : mark_children(n->inner[0]);
}

static int is_child(const void *node)
{
	uint32_t type = GRAPH_EMPTY;

	return !CUDA(cuGraphNodeGetType, (const void *, uint32_t *))(node, &type) &&
	       type == GRAPH_CHILD;
}

static int mark_children(const struct graph_record *g)
{
	for (uint64_t i = 0; i < g->count; i++) {
		const struct graph_node *n = &g->nodes[i];

		if (n->type == GRAPH_CHILD && n->origin && is_child(n->origin) && mark_child(n))
			return -1;
	}
	return 0;
}

static void **real_nodes(const struct graph_record *g)
{
	void **list = calloc(g->count + 1, sizeof(*list));

	for (uint64_t i = 0; list && i < g->count; i++)
		list[i] = g->nodes[i].real;
	return list;
}

/* The driver knows what became of the nodes of @origin in @clone. */
static int ask_origins(const struct graph_record *g, void *origin, void *clone)
{
	void **list = real_nodes(g), **nodes = NULL, *found;
	struct graph_index *index = list ? graph_index_new(list, g->count) : NULL;
	size_t count;
	int r = index ? graph_nodes(origin, &nodes, &count) : -1;

	for (size_t i = 0; !r && i < count; i++) {
		long number = -1;

		/* A node that was added since has none. */
		if (!CUDA(cuGraphNodeFindInClone, (void **, void *, void *))(
			    &found, nodes[i], clone))
			number = graph_index_find(index, found);
		if (number >= 0)
			g->nodes[number].origin = nodes[i];
	}
	graph_index_free(index);
	free(nodes);
	free(list);
	return r ? r : mark_children(g);
}

/* After a restart, and of a copy, the pairs know. */
static void pair_origins(const struct graph_record *g, const struct graph_state *state,
	const struct graph_index *to)
{
	for (uint64_t i = 0; i < g->count; i++) {
		struct graph_node *n = &g->nodes[i];
		long number = graph_index_find(to, n->real);

		n->origin = number < 0 ? NULL : state->pairs[number].from;
		for (uint64_t j = 0; j < n->inner_count; j++)
			pair_origins(n->inner[j], state, to);
	}
}

static int take_origins(const struct graph_record *g, const struct graph_state *state)
{
	void **to = calloc(state->pair_count + 1, sizeof(*to));
	struct graph_index *index;

	for (uint64_t i = 0; to && i < state->pair_count; i++)
		to[i] = state->pairs[i].to;
	index = to ? graph_index_new(to, state->pair_count) : NULL;
	if (index)
		pair_origins(g, state, index);
	free(to);
	graph_index_free(index);
	return index ? 0 : -1;
}

int graph_mark_origins(
	const struct graph_record *g, const struct graph_state *state, void *clone)
{
	const struct object *origin = graph_origin(state);

	if (!origin)
		return 0;
	return state->restarted || state->paired ? take_origins(g, state)
						 : ask_origins(g, origin->real, clone);
}
