/*
 * Executable graphs, which the driver cannot be asked about: a clone of the graph that one was
 * instantiated from is kept, and changed as the executable is. What cannot be followed so does
 * not fail: the checkpoint is refused then.
 */
#include "stubs/cuda/graphs.h"

#include "shared/raw.h"

#include "cuda.index.h"

#define DOWN(name, ...) cuda_call_down(INDEX_##name, WORDS(__VA_ARGS__))

/* ---- graphs, by their real handles ---- */

static int node_type(void *node)
{
	int type = -1;

	return DOWN(cuGraphNodeGetType, WORD(node), WORD(&type)) ? -1 : type;
}

static void *child_of(void *node)
{
	void *graph = NULL;

	return DOWN(cuGraphChildGraphNodeGetGraph, WORD(node), WORD(&graph)) ? NULL : graph;
}

struct nodes {
	void **list;
	size_t count, size;
};

static int get_nodes(void *graph, struct nodes *n)
{
	*n = (struct nodes){0};
	if (!graph || DOWN(cuGraphGetNodes, WORD(graph), 0, WORD(&n->count)))
		return -1;
	if (!n->count)
		return 0;
	n->size = n->count * sizeof(void *);
	n->list = block_new(n->size);
	if (!n->list)
		return -1;
	return DOWN(cuGraphGetNodes, WORD(graph), WORD(n->list), WORD(&n->count)) ? -1 : 0;
}

static void free_nodes(const struct nodes *n)
{
	if (n->list)
		block_free(n->list, n->size);
}

/* The node of @to that has the place of @node among those of @from; NULL: none. */
static void *same_place(void *node, void *from, void *to)
{
	struct nodes a, b;
	void *found = NULL;

	if (!get_nodes(from, &a) && !get_nodes(to, &b)) {
		for (size_t i = 0; i < a.count && a.count == b.count; i++)
			if (a.list[i] == node)
				found = b.list[i];
		free_nodes(&b);
	}
	free_nodes(&a);
	return found && node_type(found) == node_type(node) ? found : NULL;
}

/* ---- the snapshot's nodes ---- */

/* What stands for the real @node of the graph that was cloned to @clone. It may be in a graph
 * that is a node of that, and so on. */
static void *find_in_clone(void *node, void *clone)
{
	const struct object *o = object_find(CUDA_GRAPH_NODE, node), *graph;
	void *found = NULL, *parent;

	if (o && o->parent && o->parent->parent) {
		graph = o->parent;
		parent = find_in_clone(graph->parent->real, clone);
		return parent ? same_place(node, graph->real, child_of(parent)) : NULL;
	}
	return DOWN(cuGraphNodeFindInClone, WORD(&found), WORD(node), WORD(clone)) ? NULL
										   : found;
}

/* The same in the graph of the same shape that has the parameters. @inside is what stands for a
 * node in the snapshot. */
static void *in_update(const struct graph_state *state, void *inside, void *from, void *to)
{
	struct nodes n;
	void *found = same_place(inside, from, to);

	if (found || get_nodes(from, &n))
		return found;
	for (size_t i = 0; i < n.count && !found; i++)
		if (node_type(n.list[i]) == GRAPH_CHILD)
			found = in_update(state, inside, child_of(n.list[i]),
				child_of(same_place(n.list[i], from, to)));
	free_nodes(&n);
	return found;
}

/* ---- parameters ---- */

static int copy_kernel(void *to, void *from)
{
	struct kernel_node k = {0};
	int r = DOWN(cuGraphKernelNodeGetParams_v2, WORD(from), WORD(&k));

	if (!r)
		r = DOWN(cuGraphKernelNodeSetParams_v2, WORD(to), WORD(&k));
	return r ? r : DOWN(cuGraphKernelNodeCopyAttributes, WORD(to), WORD(from));
}

/* One way for all whose parameters are a structure. */
static int copy_structure(void *to, void *from, unsigned get, unsigned set)
{
	union graph_params params = {0};
	const uint64_t words[CALL_WORDS] = {WORD(from), WORD(&params)};
	const uint64_t back[CALL_WORDS] = {WORD(to), WORD(&params)};
	int r = cuda_call_down(get, words);

	return r ? r : cuda_call_down(set, back);
}

