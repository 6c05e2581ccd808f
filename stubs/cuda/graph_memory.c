/*
 * Nodes of graphs that allocate and free memory. The driver would give addresses that a new driver does not give
 * again, and that kernels of the graph have among their arguments. So the memory is ours, as all that the program
 * allocates (doc/gpu-memory.md): it gets its address when the node is added, as natively, and is there as long as
 * the graph or an executable of it, or until it is freed after these. In the driver's graph an empty node stands
 * for the node.
 */
#include "shared/raw.h"
#include "stubs/cuda/graphs.h"
#include "stubs/cuda/memory.h"

#include "cuda.index.h"

#define DOWN(name, ...) cuda_call_down(INDEX_##name, WORDS(__VA_ARGS__))

#define LOCATION_DEVICE 1 /* CU_MEM_LOCATION_TYPE_DEVICE */
#define PINNED          1 /* CU_MEM_ALLOCATION_TYPE_PINNED */
#define RELAXED         2 /* CU_STREAM_CAPTURE_MODE_RELAXED */
#define SET             1 /* CU_STREAM_SET_CAPTURE_DEPENDENCIES */
#define ACTIVE          1 /* CU_STREAM_CAPTURE_STATUS_ACTIVE */

/* CUgraphMem_attribute */
enum { USED, USED_HIGH, RESERVED, RESERVED_HIGH };

/* ---- the memory ---- */

static uint64_t sum(uint32_t device, int attribute)
{
	uint64_t bytes = 0;

	for (const struct graph_memory *m = CUDA_STATE->graph_memory; m; m = m->next)
		if (m->params.device == device && (attribute == RESERVED || m->live))
			bytes += m->params.size;
	return bytes;
}

/* Under the lock. */
static void note_high(uint32_t device)
{
	uint64_t *high = CUDA_STATE->graph_memory_high[device];

	for (int i = 0; i < 2; i++) {
		uint64_t now = sum(device, i ? RESERVED : USED);

		if (now > high[i])
			high[i] = now;
	}
}

static int is_supported(const struct graph_allocation *p)
{
	return p->kind == PINNED && !p->handle_types && p->location == LOCATION_DEVICE &&
	       p->device < CUDA_STATE->device_count && p->device < MMU_DEVICES && p->size;
}

static int grant(struct memory_state *s, const struct graph_allocation *p)
{
	uint32_t peers = s->mmu.devices[p->device].peers;

	for (uint64_t i = 0; i < p->access_count; i++)
		if (p->access[i].location == LOCATION_DEVICE &&
			p->access[i].device < MMU_DEVICES && p->access[i].device != p->device)
			peers |= 1u << p->access[i].device;
	return peers == s->mmu.devices[p->device].peers
		       ? 0
		       : mmu_set_peers(&s->mmu, &memory_driver, p->device, peers);
}

/* Of the graph that the caller adds a node to: one reference. */
static int new_memory(const struct graph_allocation *p, struct graph_memory **memory)
{
	struct graph_memory *m = block_new(sizeof(*m));
	struct memory_state *s = m ? memory_lock(1) : NULL;
	struct mmu_allocation *a = NULL;
	uint64_t mask;
	int r = s ? memory_new(s, p->device, p->size, current_context(), &a)
		  : CUDA_ERROR_OUT_OF_MEMORY;

	if (!r) {
		a->flags = MEMORY_OF_GRAPH;
		r = grant(s, p);
		if (r)
			memory_give(s, a);
	}
	if (s)
		memory_unlock(s);
	if (r) {
		if (m)
			block_free(m, sizeof(*m));
		return r;
	}
	*m = (struct graph_memory){.params = *p, .id = a->id, .references = 1};
	m->params.address = a->address;
	m->params.access = NULL;
	m->params.access_count = 0;
	mask = state_lock();
	m->next = CUDA_STATE->graph_memory;
	CUDA_STATE->graph_memory = m;
	note_high(p->device);
	state_unlock(mask);
	*memory = m;
	return 0;
}

static struct graph_memory *find_memory(uint64_t address)
{
	uint64_t mask = state_lock();
	struct graph_memory *m = CUDA_STATE->graph_memory;

	while (m && m->params.address != address)
		m = m->next;
	state_unlock(mask);
	return m;
}

/* The memory of @m as other memory of the program's, or given back: it may be gone with its context. */
static void leave_memory(const struct graph_memory *m)
{
	struct memory_state *s = memory_lock(0);
	struct mmu_allocation *a = s ? mmu_find(&s->mmu, m->params.address) : NULL;
	int is_ours = a && a->id == m->id;

	if (is_ours)
		a->flags &= ~MEMORY_OF_GRAPH;
	if (is_ours && !m->live && !m->launched)
		memory_give(s, a);
	if (s)
		memory_unlock(s);
	if (is_ours && !m->live && m->launched)
		memory_free_behind(
			m->params.address, m->stream); /* what cannot be freed now stays */
}

