/*
 * Nodes of graphs that allocate and free memory, built or captured: an empty node stands for each in the driver's
 * graph, and the memory is that of graph_memory.c.
 */
#include "shared/raw.h"
#include "stubs/cuda/graph_memory.h"

#include "cuda.index.h"

#define DOWN(name, ...) cuda_call_down(INDEX_##name, WORDS(__VA_ARGS__))

#define RELAXED     2 /* CU_STREAM_CAPTURE_MODE_RELAXED */
#define SET         1 /* CU_STREAM_SET_CAPTURE_DEPENDENCIES */
#define ACTIVE      1 /* CU_STREAM_CAPTURE_STATUS_ACTIVE */
#define INVALIDATED 2 /* CU_STREAM_CAPTURE_STATUS_INVALIDATED */

/* ---- nodes ---- */

static int allocates(const struct graph_memory_node *list, const struct graph_memory *m)
{
	while (list && (list->frees || list->memory != m))
		list = list->next;
	return list != NULL;
}

STUB_HIDDEN int graph_memory_note_node(
	struct graph_state *state, void *node, struct graph_memory *m, uint64_t size, int frees)
{
	struct graph_memory_node *n = block_new(sizeof(*n));
	uint64_t mask;

	if (!n)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*n = (struct graph_memory_node){.node = node,
		.memory = m,
		.size = size,
		.frees = frees,
		.reused = frees && node && !allocates(state->memory_nodes, m)};
	mask = state_lock();
	n->next = state->memory_nodes;
	__atomic_store_n(&state->memory_nodes, n, __ATOMIC_RELEASE);
	state_unlock(mask);
	return 0;
}

/* A graph that allocates @m frees it as often at most; another one, once. */
static int is_freed(const struct object *graph, const struct graph_memory *m)
{
	const struct graph_memory_node *n = NULL;
	unsigned allocated = 0, freed = 0;

	if (graph && graph->kind == CUDA_GRAPH && !is_dead(graph->real))
		n = graph_state(graph)->memory_nodes;
	for (; n; n = n->next)
		if (n->memory == m)
			*(n->frees ? &freed : &allocated) += 1;
	return freed >= (allocated ? allocated : 1);
}

static void free_node(struct graph_memory_node *n)
{
	graph_memory_drop(n->memory);
	block_free(n, sizeof(*n));
}

STUB_HIDDEN void graph_memory_free_nodes(struct graph_memory_node *list)
{
	struct graph_memory_node *n;

	while ((n = list)) {
		list = n->next;
		free_node(n);
	}
}

STUB_HIDDEN void graph_memory_gone(struct graph_state *state)
{
	graph_memory_free_nodes(state->memory_nodes);
	graph_mark_release(state->mark, cuda_call_down);
}

STUB_HIDDEN void graph_memory_node_gone(struct object *graph, const void *node)
{
	struct graph_memory_node **at, *n;

	if (!graph || graph->kind != CUDA_GRAPH)
		return;
	for (at = &graph_state(graph)->memory_nodes; (n = *at); at = &n->next)
		if (n->node == node) {
			*at = n->next;
			free_node(n);
			return;
		}
}

static const struct graph_memory_node *find_node(const void *handle)
{
	const struct object *o = graph_argument(CUDA_GRAPH_NODE, (void *)handle);
	const struct graph_memory_node *n = NULL;

	if (o && o->parent && o->parent->kind == CUDA_GRAPH)
		n = graph_state(o->parent)->memory_nodes;
	while (n && n->node != o->real)
		n = n->next;
	return n;
}

/* After the empty node has been added to @graph as the real @node. */
static int node_added(
	struct object *graph, void *node, struct graph_memory *m, uint64_t size, int frees)
{
	int r = graph ? graph_memory_note_node(graph_state(graph), node, m, size, frees)
		      : CUDA_ERROR_OUT_OF_MEMORY;

	if (r)
		graph_memory_drop(m);
	return r;
}

/* A graph inside another one cannot have them, natively neither. */
static int may_have(const struct object *graph)
{
	return graph && !graph->parent;
}