static int copy_event(void *to, void *from, unsigned get, unsigned set)
{
	void *event = NULL;
	const uint64_t words[CALL_WORDS] = {WORD(from), WORD(&event)};
	int r = cuda_call_down(get, words);

	return r ? r : cuda_call_down(set, WORDS(WORD(to), WORD(event)));
}

static int copy_graph(void *to, void *from);

static int copy_node(void *to, void *from)
{
	int type = node_type(from);

	if (type != node_type(to))
		return -1;
	switch (type) {
	case GRAPH_KERNEL:
		return copy_kernel(to, from);
	case GRAPH_MEMCPY:
		return copy_structure(to, from, INDEX_cuGraphMemcpyNodeGetParams,
			INDEX_cuGraphMemcpyNodeSetParams);
	case GRAPH_MEMSET:
		return copy_structure(to, from, INDEX_cuGraphMemsetNodeGetParams,
			INDEX_cuGraphMemsetNodeSetParams);
	case GRAPH_HOST:
		return copy_structure(to, from, INDEX_cuGraphHostNodeGetParams,
			INDEX_cuGraphHostNodeSetParams);
	case GRAPH_BATCH_MEM_OP:
		return copy_structure(to, from, INDEX_cuGraphBatchMemOpNodeGetParams,
			INDEX_cuGraphBatchMemOpNodeSetParams);
	case GRAPH_WAIT_EVENT:
		return copy_event(to, from, INDEX_cuGraphEventWaitNodeGetEvent,
			INDEX_cuGraphEventWaitNodeSetEvent);
	case GRAPH_EVENT_RECORD:
		return copy_event(to, from, INDEX_cuGraphEventRecordNodeGetEvent,
			INDEX_cuGraphEventRecordNodeSetEvent);
	case GRAPH_CHILD:
		return copy_graph(child_of(to), child_of(from));
	case GRAPH_EMPTY:
		return 0;
	}
	return -1;
}

/* The driver wants nodes to have been added in the same order. */
static int copy_graph(void *to, void *from)
{
	struct nodes a, b = {0};
	int r = get_nodes(to, &a) || get_nodes(from, &b) || a.count != b.count ? -1 : 0;

	for (size_t i = 0; i < a.count && !r; i++)
		r = copy_node(a.list[i], b.list[i]);
	free_nodes(&a);
	free_nodes(&b);
	return r;
}

/* ---- changes ---- */

static const struct {
	unsigned exec, node;
} setters[] = {
	{INDEX_cuGraphExecKernelNodeSetParams, INDEX_cuGraphKernelNodeSetParams},
	{INDEX_cuGraphExecKernelNodeSetParams_v2, INDEX_cuGraphKernelNodeSetParams_v2},
	{INDEX_cuGraphExecMemcpyNodeSetParams, INDEX_cuGraphMemcpyNodeSetParams},
	{INDEX_cuGraphExecMemsetNodeSetParams, INDEX_cuGraphMemsetNodeSetParams},
	{INDEX_cuGraphExecHostNodeSetParams, INDEX_cuGraphHostNodeSetParams},
	{INDEX_cuGraphExecEventRecordNodeSetEvent, INDEX_cuGraphEventRecordNodeSetEvent},
	{INDEX_cuGraphExecEventWaitNodeSetEvent, INDEX_cuGraphEventWaitNodeSetEvent},
	{INDEX_cuGraphExecBatchMemOpNodeSetParams, INDEX_cuGraphBatchMemOpNodeSetParams},
	{INDEX_cuGraphExecNodeSetParams, INDEX_cuGraphNodeSetParams},
};

static int set_params(void *node, unsigned index, const uint64_t *words)
{
	const struct node_params *any = (const struct node_params *)words[2];

	if (index == INDEX_cuGraphExecChildGraphNodeSetParams)
		return copy_graph(child_of(node), (void *)words[2]);
	if (index == INDEX_cuGraphExecNodeSetParams && any->type == GRAPH_CHILD)
		return copy_graph(child_of(node), any->params.child.graph);
	for (unsigned i = 0; i < sizeof(setters) / sizeof(setters[0]); i++)
		if (setters[i].exec == index)
			return cuda_call_down(setters[i].node, WORDS(WORD(node), words[2]));
	return -1;
}

