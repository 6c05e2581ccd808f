/*
 * Graphs before a checkpoint: the driver is asked for the nodes of each, for their parameters
 * and for what they depend on. Of an executable graph it is asked for the snapshot
 * (shared/cuda/graph.h). What cannot be made again exactly is refused.
 */
#include <stdlib.h>
#include <string.h>

#include "lower/cuda/graphs.h"
#include "lower/records_alloc.h"

#define INVALID_VALUE 1
#define DEVICE_LAUNCH 4  /* CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH */
#define UPDATABLE     13 /* CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE */

/* CU_LAUNCH_PARAM_... */
#define EXTRA_END    ((void *)0)
#define EXTRA_BUFFER ((void *)1)
#define EXTRA_SIZE   ((void *)2)

/* ---- memory of the records ---- */

#define CHUNK (1ul << 20)

static struct graph_chunk *chunk_with(struct cuda_state *s, uint64_t size)
{
	struct graph_chunk *c = s->graph_chunks;
	uint64_t whole = size + sizeof(*c) > CHUNK ? size + sizeof(*c) : CHUNK;

	while (c && c->size - c->used < size)
		c = c->next;
	if (c)
		return c;
	c = records_alloc(whole);
	if (!c)
		return NULL;
	*c = (struct graph_chunk){s->graph_chunks, whole, sizeof(*c)};
	s->graph_chunks = c;
	return c;
}

static void *keep_room(struct cuda_state *s, uint64_t size)
{
	struct graph_chunk *c;
	void *room;

	size = (size + 15) & ~15ul;
	c = chunk_with(s, size);
	if (!c) {
		agent_fail("no memory for records of CUDA graphs");
		return NULL;
	}
	room = (char *)c + c->used;
	c->used += size;
	return memset(room, 0, size);
}

static void *keep(struct cuda_state *s, const void *data, uint64_t size)
{
	void *room = keep_room(s, size);

	return room ? memcpy(room, data, size) : NULL;
}

static struct object *find(const struct cuda_state *s, uint32_t kind, const void *real)
{
	struct object *o = s->by_real[object_list(kind, real)];

	while (o && (o->kind != kind || o->real != real))
		o = o->alike;
	return o;
}

/* ---- kernels ---- */

static int param_size(const struct graph_node *n, const void *function, size_t i, size_t *size)
{
	size_t offset;

	if (n->handle->kind == CUDA_KERNEL && !n->function_of_kernel)
		return CUDA(cuKernelGetParamInfo, (const void *, size_t, size_t *, size_t *))(
			function, i, &offset, size);
	return CUDA(cuFuncGetParamInfo, (const void *, size_t, size_t *, size_t *))(
		function, i, &offset, size);
}

static int count_params(const struct graph_node *n, const void *function, size_t *count)
{
	size_t size;
	int r;

	for (*count = 0; !(r = param_size(n, function, *count, &size)); ++*count)
		;
	return r == INVALID_VALUE ? 0 : cuda_failed("cuFuncGetParamInfo", r);
}

static int keep_params(struct cuda_state *s, struct graph_node *n, const void *function)
{
	void **from = n->params.kernel.params, **to;
	size_t count, size;

	if (count_params(n, function, &count))
		return -1;
	to = n->params.kernel.params = keep_room(s, (count + 1) * sizeof(void *));
	for (size_t i = 0; i < count && to; i++) {
		if (param_size(n, function, i, &size))
			return agent_fail("the driver does not tell the size of a parameter");
		to[i] = keep(s, from[i], size);
		if (!to[i])
			return -1;
	}
	return to ? 0 : -1;
}

static int keep_extra(struct cuda_state *s, struct graph_node *n)
{
	void **from = n->params.kernel.extra, **to = keep_room(s, 5 * sizeof(void *)),
	     *data = NULL;
	size_t size = 0;

	for (unsigned i = 0; from[i] != EXTRA_END; i += 2) {
		if (from[i] == EXTRA_BUFFER)
			data = from[i + 1];
		else if (from[i] == EXTRA_SIZE)
			size = *(size_t *)from[i + 1];
		else
			return agent_fail("it holds a CUDA graph with a kernel whose "
					  "parameters are of an unknown kind");
	}
	if (!to)
		return -1;
	n->params.kernel.extra = to;
	to[0] = EXTRA_BUFFER;
	to[1] = keep(s, data, size);
	to[2] = EXTRA_SIZE;
	to[3] = keep(s, &size, sizeof(size));
	return to[1] && to[3] ? 0 : -1;
}