/* A node for @m, of which a reference comes with it. */
static int add_node(void **node, void *graph, void *const *dependencies, const void *edges,
	size_t count, struct graph_memory *m, uint64_t size, int frees)
{
	struct object *whole = graph_argument(CUDA_GRAPH, graph);
	struct node_params empty = {.type = GRAPH_EMPTY};
	int r = !may_have(whole) ? CUDA_ERROR_NOT_SUPPORTED
		: edges          ? graph_call(INDEX_cuGraphAddNode_v2,
					   WORDS(WORD(node), WORD(graph), WORD(dependencies),
						   WORD(edges), count, WORD(&empty)))
				 : graph_call(INDEX_cuGraphAddEmptyNode,
					   WORDS(WORD(node), WORD(graph), WORD(dependencies), count));

	if (r) {
		graph_memory_drop(m);
		return r;
	}
	return node_added(whole, graph_argument(CUDA_GRAPH_NODE, *node)->real, m, size, frees);
}

/* ---- memory that a node before has freed ---- */

#define NODES_BEFORE 256 /* that are looked at */

struct before {
	void *nodes[NODES_BEFORE];
	size_t count;
};

static int add_before(struct before *b, void *node)
{
	for (size_t i = 0; i < b->count; i++)
		if (b->nodes[i] == node)
			return 0;
	if (b->count == NODES_BEFORE)
		return -1;
	b->nodes[b->count++] = node;
	return 0;
}

/* Nodes of a graph whose memory would do. */
struct freed {
	struct graph_memory_node *nodes[NODES_BEFORE];
	size_t count;
};

static void find_freed(
	struct freed *f, const struct graph_state *state, const struct graph_allocation *p)
{
	f->count = 0;
	for (struct graph_memory_node *n = state->memory_nodes; n && f->count < NODES_BEFORE;
		n = n->next)
		if (n->frees && !n->reused && n->memory->params.size >= p->size &&
			n->memory->params.device == p->device)
			f->nodes[f->count++] = n;
}

static struct graph_memory *take_freed(const struct freed *f, const void *node)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->nodes[i]->node == node) {
			f->nodes[i]->reused = 1;
			graph_memory_refer(f->nodes[i]->memory);
			return f->nodes[i]->memory;
		}
	return NULL;
}

/* As the driver has it, a node gets the address of what nodes have freed that it depends on. NULL: there is
 * none, or it is too far away. */
static struct graph_memory *freed_before(struct object *graph, void *const *dependencies,
	size_t count, const struct graph_allocation *p)
{
	struct graph_memory *m = NULL;
	struct before b;
	struct freed f;
	int full = 0;

	b.count = 0;
	find_freed(&f, graph_state(graph), p);
	for (size_t i = 0; i < count && f.count && !full; i++)
		full = add_before(&b, object_real(dependencies[i]));
	for (size_t i = 0; i < b.count && !m && !full; i++) {
		void *list[NODES_BEFORE] = {NULL};
		size_t n = NODES_BEFORE;

		m = take_freed(&f, b.nodes[i]);
		if (m || DOWN(cuGraphNodeGetDependencies, WORD(b.nodes[i]), WORD(list),
				 WORD(&n)))
			break;
		for (size_t j = 0; j < n && j < NODES_BEFORE && !full; j++)
			full = add_before(&b, list[j]);
	}
	return m;
}

static int find_room(struct object *graph, void *const *dependencies, size_t count,
	const struct graph_allocation *p, struct graph_memory **m)
{
	*m = graph && graph->kind == CUDA_GRAPH ? freed_before(graph, dependencies, count, p)
						: NULL;
	return *m ? 0 : graph_memory_new(p, m);
}

STUB_HIDDEN int graph_add_allocation(void **node, void *graph, void *const *dependencies,
	const void *edges, size_t count, struct graph_allocation *params)
{
	struct graph_memory *m;
	int r;

	if (!node || !params || !graph_memory_is_supported(params))
		return CUDA_ERROR_INVALID_VALUE;
	r = find_room(graph_argument(CUDA_GRAPH, graph), dependencies, count, params, &m);
	if (r)
		return r;
	params->address = m->params.address;
	return add_node(node, graph, dependencies, edges, count, m, params->size, 0);
}

STUB_HIDDEN int graph_add_free(void **node, void *graph, void *const *dependencies,
	const void *edges, size_t count, uint64_t address)
{
	struct graph_memory *m = graph_memory_find(address);

	if (!node || !m || is_freed(graph_argument(CUDA_GRAPH, graph), m)) {
		if (m)
			graph_memory_drop(m);
		return CUDA_ERROR_INVALID_VALUE;
	}
	return add_node(node, graph, dependencies, edges, count, m, 0, 1);
}

int body_cuGraphAddMemAllocNode(void **node, void *graph, void *const *dependencies,
	size_t count, struct graph_allocation *params)
{
	return graph_add_allocation(node, graph, dependencies, NULL, count, params);
}

