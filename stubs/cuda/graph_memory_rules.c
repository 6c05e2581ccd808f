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

/* enum CUgraphExecUpdateResult of an update from @graph; 0: the driver is to decide. */
static int refuse_update(const struct object *executable, const struct object *graph)
{
	const struct graph_state *e = graph_state(executable), *g = graph_state(graph);

	if (!e->memory_nodes && !g->memory_nodes)
		return 0;
	if (!is_alike(e->memory_nodes, g->memory_nodes))
		return NODE_TYPE_CHANGED;
	/* The memory is that of the graph, which still has it. */
	if (graph != memory_owner(e) && (memory_owner(e) || is_held(graph, executable)))
		return UPDATE_ERROR;
	return 0;
}

static int check_update(const struct call_info *info, const uint64_t *given)
{
	const struct object *executable = graph_argument(CUDA_GRAPH_EXEC, (void *)given[0]),
			    *graph = graph_of(given[1]);
	int result;

	if (!graph || !executable || executable->kind != CUDA_GRAPH_EXEC ||
		is_dead(executable->real))
		return 0;
	result = refuse_update(executable, graph);
	if (!result)
		return 0;
	if (info - cuda_info == INDEX_cuGraphExecUpdate_v2 && given[2])
		*(struct update_result *)given[2] = (struct update_result){.result = result};
	if (info - cuda_info == INDEX_cuGraphExecUpdate && given[2])
		*(void **)given[2] = NULL;
	if (info - cuda_info == INDEX_cuGraphExecUpdate && given[3])
		*(int *)given[3] = result;
	return UPDATE_FAILURE;
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