static int keep_attributes(struct cuda_state *s, struct graph_node *n)
{
	struct graph_attribute list[GRAPH_ATTRIBUTES];

	for (int id = 0; id < GRAPH_ATTRIBUTES; id++) {
		struct graph_attribute *a = &list[n->attribute_count];

		*a = (struct graph_attribute){.id = id};
		/* An older driver does not know all. */
		if (!graph_is_attribute(id) ||
			CUDA(cuGraphKernelNodeGetAttribute, (void *, int, void *))(
				n->real, id, a->value))
			continue;
		if (id == UPDATABLE && (uint32_t)a->value[0])
			return agent_fail("it holds a CUDA graph with a kernel that device "
					  "code can change, which cannot be restored");
		n->attribute_count++;
	}
	n->attributes = keep(s, list, n->attribute_count * sizeof(list[0]));
	return n->attributes ? 0 : -1;
}

static int unknown_function(void *function)
{
	const char *name = NULL;

	if (CUDA(cuFuncGetName, (const char **, void *))(&name, function) || !name)
		name = "without a name";
	return agent_fail(
		"it holds a CUDA graph with a kernel (%s) of which it is not known how "
		"the program has come by it, which cannot be restored",
		name);
}

static int find_function(const struct cuda_state *s, struct graph_node *n)
{
	const struct graph_kernel *k = &n->params.kernel;
	void *handle = k->function ? k->function : k->kernel;
	const struct graph_function *f = graph_function(s, handle), *kernel;

	if (!f)
		/* Not asked for its name: it may be of a module that is no more. */
		return agent_fail(
			"it holds a CUDA graph with a kernel of which it is not known "
			"how the program has come by it, which cannot be restored");
	n->handle = f->object;
	n->function_of_kernel = f->of_kernel;
	n->context = f->context;
	if (!k->function || !k->kernel)
		return 0;
	kernel = graph_function(s, k->kernel);
	n->kernel = kernel && !kernel->of_kernel ? kernel->object : NULL;
	return n->kernel ? 0 : unknown_function(k->function);
}

static int save_kernel(struct cuda_state *s, struct graph_node *n)
{
	struct graph_kernel *k = &n->params.kernel;
	int r = CUDA(cuGraphKernelNodeGetParams_v2, (void *, struct graph_kernel *))(
		n->real, k);

	if (r)
		return cuda_failed("cuGraphKernelNodeGetParams", r);
	if (find_function(s, n))
		return -1;
	if (k->params || !k->extra) {
		k->extra = NULL;
		if (keep_params(s, n, k->function ? k->function : k->kernel))
			return -1;
	} else if (keep_extra(s, n)) {
		return -1;
	}
	return keep_attributes(s, n);
}

/* ---- copies ---- */

#define MEMORY_TYPE    2 /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
#define DEVICE_ORDINAL 9
#define HOST           1 /* CU_MEMORYTYPE_... */
#define ARRAY          3
#define OURS           0x200000000000 /* devices' memory, as mmu/ gives it out */
#define OURS_END       0x300000000000

/* The driver looks at the addresses of copies when it is given them: memory that has been freed
 * would be none after a restart. */
static int is_live(const struct cuda_state *s, uint64_t address)
{
	uint32_t type;

	for (const struct allocation *a = s->allocations; a; a = a->next)
		if (address - a->address < a->size)
			return 1;
	if (address >= OURS && address < OURS_END)
		return 0;
	return !CUDA(cuPointerGetAttribute, (void *, int, uint64_t))(
		&type, MEMORY_TYPE, address);
}

static int refuse_freed(uint64_t address)
{
	return agent_fail(
		"it holds a CUDA graph that uses memory at %#lx, which has been freed: "
		"such a graph cannot be restored",
		address);
}

static int check_side(const struct cuda_state *s, const struct graph_memcpy_side *side)
{
	if (side->type == ARRAY)
		return agent_fail(
			"it holds a CUDA graph that copies a CUDA array, which cannot be "
			"restored yet");
	return side->type == HOST || is_live(s, side->device) ? 0 : refuse_freed(side->device);
}

