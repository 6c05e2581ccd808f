/*
 * What the driver does not do with graphs that allocate or free memory. For the driver they have empty nodes instead, so it
 * would: the results are given here, as driver 580.159.04 gives them (t/gpu/graph_memory.sh) or cuda.h states them.
 */
#include "stubs/cuda/graph_memory.h"

#include "cuda.index.h"

#define UPDATE_FAILURE 910 /* CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE */

/* CUgraphExecUpdateResult */
#define UPDATE_ERROR      1
#define NODE_TYPE_CHANGED 3

static struct object *graph_of(uint64_t handle)
{
	struct object *o = graph_argument(CUDA_GRAPH, (void *)handle);

	return o && o->kind == CUDA_GRAPH && !is_dead(o->real) ? o : NULL;
}

static int has_memory(const struct object *graph)
{
	return graph && graph_state(graph)->memory_nodes;
}

/* Of the node with this handle. */
static int is_in_graph_with_memory(uint64_t handle)
{
	const struct object *node = graph_argument(CUDA_GRAPH_NODE, (void *)handle);

	return node && node->kind == CUDA_GRAPH_NODE && node->parent &&
	       node->parent->kind == CUDA_GRAPH && has_memory(node->parent);
}

/* ---- memory is one graph's and one executable's ---- */

static const struct object *memory_owner(const struct graph_state *state)
{
	const struct object *o = state->memory_from;

	return o && o->sequence == state->memory_from_sequence && !is_dead(o->real) ? o : NULL;
}

/* By an executable other than @except. */
static int is_held(const struct object *graph, const struct object *except)
{
	uint64_t mask = state_lock();
	const struct object *o = CUDA_STATE->objects;

	while (o && (o->kind != CUDA_GRAPH_EXEC || o == except ||
			    memory_owner(graph_state(o)) != graph))
		o = o->next;
	state_unlock(mask);
	return o != NULL;
}

static int refuse_instantiation(const struct object *graph)
{
	return has_memory(graph) && is_held(graph, NULL) ? CUDA_ERROR_NOT_SUPPORTED : 0;
}

/* ---- updates ---- */

static unsigned count_nodes(const struct graph_memory_node *list, int frees)
{
	unsigned count = 0;

	for (; list; list = list->next)
		count += list->frees == (uint32_t)frees;
	return count;
}

static int is_alike(const struct graph_memory_node *a, const struct graph_memory_node *b)
{
	return count_nodes(a, 0) == count_nodes(b, 0) && count_nodes(a, 1) == count_nodes(b, 1);
}

static int is_of_a_graph(uint64_t address)
{
	uint64_t mask = state_lock();
	const struct graph_memory *m = CUDA_STATE->graph_memory;

	while (m && (!m->id || address - m->params.address >= m->params.size))
		m = m->next;
	state_unlock(mask);
	return m != NULL;
}

/* What the node @node fills, if that is memory of a graph. */
static int fills_memory(void *node, struct graph_memset *set)
{
	*set = (struct graph_memset){0};
	return graph_node_type(node) == GRAPH_MEMSET &&
	       !cuda_call_down(
		       INDEX_cuGraphMemsetNodeGetParams, WORDS(WORD(node), WORD(set))) &&
	       is_of_a_graph(set->address);
}

static int is_same_set(const struct graph_memset *a, const struct graph_memset *b)
{
	return a->address == b->address && a->value == b->value && a->element == b->element &&
	       a->width == b->width && a->height == b->height &&
	       (a->height <= 1 || a->pitch == b->pitch);
}

/* Between nodes in the same place: as the driver pairs them, if they were added in the same order. */
static int changes_set(const struct graph_list *a, const struct graph_list *b)
{
	for (size_t i = 0; i < a->count && a->count == b->count; i++) {
		struct graph_memset from, to;
		int fills = fills_memory(a->list[i], &from);

		if ((fills_memory(b->list[i], &to) || fills) && to.width && from.width &&
			!is_same_set(&from, &to))
			return 1;
	}
	return 0;
}

/* Nodes that fill memory of graphs cannot be changed by an update. */
static int changes_sets(const struct graph_state *state, const struct object *graph)
{
	void *now = state->update ? state->update : state->snapshot;
	struct graph_list a, b = {0};
	int changes = !graph_list_nodes(now, &a) && !graph_list_nodes(graph->real, &b) &&
		      changes_set(&a, &b);

	graph_free_list(&a);
	graph_free_list(&b);
	return changes;
}

/* The CUresult of an update from @graph, and enum CUgraphExecUpdateResult; 0: the driver is to decide. */
static int refuse_update(
	const struct object *executable, const struct object *graph, int *result)
{
	const struct graph_state *e = graph_state(executable), *g = graph_state(graph);

	*result = 0;
	if (!e->memory_nodes && !g->memory_nodes)
		return 0;
	if (is_held(graph, executable))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!is_alike(e->memory_nodes, g->memory_nodes))
		*result = NODE_TYPE_CHANGED;
	else if (changes_sets(e, graph))
		*result = UPDATE_ERROR;
	return *result ? UPDATE_FAILURE : 0;
}

static int check_update(const struct call_info *info, const uint64_t *given)
{
	const struct object *executable = graph_argument(CUDA_GRAPH_EXEC, (void *)given[0]),
			    *graph = graph_of(given[1]);
	int result, r;

	if (!graph || !executable || executable->kind != CUDA_GRAPH_EXEC ||
		is_dead(executable->real))
		return 0;
	r = refuse_update(executable, graph, &result);
	if (!r)
		return 0;
	if (info - cuda_info == INDEX_cuGraphExecUpdate_v2 && given[2])
		*(struct update_result *)given[2] = (struct update_result){.result = result};
	if (info - cuda_info == INDEX_cuGraphExecUpdate && given[2])
		*(void **)given[2] = NULL;
	if (info - cuda_info == INDEX_cuGraphExecUpdate && given[3])
		*(int *)given[3] = result;
	return r;
}

/* ---- */

STUB_HIDDEN int graph_memory_check(const struct call_info *info, const uint64_t *given)
{
	int is_refused = 0;

	switch (info - cuda_info) {
	case INDEX_cuGraphExecUpdate:
	case INDEX_cuGraphExecUpdate_v2:
		return check_update(info, given);
	case INDEX_cuGraphInstantiate:
	case INDEX_cuGraphInstantiate_v2:
	case INDEX_cuGraphInstantiateWithFlags:
	case INDEX_cuGraphInstantiateWithParams:
	case INDEX_cuGraphInstantiateWithParams_ptsz:
		return refuse_instantiation(graph_of(given[1]));
	case INDEX_cuGraphClone:
		is_refused = has_memory(graph_of(given[1]));
		break;
	case INDEX_cuGraphAddChildGraphNode:
		is_refused = has_memory(graph_of(given[4]));
		break;
	case INDEX_cuGraphDestroyNode:
		is_refused = is_in_graph_with_memory(given[0]);
		break;
	case INDEX_cuGraphRemoveDependencies:
	case INDEX_cuGraphRemoveDependencies_v2:
		is_refused = has_memory(graph_of(given[0]));
	}
	return is_refused ? CUDA_ERROR_NOT_SUPPORTED : 0;
}
