/*
 * Nodes of graphs before a checkpoint: the driver is asked for the parameters of each. What
 * cannot be made again exactly is refused.
 */
#include "lower/cuda/saved_graphs.h"
#include "shared/cuda/array_params.h"

#define INVALID_VALUE 1
#define UPDATABLE     13 /* CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE */

/* CU_LAUNCH_PARAM_... */
#define EXTRA_END    ((void *)0)
#define EXTRA_BUFFER ((void *)1)
#define EXTRA_SIZE   ((void *)2)

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
	to = n->params.kernel.params = graph_records_alloc(s, (count + 1) * sizeof(void *));
	for (size_t i = 0; i < count && to; i++) {
		if (param_size(n, function, i, &size))
			return agent_fail("the driver does not tell the size of a parameter");
		to[i] = graph_copy(s, from[i], size);
		if (!to[i])
			return -1;
	}
	return to ? 0 : -1;
}

static int keep_extra(struct cuda_state *s, struct graph_node *n)
{
	void **from = n->params.kernel.extra, **to = graph_records_alloc(s, 5 * sizeof(void *)),
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
	to[1] = graph_copy(s, data, size);
	to[2] = EXTRA_SIZE;
	to[3] = graph_copy(s, &size, sizeof(size));
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
	n->attributes = graph_copy(s, list, n->attribute_count * sizeof(list[0]));
	return n->attributes ? 0 : -1;
}

static int unknown_function(void *function)
{
	const char *name = NULL;

	if (CUDA(cuFuncGetName, (const char **, void *))(&name, function) || !name)
		name = "without a name";
	return agent_fail("it holds a CUDA graph with a kernel (%s) of which it is not known "
			  "where the program got it, which cannot be restored",
		name);
}

static int find_function(const struct cuda_state *s, struct graph_node *n)
{
	const struct graph_kernel *k = &n->params.kernel;
	void *handle = k->function ? k->function : k->kernel;
	const struct graph_function *f = graph_function(s, handle), *kernel;

	if (!f)
		/* Not asked for its name: it may be of a module that no longer exists. */
		return agent_fail("it holds a CUDA graph with a kernel of which it is not "
				  "known where the program got it, which cannot be restored");
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

#define MEMORY_TYPE 2 /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */

/* The driver looks at the addresses of copies when it is given them: memory that has been freed
 * would be none after a restart. */
static int is_live(const struct cuda_state *s, uint64_t address)
{
	uint32_t type;

	for (const struct allocation *a = s->allocations; a; a = a->next)
		if (address - a->address < a->size)
			return 1;
	if (address >= GPU_WINDOW && address < GPU_RESERVED)
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

/* An array stands in the record as the program knows it. */
static int save_array(const struct cuda_state *s, struct graph_memcpy_side *side)
{
	side->array = graph_object(s, CUDA_ARRAY, side->array);
	return side->array ? 0
			   : agent_fail("it holds a CUDA graph that copies a CUDA array which "
					"has been destroyed: such a graph cannot be restored");
}

static int save_side(const struct cuda_state *s, struct graph_memcpy_side *side)
{
	if (side->type == COPY_OF_ARRAY)
		return save_array(s, side);
	return side->type == GRAPH_HOST_MEMORY || is_live(s, side->device)
		       ? 0
		       : refuse_freed(side->device);
}

static int save_copy(struct cuda_state *s, struct graph_node *n)
{
	struct graph_memcpy *c = &n->params.copy;
	int r = CUDA(cuGraphMemcpyNodeGetParams, (void *, struct graph_memcpy *))(n->real, c);

	if (r)
		return cuda_failed("cuGraphMemcpyNodeGetParams", r);
	return save_side(s, &c->from) || save_side(s, &c->to) ? -1 : 0;
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
	n->handle = graph_object(s, CUDA_EVENT, *event);
	return n->handle ? 0
			 : agent_fail(
				   "it holds a CUDA graph with an event that no longer exists, "
				   "which cannot be restored");
}

static int save_batch(struct cuda_state *s, struct graph_node *n)
{
	struct graph_batch *b = &n->params.batch;
	int r = CUDA(cuGraphBatchMemOpNodeGetParams, (void *, struct graph_batch *))(
		n->real, b);

	if (r)
		return cuda_failed("cuGraphBatchMemOpNodeGetParams", r);
	b->operations = graph_copy(s, b->operations, (uint64_t)b->count * GRAPH_MEM_OP);
	return b->operations ? 0 : -1;
}

static int inner_alloc(struct cuda_state *s, struct graph_node *n, uint64_t count)
{
	n->inner_count = count;
	n->inner = graph_records_alloc(s, count * sizeof(*n->inner));
	return n->inner ? 0 : -1;
}

static int save_inner(struct cuda_state *s, const struct graph_node *n, uint64_t i, void *graph,
	struct graph_conditional *conditionals, enum graph_detail detail)
{
	n->inner[i] = graph_describe(s, graph, conditionals, detail);
	return n->inner[i] ? 0 : -1;
}

static int save_child(struct cuda_state *s, struct graph_node *n, enum graph_detail detail)
{
	void *graph = NULL;
	int r = CUDA(cuGraphChildGraphNodeGetGraph, (void *, void **))(n->real, &graph);

	if (r)
		return cuda_failed("cuGraphChildGraphNodeGetGraph", r);
	if (inner_alloc(s, n, 1))
		return -1;
	return save_inner(s, n, 0, graph, NULL, detail);
}

/* The driver does not tell more than its type. */
static int save_conditional(struct cuda_state *s, struct graph_node *n,
	struct graph_conditional *conditionals, enum graph_detail detail)
{
	struct graph_conditional *c = n->conditional = graph_conditional(conditionals, n->real);
	int r = c && !inner_alloc(s, n, c->count) ? 0 : -1;

	if (!c)
		return graph_refuse_type(n->type);
	for (uint32_t i = 0; i < c->count && !r; i++)
		r = save_inner(s, n, i, *graph_body(c, i), conditionals, detail);
	return r;
}

static const char *const strange[] = {
	[GRAPH_SIGNAL] = "that signals an external semaphore",
	[GRAPH_WAIT] = "that waits for an external semaphore",
	[GRAPH_ALLOCATION] = "that allocates memory",
	[GRAPH_FREE] = "that frees memory",
	[GRAPH_CONDITIONAL] = "that is conditional",
};

int graph_refuse_type(uint32_t type)
{
	const char *what = type < sizeof(strange) / sizeof(*strange) ? strange[type] : NULL;

	return agent_fail("it holds a CUDA graph with a node %s, which cannot be restored yet",
		what ? what : "of an unknown kind");
}

int graph_save_node(struct cuda_state *s, struct graph_node *n,
	struct graph_conditional *conditionals, enum graph_detail detail)
{
	if (detail == GRAPH_SHAPE && n->type != GRAPH_CHILD && n->type != GRAPH_CONDITIONAL)
		return 0;
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
		return save_child(s, n, detail);
	case GRAPH_EMPTY:
		return 0;
	case GRAPH_WAIT_EVENT:
	case GRAPH_EVENT_RECORD:
		return save_event(s, n);
	case GRAPH_BATCH_MEM_OP:
		return save_batch(s, n);
	case GRAPH_CONDITIONAL:
		return save_conditional(s, n, conditionals, detail);
	default:
		return graph_refuse_type(n->type);
	}
}