static int save_copy(struct cuda_state *s, struct graph_node *n)
{
	struct graph_memcpy *c = &n->params.copy;
	int r = CUDA(cuGraphMemcpyNodeGetParams, (void *, struct graph_memcpy *))(n->real, c);

	if (r)
		return cuda_failed("cuGraphMemcpyNodeGetParams", r);
	return check_side(s, &c->from) || check_side(s, &c->to) ? -1 : 0;
}

static int save_set(struct cuda_state *s, struct graph_node *n)
{
	struct graph_memset *m = &n->params.set;
	int r = CUDA(cuGraphMemsetNodeGetParams, (void *, struct graph_memset *))(n->real, m);

	if (r)
		return cuda_failed("cuGraphMemsetNodeGetParams", r);
	return is_live(s, m->address) ? 0 : refuse_freed(m->address);
}

/* ---- other nodes ---- */

static int save_host(struct graph_node *n)
{
	int r = CUDA(cuGraphHostNodeGetParams, (void *, struct graph_host *))(
		n->real, &n->params.host);

	return r ? cuda_failed("cuGraphHostNodeGetParams", r) : 0;
}

static int save_event(const struct cuda_state *s, struct graph_node *n)
{
	void **event = &n->params.event;
	int r = n->type == GRAPH_WAIT_EVENT
			? CUDA(cuGraphEventWaitNodeGetEvent, (void *, void **))(n->real, event)
			: CUDA(cuGraphEventRecordNodeGetEvent, (void *, void **))(
				  n->real, event);

	if (r)
		return cuda_failed("cuGraphEventRecordNodeGetEvent", r);
	n->handle = find(s, CUDA_EVENT, *event);
	return n->handle ? 0
			 : agent_fail("it holds a CUDA graph with an event that is no more, "
				      "which cannot be restored");
}

static int save_batch(struct cuda_state *s, struct graph_node *n)
{
	struct graph_batch *b = &n->params.batch;
	int r = CUDA(cuGraphBatchMemOpNodeGetParams, (void *, struct graph_batch *))(
		n->real, b);

	if (r)
		return cuda_failed("cuGraphBatchMemOpNodeGetParams", r);
	b->operations = keep(s, b->operations, (uint64_t)b->count * GRAPH_MEM_OP);
	return b->operations ? 0 : -1;
}

static struct graph_record *describe(struct cuda_state *s, void *graph);

static int save_child(struct cuda_state *s, struct graph_node *n)
{
	void *graph = NULL;
	int r = CUDA(cuGraphChildGraphNodeGetGraph, (void *, void **))(n->real, &graph);

	if (r)
		return cuda_failed("cuGraphChildGraphNodeGetGraph", r);
	n->child = describe(s, graph);
	return n->child ? 0 : -1;
}

static const char *const strange[] = {
	[GRAPH_SIGNAL] = "that signals an external semaphore",
	[GRAPH_WAIT] = "that waits for an external semaphore",
	[GRAPH_ALLOCATION] = "that allocates memory",
	[GRAPH_FREE] = "that frees memory",
	[GRAPH_CONDITIONAL] = "that is conditional",
};

static int refuse_type(uint32_t type)
{
	const char *what = type < sizeof(strange) / sizeof(*strange) ? strange[type] : NULL;

	return agent_fail("it holds a CUDA graph with a node %s, which cannot be restored yet",
		what ? what : "of an unknown kind");
}

static int save_params(struct cuda_state *s, struct graph_node *n)
{
	switch (n->type) {
	case GRAPH_KERNEL:
		return save_kernel(s, n);
	case GRAPH_MEMCPY:
		return save_copy(s, n);
	case GRAPH_MEMSET:
		return save_set(s, n);
	case GRAPH_HOST:
		return save_host(n);
	case GRAPH_CHILD:
		return save_child(s, n);
	case GRAPH_EMPTY:
		return 0;
	case GRAPH_WAIT_EVENT:
	case GRAPH_EVENT_RECORD:
		return save_event(s, n);
	case GRAPH_BATCH_MEM_OP:
		return save_batch(s, n);
	default:
		return refuse_type(n->type);
	}
}

/* ---- a graph ---- */

static int save_edges(
	struct cuda_state *s, struct graph_node *n, const struct graph_index *index)
{
	uint32_t *list;
	uint64_t *edges;
	long count = graph_edges(n->real, index, &list, &edges);

	if (count > 0) {
		n->dependencies = keep(s, list, count * sizeof(*list));
		n->edges = keep(s, edges, count * sizeof(*edges));
		n->dependency_count = count;
	}
	free(list);
	free(edges);
	return count < 0 || (count && (!n->dependencies || !n->edges)) ? -1 : 0;
}