static int set_enabled(struct graph_state *state, void *node, int enabled)
{
	uint64_t i = 0, bytes;
	void **more;

	while (i < state->disabled_count && state->disabled[i] != node)
		i++;
	if (enabled && i < state->disabled_count)
		state->disabled[i] = state->disabled[--state->disabled_count];
	if (enabled || i < state->disabled_count)
		return 0;
	if ((i + 1) * sizeof(void *) > state->disabled_bytes) {
		bytes = state->disabled_bytes ? 2 * state->disabled_bytes : 64;
		more = block_new(bytes);
		if (!more)
			return -1;
		raw_copy(more, state->disabled, i * sizeof(void *));
		if (state->disabled)
			block_free(state->disabled, state->disabled_bytes);
		state->disabled = more;
		state->disabled_bytes = bytes;
	}
	state->disabled[state->disabled_count++] = node;
	return 0;
}

/* Give all nodes the parameters of the graph that @words name now: as the driver pairs the
 * nodes of the two, which a checkpoint looks into. */
static int exchange_parameters(struct graph_state *state, const uint64_t *words)
{
	void *clone = NULL;

	if (DOWN(cuGraphClone, WORD(&clone), words[1]))
		return -1;
	if (state->update)
		DOWN(cuGraphDestroy, WORD(state->update)); /* ours: it is there */
	state->update = clone;
	return 0;
}

static int change_node(struct graph_state *state, unsigned index, const uint64_t *words)
{
	void *node = (void *)words[1];

	if (!state->restarted)
		node = find_in_clone(node, state->snapshot);
	if (!node)
		return -1;
	if (index == INDEX_cuGraphNodeSetEnabled)
		return set_enabled(state, node, (unsigned)words[2] != 0);
	if (state->update)
		node = in_update(state, node, state->snapshot, state->update);
	return node ? set_params(node, index, words) : -1;
}

STUB_HIDDEN void graph_follow(
	struct object *o, unsigned index, const uint64_t *words, struct object *from)
{
	struct graph_state *state = graph_state(o);
	int is_update = index == INDEX_cuGraphExecUpdate || index == INDEX_cuGraphExecUpdate_v2;

	if (!state->snapshot)
		return;
	if (is_update ? exchange_parameters(state, words) : change_node(state, index, words))
		graph_lose(o, GRAPH_NO_UPDATE);
	if (from && from->flags & CUDA_OBJECT_LOST)
		graph_lose(o, graph_state(from)->reason);
}

/* ---- from the beginning to the end ---- */

/* Of nodes that are in the way of a clone. */
static uint32_t strange_node(void *graph)
{
	struct nodes n;
	int type = GRAPH_EMPTY;

	if (!get_nodes(graph, &n))
		for (size_t i = 0; i < n.count; i++) {
			int t = node_type(n.list[i]);

			if (t == GRAPH_ALLOCATION || t == GRAPH_FREE || t == GRAPH_CONDITIONAL)
				type = t;
		}
	free_nodes(&n);
	return type;
}

STUB_HIDDEN void graph_instantiated(struct object *o, struct object *graph)
{
	struct graph_state *state = graph_state(o);

	if (!graph) {
		graph_lose(o, GRAPH_NO_SNAPSHOT);
		return;
	}
	state->origin = graph;
	state->origin_sequence = graph->sequence;
	if (graph->flags & CUDA_OBJECT_LOST) {
		graph_lose(o, graph_state(graph)->reason);
		return;
	}
	if (!DOWN(cuGraphClone, WORD(&state->snapshot), WORD(graph->real)))
		return;
	state->snapshot = NULL;
	state->node_type = strange_node(graph->real);
	graph_lose(o, GRAPH_NO_SNAPSHOT);
}

STUB_HIDDEN void graph_exec_gone(struct graph_state *state)
{
	if (state->snapshot)
		DOWN(cuGraphDestroy, WORD(state->snapshot)); /* ours: they are there */
	if (state->update)
		DOWN(cuGraphDestroy, WORD(state->update));
}
