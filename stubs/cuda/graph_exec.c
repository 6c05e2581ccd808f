/*
 * Executable graphs, which the driver cannot be asked about: a clone of the graph that one was
 * instantiated from is kept (where it cannot be cloned, a copy: graph_copy.c), and changed as the
 * executable is. What cannot be followed so does not fail: the checkpoint is refused then.
 */
#include "stubs/cuda/graphs.h"

#include "shared/raw.h"

#include "cuda.index.h"

#define DOWN(name, ...) cuda_call_down(INDEX_##name, WORDS(__VA_ARGS__))

/* ---- graphs, by their real handles ---- */

/* The node of @to that has the place of @node among those of @from; NULL: none. */
static void *same_place(void *node, void *from, void *to)
{
	struct graph_list a, b;
	void *found = NULL;

	if (!graph_list_nodes(from, &a) && !graph_list_nodes(to, &b)) {
		for (size_t i = 0; i < a.count && a.count == b.count; i++)
			if (a.list[i] == node)
				found = b.list[i];
		graph_free_list(&b);
	}
	graph_free_list(&a);
	return found && graph_node_type(found) == graph_node_type(node) ? found : NULL;
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
		return parent ? same_place(node, graph->real, graph_child(parent)) : NULL;
	}
	return DOWN(cuGraphNodeFindInClone, WORD(&found), WORD(node), WORD(clone)) ? NULL
										   : found;
}

/* Graph @i inside @node of the snapshot, or of what it was updated from; NULL: there is none. */
static void *inner_graph(const struct graph_state *state, void *node, unsigned i)
{
	int type = node ? graph_node_type(node) : -1;
	struct graph_conditional *c = NULL;

	if (type == GRAPH_CHILD)
		return i ? NULL : graph_child(node);
	if (type == GRAPH_CONDITIONAL)
		c = graph_conditional(state->conditionals, node);
	if (type == GRAPH_CONDITIONAL && !c)
		c = graph_conditional(state->update_conditionals, node);
	return c && i < c->count ? *graph_body(c, i) : NULL;
}

/* The same in the graph of the same shape that has the parameters. @inside is what stands for a
 * node in the snapshot. */
static void *in_update(const struct graph_state *state, void *inside, void *from, void *to)
{
	struct graph_list n;
	void *found = same_place(inside, from, to);

	if (found || graph_list_nodes(from, &n))
		return found;
	for (size_t i = 0; i < n.count && !found; i++) {
		void *other = same_place(n.list[i], from, to), *graph;

		for (unsigned j = 0; !found && (graph = inner_graph(state, n.list[i], j)); j++)
			found = in_update(state, inside, graph, inner_graph(state, other, j));
	}
	graph_free_list(&n);
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
	int type = graph_node_type(from);

	if (type != graph_node_type(to))
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
	case GRAPH_SIGNAL:
		return copy_structure(to, from,
			INDEX_cuGraphExternalSemaphoresSignalNodeGetParams,
			INDEX_cuGraphExternalSemaphoresSignalNodeSetParams);
	case GRAPH_WAIT:
		return copy_structure(to, from,
			INDEX_cuGraphExternalSemaphoresWaitNodeGetParams,
			INDEX_cuGraphExternalSemaphoresWaitNodeSetParams);
	case GRAPH_WAIT_EVENT:
		return copy_event(to, from, INDEX_cuGraphEventWaitNodeGetEvent,
			INDEX_cuGraphEventWaitNodeSetEvent);
	case GRAPH_EVENT_RECORD:
		return copy_event(to, from, INDEX_cuGraphEventRecordNodeGetEvent,
			INDEX_cuGraphEventRecordNodeSetEvent);
	case GRAPH_CHILD:
		return copy_graph(graph_child(to), graph_child(from));
	case GRAPH_EMPTY:
		return 0;
	}
	return -1;
}

/* The driver wants nodes to have been added in the same order. */
static int copy_graph(void *to, void *from)
{
	struct graph_list a, b = {0};
	int r = graph_list_nodes(to, &a) || graph_list_nodes(from, &b) || a.count != b.count
			? -1
			: 0;

	for (size_t i = 0; i < a.count && !r; i++)
		r = copy_node(a.list[i], b.list[i]);
	graph_free_list(&a);
	graph_free_list(&b);
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
	{INDEX_cuGraphExecExternalSemaphoresSignalNodeSetParams,
		INDEX_cuGraphExternalSemaphoresSignalNodeSetParams},
	{INDEX_cuGraphExecExternalSemaphoresWaitNodeSetParams,
		INDEX_cuGraphExternalSemaphoresWaitNodeSetParams},
	{INDEX_cuGraphExecNodeSetParams, INDEX_cuGraphNodeSetParams},
};