static int save_node(
	struct cuda_state *s, struct graph_node *n, const struct graph_index *index)
{
	int r = CUDA(cuGraphNodeGetType, (void *, uint32_t *))(n->real, &n->type);

	if (r)
		return cuda_failed("cuGraphNodeGetType", r);
	n->object = find(s, CUDA_GRAPH_NODE, n->real);
	return save_params(s, n) || save_edges(s, n, index) ? -1 : 0;
}

static int save_nodes(
	struct cuda_state *s, struct graph_record *g, void *const *nodes, size_t count)
{
	struct graph_index *index = graph_index_new(nodes, count);
	int r = index ? 0 : -1;

	g->count = count;
	g->nodes = r ? NULL : keep_room(s, count * sizeof(*g->nodes));
	for (size_t i = 0; i < count && g->nodes && !r; i++) {
		g->nodes[i].real = nodes[i];
		r = save_node(s, &g->nodes[i], index);
	}
	graph_index_free(index);
	return g->nodes ? r : -1;
}

static struct graph_record *describe(struct cuda_state *s, void *graph)
{
	struct graph_record *g = keep_room(s, sizeof(*g));
	void **nodes = NULL;
	size_t count;
	int r = g ? graph_nodes(graph, &nodes, &count) : -1;

	if (g)
		g->object = find(s, CUDA_GRAPH, graph);
	if (!r)
		r = save_nodes(s, g, nodes, count);
	free(nodes);
	return r ? NULL : g;
}

/* ---- clones, and what they were cloned from ---- */

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
	for (size_t i = 0; i < count && count == n->child->count && !r; i++)
		n->child->nodes[i].origin = nodes[i];
	free(nodes);
	return r ? r : mark_children(n->child);
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

static void **reals(const struct graph_record *g)
{
	void **list = calloc(g->count + 1, sizeof(*list));

	for (uint64_t i = 0; list && i < g->count; i++)
		list[i] = g->nodes[i].real;
	return list;
}