int body_cuGraphAddMemFreeNode(
	void **node, void *graph, void *const *dependencies, size_t count, uint64_t address)
{
	return graph_add_free(node, graph, dependencies, NULL, count, address);
}

int body_cuGraphMemAllocNodeGetParams(void *node, struct graph_allocation *params)
{
	const struct graph_memory_node *n = find_node(node);

	if (!n || n->frees || !params)
		return CUDA_ERROR_INVALID_VALUE;
	*params = n->memory->params;
	params->size = n->size;
	return 0;
}

int body_cuGraphMemFreeNodeGetParams(void *node, uint64_t *address)
{
	const struct graph_memory_node *n = find_node(node);

	if (!n || !n->frees || !address)
		return CUDA_ERROR_INVALID_VALUE;
	*address = n->memory->params.address;
	return 0;
}

int body_cuGraphNodeGetType(void *node, int *type)
{
	int r = graph_call(INDEX_cuGraphNodeGetType, WORDS(WORD(node), WORD(type)));
	const struct graph_memory_node *n = r || *type != GRAPH_EMPTY ? NULL : find_node(node);

	if (n)
		*type = n->frees ? GRAPH_FREE : GRAPH_ALLOCATION;
	return r;
}

/* ---- captures ---- */

struct capture {
	void *stream, *graph, *const *dependencies; /* real */
	size_t count;
	struct object *whole;
};

static int ask_capture(struct capture *c, void *stream)
{
	uint64_t id = 0;
	int status = 0, r;

	*c = (struct capture){.stream = object_real(stream)};
	r = DOWN(cuStreamGetCaptureInfo_v2, WORD(c->stream), WORD(&status), WORD(&id),
		WORD(&c->graph), WORD(&c->dependencies), WORD(&c->count));
	if (!r && status == INVALIDATED)
		r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (r || status != ACTIVE)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	c->whole = object_find(CUDA_GRAPH, c->graph);
	if (c->whole)
		return may_have(c->whole) ? 0 : CUDA_ERROR_NOT_SUPPORTED;
	c->whole = graph_object(c->graph);
	if (!c->whole)
		return CUDA_ERROR_OUT_OF_MEMORY;
	graph_state(c->whole)->capturing = (uint64_t)stream + 1;
	return 0;
}

/* Put an empty node behind what the stream has captured so far. */
static int capture_node(
	const struct capture *c, struct graph_memory *m, uint64_t size, int frees)
{
	void *node = NULL;
	int r = DOWN(cuGraphAddEmptyNode, WORD(&node), WORD(c->graph), WORD(c->dependencies),
		c->count);

	if (!r)
		r = DOWN(cuStreamUpdateCaptureDependencies, WORD(c->stream), WORD(&node), 1,
			SET);
	if (r) {
		graph_memory_drop(m);
		return r;
	}
	return node_added(c->whole, node, m, size, frees);
}

/* Memory may be mapped meanwhile: it is no work that could be captured. */
static int find_room_in_capture(
	const struct capture *c, const struct graph_allocation *p, struct graph_memory **m)
{
	int mode = RELAXED, r = DOWN(cuThreadExchangeStreamCaptureMode, WORD(&mode));

	if (r)
		return r;
	r = find_room(c->whole, c->dependencies, c->count, p, m);
	DOWN(cuThreadExchangeStreamCaptureMode, WORD(&mode)); /* as it did before */
	return r;
}

int graph_capture_allocation(uint64_t *address, size_t size, int device, void *stream)
{
	const struct graph_allocation p = {
		.kind = PINNED, .location = LOCATION_DEVICE, .device = device, .size = size};
	struct graph_memory *m = NULL;
	struct capture c;
	int r;

	if (!address || !graph_memory_is_supported(&p))
		return CUDA_ERROR_INVALID_VALUE;
	r = ask_capture(&c, stream);
	if (!r)
		r = find_room_in_capture(&c, &p, &m);
	if (r)
		return r;
	*address = m->params.address;
	return capture_node(&c, m, size, 0);
}

int graph_capture_free(uint64_t address, void *stream)
{
	struct graph_memory *m = graph_memory_find(address);
	struct capture c;
	int r;

	if (!m)
		return CUDA_ERROR_INVALID_VALUE;
	r = ask_capture(&c, stream);
	if (!r && is_freed(c.whole, m))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		return capture_node(&c, m, 0, 1);
	graph_memory_drop(m);
	return r;
}