static void drop_memory(struct graph_memory *m)
{
	uint64_t mask = state_lock();
	struct graph_memory **at = &CUDA_STATE->graph_memory;
	int last = !--m->references;

	while (last && *at != m)
		at = &(*at)->next;
	if (last)
		*at = m->next;
	state_unlock(mask);
	if (!last)
		return;
	leave_memory(m);
	block_free(m, sizeof(*m));
}

STUB_HIDDEN int graph_memory_freed(uint64_t address)
{
	struct graph_memory *m = find_memory(address);

	return m && __atomic_exchange_n(&m->live, 0, __ATOMIC_ACQ_REL)
		       ? 0
		       : CUDA_ERROR_INVALID_VALUE;
}

/* ---- nodes ---- */

static int add_to(
	struct graph_state *state, void *node, struct graph_memory *m, uint64_t size, int frees)
{
	struct graph_memory_node *n = block_new(sizeof(*n));
	uint64_t mask;

	if (!n)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*n = (struct graph_memory_node){
		.node = node, .memory = m, .size = size, .frees = frees};
	mask = state_lock();
	n->next = state->memory_nodes;
	__atomic_store_n(&state->memory_nodes, n, __ATOMIC_RELEASE);
	state_unlock(mask);
	return 0;
}

static void refer(struct graph_memory *m)
{
	__atomic_add_fetch(&m->references, 1, __ATOMIC_RELAXED);
}

static void free_node(struct graph_memory_node *n)
{
	drop_memory(n->memory);
	block_free(n, sizeof(*n));
}

