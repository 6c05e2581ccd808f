/*
 * Graphs with conditional nodes, which the driver neither clones nor tells of what they have inside:
 * handles and bodies are noted as they come, and a copy is made node by node.
 *
 * A handle is a number, from 1 on in each graph, in the order they were made in; bodies number
 * theirs with the whole (driver 580.159.04). So what kernels have among their arguments is the same
 * in a copy, and after a restart.
 */
#include "stubs/cuda/graphs.h"

#include "shared/raw.h"

#include "cuda.index.h"

#define DOWN(name, ...) cuda_call_down(INDEX_##name, WORDS(__VA_ARGS__))

/* ---- graphs, by their real handles ---- */

STUB_HIDDEN int graph_node_type(void *node)
{
	int type = -1;

	return DOWN(cuGraphNodeGetType, WORD(node), WORD(&type)) ? -1 : type;
}

STUB_HIDDEN void *graph_child(void *node)
{
	void *graph = NULL;

	return DOWN(cuGraphChildGraphNodeGetGraph, WORD(node), WORD(&graph)) ? NULL : graph;
}

STUB_HIDDEN int graph_list_nodes(void *graph, struct graph_list *n)
{
	*n = (struct graph_list){0};
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

STUB_HIDDEN void graph_free_list(const struct graph_list *n)
{
	if (n->list)
		block_free(n->list, n->size);
}

/* ---- handles ---- */

STUB_HIDDEN struct object *graph_whole(struct object *o)
{
	while (o && o->parent)
		o = o->parent;
	return o;
}

static void lose_conditional(struct object *whole)
{
	if (!whole)
		return;
	graph_state(whole)->node_type = GRAPH_CONDITIONAL;
	graph_lose(whole, GRAPH_NO_SNAPSHOT);
}

/* Room for one more of @size bytes in an array that is @count long. 0 or -1. */
static int grow_array(void **array, uint64_t count, uint64_t *bytes, uint64_t size)
{
	uint64_t more = *bytes ? 2 * *bytes : 64;
	void *room;

	if ((count + 1) * size <= *bytes)
		return 0;
	room = block_new(more);
	if (!room)
		return -1;
	raw_copy(room, *array, count * size);
	if (*array)
		block_free(*array, *bytes);
	*array = room;
	*bytes = more;
	return 0;
}

static int add_handle(struct graph_state *state, const struct graph_handle *handle)
{
	if (grow_array((void **)&state->handles, state->handle_count, &state->handle_bytes,
		    sizeof(*handle)))
		return -1;
	state->handles[state->handle_count++] = *handle;
	return 0;
}

int body_cuGraphConditionalHandleCreate(
	uint64_t *handle, void *graph, void *context, unsigned value, unsigned flags)
{
	struct object *whole = graph_whole(graph_argument(CUDA_GRAPH, graph));
	const struct graph_handle h = {context ? context : current_context(), value, flags};
	int r = graph_call(INDEX_cuGraphConditionalHandleCreate,
		WORDS(WORD(handle), WORD(graph), WORD(context), value, flags));

	if (r || !whole)
		return r;
	if (add_handle(graph_state(whole), &h) || *handle != graph_state(whole)->handle_count)
		lose_conditional(whole);
	return 0;
}

/* ---- nodes ---- */

static struct graph_conditional *new_conditional(
	struct graph_conditional **list, void *node, const struct conditional_node *params)
{
	uint64_t size = sizeof(struct graph_conditional) + params->count * sizeof(void *);
	struct graph_conditional *c = block_new(size);

	if (!c)
		return NULL;
	c->size = size;
	c->node = node;
	c->handle = params->handle;
	c->type = params->type;
	c->count = params->count;
	c->context = params->context ? params->context : current_context();
	c->next = *list;
	*list = c;
	return c;
}

STUB_HIDDEN void graph_conditional_added(
	struct conditional_node *params, struct object *node, struct object *whole)
{
	struct graph_conditional *c = NULL;
	int lost = 0;

	whole = graph_whole(whole);
	if (whole && node)
		c = new_conditional(&graph_state(whole)->conditionals, node->real, params);
	for (unsigned i = 0; c && i < c->count; i++) {
		struct object *body = graph_object(params->graphs[i]);

		if (body)
			body->parent = node;
		lost |= !body;
		c->graphs[i] = body ? (void *)body : params->graphs[i];
	}
	if (c)
		params->graphs = c->graphs;
	if (!c || lost)
		lose_conditional(whole);
}

STUB_HIDDEN void graph_conditionals_gone(struct object *graph)
{
	struct object *whole = graph_whole(graph);
	struct graph_conditional **at, *c;

	if (!whole)
		return;
	at = &graph_state(whole)->conditionals;
	while ((c = *at)) {
		if (!is_dead(object_real(c->graphs[0]))) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		block_free(c, c->size);
	}
}

STUB_HIDDEN void graph_free_conditionals(struct graph_conditional **list)
{
	struct graph_conditional *c;

	while ((c = *list)) {
		*list = c->next;
		block_free(c, c->size);
	}
}

/* ---- copies ---- */

struct copying {
	const struct graph_state *from;
	struct graph_state *pairs; /* NULL: none are wanted */
	struct graph_conditional **list;
};

static int add_pair(struct graph_state *state, void *from, void *to)
{
	if (grow_array((void **)&state->pairs, state->pair_count, &state->pair_bytes,
		    sizeof(*state->pairs)))
		return -1;
	state->pairs[state->pair_count++] = (struct graph_pair){from, to};
	return 0;
}

/* What the driver has cloned, by the order of nodes. */
static int pair_children(const struct copying *c, void *from, void *to)
{
	struct graph_list a, b = {0};
	int r = graph_list_nodes(from, &a) || graph_list_nodes(to, &b) || a.count != b.count
			? -1
			: 0;

	for (size_t i = 0; c->pairs && i < a.count && !r; i++) {
		r = add_pair(c->pairs, a.list[i], b.list[i]);
		if (!r && graph_node_type(a.list[i]) == GRAPH_CHILD)
			r = pair_children(c, graph_child(a.list[i]), graph_child(b.list[i]));
	}
	graph_free_list(&a);
	graph_free_list(&b);
	return r;
}

static int copy_kernel(void **to, void *graph, void *from)
{
	struct kernel_node k = {0};
	int r = DOWN(cuGraphKernelNodeGetParams_v2, WORD(from), WORD(&k));

	if (!r)
		r = DOWN(cuGraphAddKernelNode_v2, WORD(to), WORD(graph), 0, 0, WORD(&k));
	return r ? r : DOWN(cuGraphKernelNodeCopyAttributes, WORD(*to), WORD(from));
}

/* One way for all whose parameters are a structure; @context is a word behind them, or 0. */
static int copy_structure(
	void **to, void *graph, void *from, unsigned get, unsigned add, const void *context)
{
	union graph_params params = {0};
	int r = cuda_call_down(get, WORDS(WORD(from), WORD(&params)));

	if (r)
		return r;
	return cuda_call_down(
		add, WORDS(WORD(to), WORD(graph), 0, 0, WORD(&params), WORD(context)));
}

static int copy_event(void **to, void *graph, void *from, unsigned get, unsigned add)
{
	void *event = NULL;
	int r = cuda_call_down(get, WORDS(WORD(from), WORD(&event)));

	return r ? r : cuda_call_down(add, WORDS(WORD(to), WORD(graph), 0, 0, WORD(event)));
}

static int copy_nodes(const struct copying *c, void *to, void *from, void *context);

/* A child of such a graph may be one that cannot be cloned, either. */
static int copy_child(
	const struct copying *c, void **to, void *graph, void *from, void *context)
{
	const struct copying alone = {.from = c->from, .list = c->list};
	void *child = graph_child(from), *copy = NULL;
	int r = DOWN(cuGraphCreate, WORD(&copy), 0);

	if (r)
		return r;
	r = copy_nodes(&alone, copy, child, context);
	if (!r)
		r = DOWN(cuGraphAddChildGraphNode, WORD(to), WORD(graph), 0, 0, WORD(copy));
	DOWN(cuGraphDestroy, WORD(copy)); /* ours: it is there */
	return r ? r : pair_children(c, child, graph_child(*to));
}

static int copy_conditional(const struct copying *c, void **to, void *graph, void *from)
{
	struct graph_conditional *was = graph_conditional(c->from->conditionals, from), *is;
	struct node_params p = {.type = GRAPH_CONDITIONAL};
	int r;

	if (!was)
		return -1;
	p.params.conditional = (struct conditional_node){.handle = was->handle,
		.type = was->type,
		.count = was->count,
		.context = was->context};
	r = DOWN(cuGraphAddNode_v2, WORD(to), WORD(graph), 0, 0, 0, WORD(&p));
	if (r)
		return r;
	is = new_conditional(c->list, *to, &p.params.conditional);
	for (uint32_t i = 0; is && i < is->count && !r; i++) {
		is->graphs[i] = p.params.conditional.graphs[i];
		r = copy_nodes(c, is->graphs[i], *graph_body(was, i), was->context);
	}
	return is ? r : -1;
}

/* The context of a copy is what the program has said; else that of the conditional node around. */
static const void *context_of(const void *node, const void *context)
{
	const struct object *o = object_find(CUDA_GRAPH_NODE, node);

	return o && o->value ? (const void *)o->value : context;
}

static int copy_node(const struct copying *c, void **to, void *graph, void *from, void *context)
{
	switch (graph_node_type(from)) {
	case GRAPH_KERNEL:
		return copy_kernel(to, graph, from);
	case GRAPH_MEMCPY:
		return copy_structure(to, graph, from, INDEX_cuGraphMemcpyNodeGetParams,
			INDEX_cuGraphAddMemcpyNode, context_of(from, context));
	case GRAPH_MEMSET:
		return copy_structure(to, graph, from, INDEX_cuGraphMemsetNodeGetParams,
			INDEX_cuGraphAddMemsetNode, context_of(from, context));
	case GRAPH_HOST:
		return copy_structure(to, graph, from, INDEX_cuGraphHostNodeGetParams,
			INDEX_cuGraphAddHostNode, NULL);
	case GRAPH_BATCH_MEM_OP:
		return copy_structure(to, graph, from, INDEX_cuGraphBatchMemOpNodeGetParams,
			INDEX_cuGraphAddBatchMemOpNode, NULL);
	case GRAPH_SIGNAL:
		return copy_structure(to, graph, from,
			INDEX_cuGraphExternalSemaphoresSignalNodeGetParams,
			INDEX_cuGraphAddExternalSemaphoresSignalNode, NULL);
	case GRAPH_WAIT:
		return copy_structure(to, graph, from,
			INDEX_cuGraphExternalSemaphoresWaitNodeGetParams,
			INDEX_cuGraphAddExternalSemaphoresWaitNode, NULL);
	case GRAPH_WAIT_EVENT:
		return copy_event(to, graph, from, INDEX_cuGraphEventWaitNodeGetEvent,
			INDEX_cuGraphAddEventWaitNode);
	case GRAPH_EVENT_RECORD:
		return copy_event(to, graph, from, INDEX_cuGraphEventRecordNodeGetEvent,
			INDEX_cuGraphAddEventRecordNode);
	case GRAPH_CHILD:
		return copy_child(c, to, graph, from, context);
	case GRAPH_EMPTY:
		return DOWN(cuGraphAddEmptyNode, WORD(to), WORD(graph), 0, 0);
	case GRAPH_CONDITIONAL:
		return copy_conditional(c, to, graph, from);
	}
	return -1;
}

/* ---- edges ---- */

static void *made_of(const struct graph_list *n, void *const *made, const void *node)
{
	for (size_t i = 0; i < n->count; i++)
		if (n->list[i] == node)
			return made[i];
	return NULL;
}

/* Those to node @i of @n, in their order: the driver pairs nodes by it when one graph is updated from
 * another. */
static int copy_edges(void *graph, const struct graph_list *n, void *const *made, size_t i)
{
	uint64_t *data, bytes;
	void **from, **to;
	size_t count = 0;
	int r = DOWN(cuGraphNodeGetDependencies_v2, WORD(n->list[i]), 0, 0, WORD(&count));

	if (r || !count)
		return r;
	bytes = 3 * count * sizeof(void *);
	from = block_new(bytes);
	if (!from)
		return -1;
	to = from + count;
	data = (uint64_t *)(to + count);
	r = DOWN(cuGraphNodeGetDependencies_v2, WORD(n->list[i]), WORD(from), WORD(data),
		WORD(&count));
	for (size_t j = 0; j < count && !r; j++) {
		from[j] = made_of(n, made, from[j]);
		to[j] = made[i];
	}
	if (!r)
		r = DOWN(cuGraphAddDependencies_v2, WORD(graph), WORD(from), WORD(to),
			WORD(data), count);
	block_free(from, bytes);
	return r;
}

static int copy_nodes(const struct copying *c, void *to, void *from, void *context)
{
	struct graph_list n;
	void **made = NULL;
	int r = graph_list_nodes(from, &n);

	if (!r && n.count) {
		made = block_new(n.size);
		r = made ? 0 : -1;
	}
	for (size_t i = 0; i < n.count && !r; i++) {
		r = copy_node(c, &made[i], to, n.list[i], context);
		if (!r && c->pairs)
			r = add_pair(c->pairs, n.list[i], made[i]);
	}
	for (size_t i = 0; i < n.count && !r; i++)
		r = copy_edges(to, &n, made, i);
	if (made)
		block_free(made, n.size);
	graph_free_list(&n);
	return r;
}

/* ---- whole graphs ---- */

static int copy_handles(void *graph, const struct graph_state *from)
{
	for (uint64_t i = 0; i < from->handle_count; i++) {
		const struct graph_handle *h = &from->handles[i];
		uint64_t handle = 0;

		if (DOWN(cuGraphConditionalHandleCreate, WORD(&handle), WORD(graph),
			    WORD(h->context), h->value, h->flags) ||
			handle != i + 1)
			return -1;
	}
	return 0;
}

static void *copy_graph(const struct copying *c, void *from)
{
	void *graph = NULL;

	if (!c->from->handle_count || DOWN(cuGraphCreate, WORD(&graph), 0))
		return NULL;
	if (!copy_handles(graph, c->from) &&
		!copy_nodes(c, graph, from, c->from->handles[0].context))
		return graph;
	DOWN(cuGraphDestroy, WORD(graph)); /* ours: it is there */
	graph_free_conditionals(c->list);
	return NULL;
}

static int take_handles(struct graph_state *state, const struct graph_state *from)
{
	state->handle_count = 0;
	for (uint64_t i = 0; i < from->handle_count; i++)
		if (add_handle(state, &from->handles[i]))
			return -1;
	return 0;
}

STUB_HIDDEN void *graph_copy_snapshot(struct graph_state *state, const struct object *graph)
{
	const struct copying c = {graph_state(graph), state, &state->conditionals};
	void *copy = take_handles(state, c.from) ? NULL : copy_graph(&c, graph->real);

	state->paired = copy != NULL;
	return copy;
}

STUB_HIDDEN void *graph_copy_update(struct graph_state *state, const struct object *graph)
{
	const struct copying c = {graph_state(graph), NULL, &state->update_conditionals};

	if (c.from->handle_count != state->handle_count || take_handles(state, c.from))
		return NULL;
	return copy_graph(&c, graph->real);
}