/* The driver knows what became of the nodes of @origin in @clone. */
static int ask_origins(const struct graph_record *g, void *origin, void *clone)
{
	void **list = reals(g), **nodes = NULL, *found;
	struct graph_index *index = list ? graph_index_new(list, g->count) : NULL;
	size_t count;
	int r = index ? graph_nodes(origin, &nodes, &count) : -1;

	for (size_t i = 0; !r && i < count; i++) {
		long number = -1;

		/* One that was added since has none. */
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

/* After a restart the pairs know. */
static void pair_origins(const struct graph_record *g, const struct graph_state *state,
	const struct graph_index *to)
{
	for (uint64_t i = 0; i < g->count; i++) {
		struct graph_node *n = &g->nodes[i];
		long number = graph_index_find(to, n->real);

		n->origin = number < 0 ? NULL : state->pairs[number].from;
		if (n->child)
			pair_origins(n->child, state, to);
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

static int mark_origins(
	const struct graph_record *g, const struct graph_state *state, void *clone)
{
	const struct object *origin = graph_origin(state);

	if (!origin)
		return 0;
	return state->restarted ? take_origins(g, state) : ask_origins(g, origin->real, clone);
}

/* ---- executable graphs ---- */

static int is_alike(const struct graph_node *a, const struct graph_node *b)
{
	return a->type == b->type && a->dependency_count == b->dependency_count &&
	       (!a->dependency_count ||
		       !memcmp(a->dependencies, b->dependencies,
			       a->dependency_count * sizeof(*a->dependencies)));
}

/*
 * The driver pairs the nodes of an update with existing ones by the order of edges, from
 * the last nodes on. If nodes and edges come in the same order in both, so do pairs. @g, with
 * the parameters, takes over who the nodes are.
 */
static int identify(struct graph_record *g, const struct graph_record *nodes)
{
	if (g->count != nodes->count)
		return -1;
	for (uint64_t i = 0; i < g->count; i++) {
		if (!is_alike(&g->nodes[i], &nodes->nodes[i]))
			return -1;
		g->nodes[i].real = nodes->nodes[i].real;
		if (g->nodes[i].child && identify(g->nodes[i].child, nodes->nodes[i].child))
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
		if (n->child)
			mark_disabled(n->child, state);
	}
}

/* The graph that an executable of the same is to be made of. */
static struct graph_record *describe_snapshot(
	struct cuda_state *s, const struct graph_state *state)
{
	struct graph_record *g = describe(s, state->snapshot), *updated;

	if (!g || !state->update)
		return g;
	updated = describe(s, state->update);
	if (!updated)
		return NULL;
	if (!identify(updated, g))
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

/* ---- contexts of copies, which the driver does not tell ---- */

static void *only_context(const struct cuda_state *s, int device)
{
	void *found = NULL;

	for (const struct object *o = s->objects; o; o = o->next) {
		if (o->kind != CUDA_CONTEXT || (device >= 0 && cuda_device_of(o) != device))
			continue;
		if (found)
			return NULL;
		found = o->real;
	}
	return found;
}

static int device_at(uint64_t address)
{
	int device = -1;

	return CUDA(cuPointerGetAttribute, (void *, int, uint64_t))(
		       &device, DEVICE_ORDINAL, address)
		       ? -1
		       : device;
}

static int device_of_copy(const struct graph_node *n)
{
	const struct graph_memcpy *c = &n->params.copy;

	if (n->type == GRAPH_MEMSET)
		return device_at(n->params.set.address);
	return device_at(c->to.type == HOST ? c->from.device : c->to.device);
}

/* The program has said it, of this node or of that which it was cloned from; or there is but
 * one. */
static int find_context(const struct cuda_state *s, struct graph_node *n)
{
	const struct object *o = n->object ? n->object : find(s, CUDA_GRAPH_NODE, n->origin);
	int device;

	n->context = o && o->value ? (void *)o->value : only_context(s, -1);
	if (n->context && find(s, CUDA_CONTEXT, n->context))
		return 0;
	device = device_of_copy(n);
	n->context = device < 0 ? NULL : only_context(s, device);
	return n->context ? 0
			  : agent_fail("it holds a CUDA graph with a copy of which it is not "
				       "known in which of several contexts that is, which "
				       "cannot be restored");
}

static int find_contexts(const struct cuda_state *s, const struct graph_record *g)
{
	int r = 0;

	for (uint64_t i = 0; i < g->count && !r; i++) {
		struct graph_node *n = &g->nodes[i];

		if (n->type == GRAPH_MEMCPY || n->type == GRAPH_MEMSET)
			r = find_context(s, n);
		if (n->child && !r)
			r = find_contexts(s, n->child);
	}
	return r;
}

/* ---- all of them ---- */

static int save(struct cuda_state *s, struct object *o)
{
	const struct graph_state *state = graph_state(o);
	struct graph_saved *saved = keep_room(s, sizeof(*saved));
	void *graph = o->kind == CUDA_GRAPH ? o->real : state->snapshot;

	if (!saved)
		return -1;
	saved->object = o;
	if (o->kind == CUDA_GRAPH_EXEC && save_flags(saved))
		return -1;
	saved->graph = o->kind == CUDA_GRAPH ? describe(s, graph) : describe_snapshot(s, state);
	if (!saved->graph || mark_origins(saved->graph, state, graph) ||
		find_contexts(s, saved->graph))
		return -1;
	mark_disabled(saved->graph, state);
	saved->next = s->graphs;
	s->graphs = saved;
	return agent_check_wanted();
}

static int refuse(const struct object *o)
{
	const struct graph_state *state = graph_state(o);

	switch (state->reason) {
	case GRAPH_OF_USER_OBJECT:
		return agent_fail("it holds a CUDA graph with a user object, which cannot be "
				  "restored yet");
	case GRAPH_NO_SNAPSHOT:
		return refuse_type(state->node_type);
	default:
		return agent_fail("it holds an executable CUDA graph with a change that could "
				  "not be followed, which cannot be restored");
	}
}

int cuda_save_graphs(struct cuda_state *s)
{
	int r = 0;

	s->graphs = NULL;
	for (struct graph_chunk *c = s->graph_chunks; c; c = c->next)
		c->used = sizeof(*c);
	graph_functions_forget();
	for (struct object *o = s->objects; o && !r; o = o->next) {
		if (o->kind != CUDA_GRAPH_EXEC && (o->kind != CUDA_GRAPH || o->parent))
			continue;
		r = o->flags & CUDA_OBJECT_LOST ? refuse(o) : save(s, o);
	}
	graph_functions_forget();
	return r;
}