STUB_HIDDEN void graph_memory_gone(struct graph_state *state)
{
	struct graph_memory_node *n;

	while ((n = state->memory_nodes)) {
		state->memory_nodes = n->next;
		free_node(n);
	}
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
	int r = graph ? add_to(graph_state(graph), node, m, size, frees)
		      : CUDA_ERROR_OUT_OF_MEMORY;

	if (r)
		drop_memory(m);
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
		drop_memory(m);
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

static struct graph_memory *take_freed(
	struct graph_state *state, const void *node, const struct graph_allocation *p)
{
	for (struct graph_memory_node *n = state->memory_nodes; n; n = n->next) {
		struct graph_memory *m = n->memory;

		if (n->node != node || !n->frees || n->reused || m->params.size < p->size ||
			m->params.device != p->device)
			continue;
		n->reused = 1;
		refer(m);
		return m;
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
	int full = 0;

	b.count = 0;
	if (!graph_state(graph)->memory_nodes)
		return NULL;
	for (size_t i = 0; i < count && !full; i++)
		full = add_before(&b, object_real(dependencies[i]));
	for (size_t i = 0; i < b.count && !m && !full; i++) {
		void *list[NODES_BEFORE] = {NULL};
		size_t n = NODES_BEFORE;

		m = take_freed(graph_state(graph), b.nodes[i], p);
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
	return *m ? 0 : new_memory(p, m);
}

STUB_HIDDEN int graph_add_allocation(void **node, void *graph, void *const *dependencies,
	const void *edges, size_t count, struct graph_allocation *params)
{
	struct graph_memory *m;
	int r;

	if (!node || !params || !is_supported(params))
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
	struct graph_memory *m = find_memory(address);

	if (!node || !m)
		return CUDA_ERROR_INVALID_VALUE;
	refer(m);
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
	if (r || status != ACTIVE)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	c->whole = object_find(CUDA_GRAPH, c->graph);
	if (c->whole)
		return 0;
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
		drop_memory(m);
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

	if (!address || !is_supported(&p))
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
	struct graph_memory *m = find_memory(address);
	struct capture c;
	int r;

	if (!m)
		return CUDA_ERROR_INVALID_VALUE;
	r = ask_capture(&c, stream);
	if (r)
		return r;
	refer(m);
	return capture_node(&c, m, 0, 1);
}

/* ---- executable graphs ---- */

STUB_HIDDEN int graph_memory_is_held(const struct object *graph)
{
	if (!graph || graph->kind != CUDA_GRAPH || !graph_state(graph)->memory_nodes)
		return 0;
	for (const struct object *o = CUDA_STATE->objects; o; o = o->next)
		if (o->kind == CUDA_GRAPH_EXEC && graph_origin(graph_state(o)) == graph)
			return 1;
	return 0;
}

STUB_HIDDEN int graph_memory_take(struct graph_state *state, const struct object *graph)
{
	for (const struct graph_memory_node *n = graph_state(graph)->memory_nodes; n;
		n = n->next) {
		if (add_to(state, NULL, n->memory, n->size, n->frees))
			return -1;
		refer(n->memory);
	}
	return 0;
}

/* Without a free in between, memory cannot be allocated twice. */
static int may_launch(const struct graph_memory_node *list)
{
	for (const struct graph_memory_node *n = list; n; n = n->next)
		if (!n->frees && n->memory->live)
			return 0;
	return 1;
}

/* Several nodes may have had the memory one after the other. */
static void launched(struct graph_memory_node *list, void *stream, int auto_free)
{
	uint64_t mask = state_lock();

	for (struct graph_memory_node *n = list; n; n = n->next) {
		n->memory->launched = 1;
		n->memory->stream = stream;
		if (!n->frees && auto_free)
			n->memory->live = 0;
	}
	for (struct graph_memory_node *n = list; n; n = n->next)
		n->memory->live += !n->frees;
	for (struct graph_memory_node *n = list; n; n = n->next)
		note_high(n->memory->params.device);
	for (struct graph_memory_node *n = list; n; n = n->next)
		n->memory->live -= n->frees && n->memory->live;
	state_unlock(mask);
}

#define AUTO_FREE 1 /* CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH */

/* @named: the stream as the program holds it. */
static int launch_with_memory(unsigned index, const struct object *o, void *stream, void *named)
{
	int (*launch)(void *, void *) = (int (*)(void *, void *))cuda_targets[index];
	int (*flags_of)(void *, uint64_t *) =
		(int (*)(void *, uint64_t *))cuda_targets[INDEX_cuGraphExecGetFlags];
	int (*capturing)(void *, int *) =
		(int (*)(void *, int *))cuda_targets[INDEX_cuStreamIsCapturing];
	struct graph_memory_node *list = graph_state(o)->memory_nodes;
	uint64_t flags = 0;
	int status = 0, r = flags_of(o->real, &flags);

	if (!r)
		r = capturing(stream, &status);
	if (r)
		return r;
	if (status)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!(flags & AUTO_FREE) && !may_launch(list))
		return CUDA_ERROR_INVALID_VALUE;
	r = launch(o->real, stream);
	if (!r)
		launched(list, named, flags & AUTO_FREE);
	return r;
}

/* Runs behind the crossing. */
static int launch(unsigned index, void *executable, void *stream)
{
	const struct object *o = in_records_window((uintptr_t)executable) ? executable : NULL;
	void *named = stream                         ? stream
		      : index == INDEX_cuGraphLaunch ? STREAM_LEGACY
						     : STREAM_PER_THREAD;

	executable = object_real(executable);
	stream = object_real(stream);
	if (is_dead(executable) || is_dead(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (o && o->kind == CUDA_GRAPH_EXEC && graph_state(o)->memory_nodes)
		return launch_with_memory(index, o, stream, named);
	return ((int (*)(void *, void *))cuda_targets[index])(executable, stream);
}

int inner_cuGraphLaunch(void *executable, void *stream)
{
	return launch(INDEX_cuGraphLaunch, executable, stream);
}

int inner_cuGraphLaunch_ptsz(void *executable, void *stream)
{
	return launch(INDEX_cuGraphLaunch_ptsz, executable, stream);
}

/* ---- attributes ---- */

int body_cuDeviceGetGraphMemAttribute(int device, int attribute, uint64_t *value)
{
	int r = real_cuDeviceGetGraphMemAttribute(device, attribute, value);
	uint64_t mask;

	if (r || (unsigned)device >= CUDA_DEVICES || !state_usable())
		return r;
	mask = state_lock();
	if (attribute == USED || attribute == RESERVED)
		*value += sum(device, attribute);
	else if (attribute == USED_HIGH || attribute == RESERVED_HIGH)
		*value += CUDA_STATE->graph_memory_high[device][attribute == RESERVED_HIGH];
	state_unlock(mask);
	return 0;
}

/* They can be set to 0 only. */
int body_cuDeviceSetGraphMemAttribute(int device, int attribute, const uint64_t *value)
{
	int r = real_cuDeviceSetGraphMemAttribute(device, attribute, value);
	uint64_t mask;

	if (r || (unsigned)device >= CUDA_DEVICES || !state_usable())
		return r;
	mask = state_lock();
	CUDA_STATE->graph_memory_high[device][attribute == RESERVED_HIGH] =
		sum(device, attribute == RESERVED_HIGH ? RESERVED : USED);
	state_unlock(mask);
	return 0;
}