static int set_params(void *node, unsigned index, const uint64_t *words)
{
	const struct node_params *any = (const struct node_params *)words[2];

	if (index == INDEX_cuGraphExecChildGraphNodeSetParams)
		return copy_graph(graph_child(node), (void *)words[2]);
	if (index == INDEX_cuGraphExecNodeSetParams && any->type == GRAPH_CHILD)
		return copy_graph(graph_child(node), any->params.child.graph);
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

static void drop_update(struct graph_state *state)
{
	if (state->update)
		DOWN(cuGraphDestroy, WORD(state->update)); /* ours: it is there */
	state->update = NULL;
	graph_free_conditionals(&state->update_conditionals);
}

/* Give all nodes the parameters of the graph that @words name now, which is @from: as the driver
 * pairs the nodes of the two, which a checkpoint looks into. */
static int exchange_parameters(
	struct graph_state *state, const uint64_t *words, const struct object *from)
{
	drop_update(state);
	if (!DOWN(cuGraphClone, WORD(&state->update), words[1])) {
		if (!from || !user_objects_strip(state->update, from))
			return 0;
		drop_update(state);
		return -1;
	}
	state->update = from ? graph_copy_update(state, from) : NULL;
	return state->update ? 0 : -1;
}

static int change_node(struct graph_state *state, unsigned index, const uint64_t *words)
{
	void *node = (void *)words[1];

	if (state->paired && !state->restarted)
		node = graph_find_pair(state, node);
	else if (!state->restarted)
		node = find_in_clone(node, state->snapshot);
	if (!node)
		return -1;
	if (index == INDEX_cuGraphNodeSetEnabled)
		return set_enabled(state, node, (unsigned)words[2] != 0);
	if (state->update)
		node = in_update(state, node, state->snapshot, state->update);
	return node ? set_params(node, index, words) : -1;
}

/* The graph that a child node of an executable gets its parameters from; NULL: this is no such call. */
static void *new_child(unsigned index, const uint64_t *words)
{
	const struct node_params *any = (const struct node_params *)words[2];

	if (index == INDEX_cuGraphExecChildGraphNodeSetParams)
		return (void *)words[2];
	return index == INDEX_cuGraphExecNodeSetParams && any->type == GRAPH_CHILD
		       ? any->params.child.graph
		       : NULL;
}

/* References to user objects come with the parameters. Whose they are is not known of an executable's graphs, only of all. */
static void follow_user_objects(
	struct object *o, unsigned index, const uint64_t *words, const struct object *from)
{
	void *real = new_child(index, words);
	const struct object *child = real ? object_find(CUDA_GRAPH, real) : NULL;

	if (from)
		user_objects_in_executable(o, from);
	else if (real &&
		 (graph_state(o)->user_references || (child && user_objects_are_in(child))))
		graph_lose(o, GRAPH_OF_USER_OBJECT);
}

STUB_HIDDEN void graph_follow(
	struct object *o, unsigned index, const uint64_t *words, struct object *from)
{
	struct graph_state *state = graph_state(o);
	int is_update = index == INDEX_cuGraphExecUpdate || index == INDEX_cuGraphExecUpdate_v2;

	/* Also where the executable cannot be restored. */
	if (is_update && from && graph_memory_take(state, from))
		graph_lose(o, GRAPH_NO_UPDATE);
	follow_user_objects(o, index, words, is_update ? from : NULL);
	if (!state->snapshot)
		return;
	if (is_update ? exchange_parameters(state, words, from)
		      : change_node(state, index, words))
		graph_lose(o, GRAPH_NO_UPDATE);
	if (from && from->flags & CUDA_OBJECT_LOST)
		graph_lose(o, graph_state(from)->reason);
}

/* ---- from the beginning to the end ---- */

/* Of nodes that are in the way of a clone, and of a copy. */
static uint32_t strange_node(void *graph)
{
	struct graph_list n;
	int type = GRAPH_EMPTY;

	if (!graph_list_nodes(graph, &n))
		for (size_t i = 0; i < n.count; i++) {
			int t = graph_node_type(n.list[i]);

			if (t == GRAPH_ALLOCATION || t == GRAPH_FREE ||
				(t == GRAPH_CONDITIONAL && type == GRAPH_EMPTY))
				type = t;
		}
	graph_free_list(&n);
	return type;
}

/* It would keep user objects alive that the program has done with. */
static void lose_snapshot(struct object *o)
{
	struct graph_state *state = graph_state(o);

	DOWN(cuGraphDestroy, WORD(state->snapshot)); /* ours: it is there */
	state->snapshot = NULL;
	graph_lose(o, GRAPH_OF_USER_OBJECT);
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
	if (graph_memory_take(state, graph))
		graph_lose(o, GRAPH_NO_UPDATE);
	user_objects_in_executable(o, graph);
	if (graph->flags & CUDA_OBJECT_LOST) {
		graph_lose(o, graph_state(graph)->reason);
		return;
	}
	if (!DOWN(cuGraphClone, WORD(&state->snapshot), WORD(graph->real))) {
		if (user_objects_strip(state->snapshot, graph))
			lose_snapshot(o);
		return;
	}
	state->snapshot = graph_copy_snapshot(state, graph);
	if (state->snapshot)
		return;
	state->node_type = strange_node(graph->real);
	graph_lose(o, GRAPH_NO_SNAPSHOT);
}

STUB_HIDDEN void graph_exec_gone(struct graph_state *state)
{
	if (state->snapshot)
		DOWN(cuGraphDestroy, WORD(state->snapshot)); /* ours: they are there */
	drop_update(state);
}
