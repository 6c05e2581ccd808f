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
#define INVALIDATED     2 /* CU_STREAM_CAPTURE_STATUS_INVALIDATED */

/* CUgraphMem_attribute */
enum { USED, USED_HIGH, RESERVED, RESERVED_HIGH };

/* ---- the memory ---- */

static uint64_t sum(uint32_t device, int attribute)
{
	uint64_t bytes = 0;

	for (const struct graph_memory *m = CUDA_STATE->graph_memory; m; m = m->next)
		if (m->id && m->params.device == device && (attribute == RESERVED || m->live))
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
	int r;

	if (s && s->pending)
		memory_collect(s, 0);
	r = s ? memory_new(s, p->device, p->size, current_context(), &a)
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

static int is_there(const struct memory_state *s, const struct graph_memory *m)
{
	const struct mmu_allocation *a = mmu_find(&s->mmu, m->params.address);

	return a && a->id == m->id;
}

/* With a reference, which the caller drops; NULL: there is none. */
static struct graph_memory *find_memory(uint64_t address)
{
	uint64_t mask = state_lock();
	struct graph_memory *m = CUDA_STATE->graph_memory;

	while (m && (!m->id || m->params.address != address))
		m = m->next;
	if (m)
		m->references++;
	state_unlock(mask);
	return m;
}

/* Give the memory of @m back: at once, or when what may be using it has come to an end. */
static void leave_memory(const struct graph_memory *m)
{
	struct memory_state *s = memory_lock(0);
	struct mmu_allocation *a =
		s && m->id && is_there(s, m) ? mmu_find(&s->mmu, m->params.address) : NULL;
	int r = 0;

	if (a)
		a->flags &= ~MEMORY_OF_GRAPH;
	if (a && m->mark && m->mark->event) {
		a->state = MMU_PENDING;
		r = memory_give_behind(s, a, m->mark);
		if (r)
			a->state = MMU_LIVE;
		else
			memory_collect(s, 0);
	} else if (a && m->launched && !m->mark) {
		r = -1;
	} else if (a) {
		memory_give(s, a);
	}
	if (s)
		memory_unlock(s);
	if (r)
		memory_free(m->params.address); /* waits; what cannot be freed now stays */
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
	graph_mark_release(m->mark, cuda_call_down);
	block_free(m, sizeof(*m));
}

static void set_mark(struct graph_memory *m, struct graph_mark *mark, driver_call *call)
{
	struct graph_mark *old = m->mark;
	uint64_t mask;

	if (mark && mark == old)
		return;
	if (mark)
		graph_mark_hold(mark);
	mask = state_lock();
	old = m->mark;
	m->mark = mark;
	m->launched = 1;
	state_unlock(mask);
	graph_mark_release(old, call);
}

/* ---- freed by the program ---- */

/* Until nothing uses memory of the context that has it. */
static int wait_for_users(const struct graph_memory *m)
{
	struct memory_state *s = memory_lock(0);
	const struct mmu_allocation *a = s ? mmu_find(&s->mmu, m->params.address) : NULL;
	void *context = a ? a->context : NULL;

	if (s)
		memory_unlock(s);
	return memory_synchronise(context);
}

/* The caller has a reference of its own. */
static int end_life(struct graph_memory *m)
{
	uint64_t mask = state_lock();
	int r = m->live ? 0 : CUDA_ERROR_INVALID_VALUE;

	m->references -= m->live != 0;
	m->live = 0;
	state_unlock(mask);
	return r;
}

STUB_HIDDEN int graph_memory_freed(uint64_t address)
{
	struct graph_memory *m = find_memory(address);
	int r = m && m->live ? wait_for_users(m) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		r = end_life(m);
	if (m)
		drop_memory(m);
	return r;
}

STUB_HIDDEN int graph_memory_freed_behind(uint64_t address, void *stream)
{
	struct graph_memory *m = find_memory(address);
	struct graph_mark *mark = NULL;
	int r = m && m->live ? 0 : CUDA_ERROR_INVALID_VALUE;

	if (!r) {
		mark = graph_mark_new(object_real(stream), cuda_call_down);
		r = mark ? 0 : wait_for_users(m);
	}
	if (!r)
		r = end_life(m);
	if (!r && mark)
		set_mark(m, mark, cuda_call_down);
	graph_mark_release(mark, cuda_call_down);
	if (m)
		drop_memory(m);
	return r;
}

/* One whose memory is no more, with a reference; NULL: there is none. */
static struct graph_memory *take_gone(const struct memory_state *s)
{
	uint64_t mask = state_lock();
	struct graph_memory *m = CUDA_STATE->graph_memory;

	while (m && (!m->id || is_there(s, m)))
		m = m->next;
	if (m) {
		m->references += !m->live;
		m->live = 0;
		m->id = 0;
	}
	state_unlock(mask);
	return m;
}

STUB_HIDDEN void graph_memory_context_gone(void)
{
	struct graph_memory *m = NULL;
	struct memory_state *s;

	do {
		s = memory_lock(0);
		m = s ? take_gone(s) : NULL;
		if (s)
			memory_unlock(s);
		if (m)
			drop_memory(m);
	} while (m);
}

/* ---- nodes ---- */

static int allocates(const struct graph_memory_node *list, const struct graph_memory *m)
{
	while (list && (list->frees || list->memory != m))
		list = list->next;
	return list != NULL;
}

static int add_to(
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

static void refer(struct graph_memory *m)
{
	uint64_t mask = state_lock();

	m->references++;
	state_unlock(mask);
}

static void free_node(struct graph_memory_node *n)
{
	drop_memory(n->memory);
	block_free(n, sizeof(*n));
}

static void free_nodes(struct graph_memory_node *list)
{
	struct graph_memory_node *n;

	while ((n = list)) {
		list = n->next;
		free_node(n);
	}
}

STUB_HIDDEN void graph_memory_gone(struct graph_state *state)
{
	free_nodes(state->memory_nodes);
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
			refer(f->nodes[i]->memory);
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

	if (!node || !m) {
		if (m)
			drop_memory(m);
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
	if (!r)
		return capture_node(&c, m, 0, 1);
	drop_memory(m);
	return r;
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
	struct graph_memory_node *before = state->memory_nodes, **end = &state->memory_nodes;
	const struct graph_memory_node *n = graph_state(graph)->memory_nodes;

	state->memory_nodes = NULL;
	for (; n && !add_to(state, NULL, n->memory, n->size, n->frees); n = n->next)
		refer(n->memory);
	if (!n) {
		free_nodes(before);
		return 0;
	}
	while (*end)
		end = &(*end)->next;
	*end = before;
	return -1;
}

/* Without a free in between, memory cannot be allocated twice. */
static int may_launch(const struct graph_memory_node *list)
{
	for (const struct graph_memory_node *n = list; n; n = n->next)
		if (!n->frees && n->memory->live)
			return 0;
	return 1;
}

static void begin_life(struct graph_memory *m)
{
	m->references += m->id && !m->live;
	m->live += m->id != 0;
}

/* The list has another reference. */
static void end_one_life(struct graph_memory *m)
{
	m->references -= m->live == 1;
	m->live -= m->live != 0;
}

/* Several nodes may have had the memory one after the other. */
static void launched(const struct graph_memory_node *list, int auto_free)
{
	uint64_t mask = state_lock();

	for (const struct graph_memory_node *n = list; n && auto_free; n = n->next)
		while (!n->frees && n->memory->live)
			end_one_life(n->memory);
	for (const struct graph_memory_node *n = list; n; n = n->next)
		if (!n->frees)
			begin_life(n->memory);
	for (const struct graph_memory_node *n = list; n; n = n->next)
		note_high(n->memory->params.device);
	for (const struct graph_memory_node *n = list; n; n = n->next)
		if (n->frees)
			end_one_life(n->memory);
	state_unlock(mask);
}

static int call_behind(unsigned index, const uint64_t *words)
{
	typedef int call(uint64_t, uint64_t, uint64_t, uint64_t);

	return ((call *)cuda_targets[index])(words[0], words[1], words[2], words[3]);
}

/* What is done with the memory elsewhere, in the order of another stream, comes before a launch. */
static int wait_for_marks(const struct graph_state *state, const void *stream)
{
	const struct graph_mark *waited = state->mark;
	int r = 0;

	for (const struct graph_memory_node *n = state->memory_nodes; n && !r; n = n->next) {
		const struct graph_mark *mark = n->memory->mark;

		if (!mark || mark == state->mark || mark == waited || !mark->event)
			continue;
		r = call_behind(
			INDEX_cuStreamWaitEvent, WORDS(WORD(stream), WORD(mark->event), 0));
		waited = mark;
	}
	return r;
}

static void mark_launch(struct graph_state *state, void *stream)
{
	struct graph_mark *mark;

	if (graph_mark_again(state->mark, stream, call_behind)) {
		mark = graph_mark_new(stream, call_behind);
		graph_mark_release(state->mark, call_behind);
		state->mark = mark;
	}
	for (const struct graph_memory_node *n = state->memory_nodes; n; n = n->next)
		set_mark(n->memory, state->mark, call_behind);
}

#define AUTO_FREE 1 /* CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH */

static int launch_with_memory(unsigned index, const struct object *o, void *stream)
{
	int (*launch)(void *, void *) = (int (*)(void *, void *))cuda_targets[index];
	int (*flags_of)(void *, uint64_t *) =
		(int (*)(void *, uint64_t *))cuda_targets[INDEX_cuGraphExecGetFlags];
	int (*capturing)(void *, int *) =
		(int (*)(void *, int *))cuda_targets[INDEX_cuStreamIsCapturing];
	struct graph_state *state = graph_state(o);
	uint64_t flags = 0;
	int status = 0, r = flags_of(o->real, &flags);

	if (!r)
		r = capturing(stream, &status);
	if (r)
		return r;
	if (status)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!(flags & AUTO_FREE) && !may_launch(state->memory_nodes))
		return CUDA_ERROR_INVALID_VALUE;
	r = wait_for_marks(state, stream);
	if (!r)
		r = launch(o->real, stream);
	if (r)
		return r;
	launched(state->memory_nodes, flags & AUTO_FREE);
	mark_launch(state, stream);
	return 0;
}

/* Runs behind the crossing. */
static int launch(unsigned index, void *executable, void *stream)
{
	const struct object *o = in_records_window((uintptr_t)executable) ? executable : NULL;

	executable = object_real(executable);
	stream = object_real(stream);
	if (is_dead(executable) || is_dead(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (o && o->kind == CUDA_GRAPH_EXEC && graph_state(o)->memory_nodes)
		return launch_with_memory(index, o,
			stream || index == INDEX_cuGraphLaunch ? stream : STREAM_PER_THREAD);
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
