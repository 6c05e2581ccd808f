/*
 * Graph nodes, whose parameters are structures with handles and functions of the program in
 * them: functions are exchanged for such as the lower half may call, handles for the driver's
 * own; and back when the program asks.
 */
#include "stubs/cuda/array_copies.h"
#include "stubs/cuda/graphs.h"

#include "cuda.index.h"

/* ---- nodes that call a function of the program ---- */

static struct host_node lower_host_node(const struct host_node *params)
{
	return (struct host_node){
		crossing_callback_pointer(params->function), params->argument};
}

int body_cuGraphAddHostNode(void **node, void *graph, void *const *dependencies, size_t count,
	const struct host_node *params)
{
	struct host_node ours = params ? lower_host_node(params) : (struct host_node){0};

	return graph_call(
		INDEX_cuGraphAddHostNode, WORDS(WORD(node), WORD(graph), WORD(dependencies),
						  count, params ? WORD(&ours) : 0));
}

int body_cuGraphHostNodeGetParams(void *node, struct host_node *params)
{
	int r = real_cuGraphHostNodeGetParams(node, params);

	if (!r)
		params->function = crossing_callback_function(params->function);
	return r;
}

int body_cuGraphHostNodeSetParams(void *node, const struct host_node *params)
{
	struct host_node ours;

	if (!params)
		return real_cuGraphHostNodeSetParams(node, params);
	ours = lower_host_node(params);
	return real_cuGraphHostNodeSetParams(node, &ours);
}

int body_cuGraphExecHostNodeSetParams(void *graph, void *node, const struct host_node *params)
{
	struct host_node ours = params ? lower_host_node(params) : (struct host_node){0};

	return graph_call(INDEX_cuGraphExecHostNodeSetParams,
		WORDS(WORD(graph), WORD(node), params ? WORD(&ours) : 0));
}

/* ---- nodes that launch a kernel ---- */

/* The kernel in use whose function in the current context is @real; NULL: none. */
static struct object *kernel_of(void *real)
{
	struct object *o = CUDA_STATE->objects;
	void *function;

	/* Kernels are not unloaded while they are in a graph that is asked about. */
	for (; o; o = o->next) {
		if (o->kind != CUDA_KERNEL || !(o->flags & CUDA_OBJECT_USED))
			continue;
		function = NULL;
		if (!cuda_call_down(
			    INDEX_cuKernelGetFunction, WORDS(WORD(&function), WORD(o->real))) &&
			function == real)
			return o;
	}
	return NULL;
}

/* What the driver calls a function, back: a kernel may stand for one, or one for a kernel that
 * the program has launched as such. */
static void *raise_function(void *real)
{
	struct object *o = real ? object_find(CUDA_FUNCTION, real) : NULL;
	void *function = NULL;

	if (real && !o)
		o = object_find(CUDA_KERNEL, real);
	if (o || !real)
		return o;
	o = kernel_of(real);
	if (o && !cuda_perform(INDEX_cuKernelGetFunction, WORDS(WORD(&function), WORD(o))))
		return function;
	return real;
}

static void note_function_used(void *function)
{
	struct object *o = function;

	if (in_records_window((uintptr_t)function) && !(o->flags & CUDA_OBJECT_USED))
		object_used(o);
}

static int lower_kernel(struct kernel_node *k, int version)
{
	note_function_used(k->function);
	k->function = object_real(k->function);
	if (version > 1) {
		note_function_used(k->kernel);
		k->kernel = object_real(k->kernel);
	}
	return is_dead(k->function) || (version > 1 && is_dead(k->kernel))
		       ? CUDA_ERROR_INVALID_HANDLE
		       : 0;
}

/* Structures of version 1 end before `kernel`. */
static int copy_kernel(struct kernel_node *to, const struct kernel_node *from, int version)
{
	*(struct kernel_node_v1 *)to = *(const struct kernel_node_v1 *)from;
	if (version > 1)
		*to = *from;
	return lower_kernel(to, version);
}

/* @index is the call of @version that sets or adds, whose argument number @word leads to the
 * parameters. */
static int call_with_kernel(unsigned index, int version, const struct kernel_node *params,
	uint64_t *words, int word)
{
	struct kernel_node ours = {0};
	int r = params ? copy_kernel(&ours, params, version) : 0;

	words[word] = params ? WORD(&ours) : 0;
	return r ? r : graph_call(index, words);
}

int body_cuGraphAddKernelNode(void **node, void *graph, void *const *dependencies, size_t count,
	const struct kernel_node *params)
{
	uint64_t words[CALL_WORDS] = {WORD(node), WORD(graph), WORD(dependencies), count};

	return call_with_kernel(INDEX_cuGraphAddKernelNode, 1, params, words, 4);
}

int body_cuGraphAddKernelNode_v2(void **node, void *graph, void *const *dependencies,
	size_t count, const struct kernel_node *params)
{
	uint64_t words[CALL_WORDS] = {WORD(node), WORD(graph), WORD(dependencies), count};

	return call_with_kernel(INDEX_cuGraphAddKernelNode_v2, 2, params, words, 4);
}

int body_cuGraphExecKernelNodeSetParams(
	void *graph, void *node, const struct kernel_node *params)
{
	uint64_t words[CALL_WORDS] = {WORD(graph), WORD(node)};

	return call_with_kernel(INDEX_cuGraphExecKernelNodeSetParams, 1, params, words, 2);
}

int body_cuGraphExecKernelNodeSetParams_v2(
	void *graph, void *node, const struct kernel_node *params)
{
	uint64_t words[CALL_WORDS] = {WORD(graph), WORD(node)};

	return call_with_kernel(INDEX_cuGraphExecKernelNodeSetParams_v2, 2, params, words, 2);
}

int body_cuGraphKernelNodeGetParams(void *node, struct kernel_node *params)
{
	int r = real_cuGraphKernelNodeGetParams(node, params);

	if (!r)
		params->function = raise_function(params->function);
	return r;
}

int body_cuGraphKernelNodeGetParams_v2(void *node, struct kernel_node *params)
{
	int r = real_cuGraphKernelNodeGetParams_v2(node, params);

	if (r)
		return r;
	params->function = raise_function(params->function);
	params->kernel = raise_function(params->kernel);
	return 0;
}

int body_cuGraphKernelNodeSetParams(void *node, const struct kernel_node *params)
{
	struct kernel_node ours = {0};
	int r = params ? copy_kernel(&ours, params, 1) : 0;

	return r ? r : real_cuGraphKernelNodeSetParams(node, params ? &ours : NULL);
}

int body_cuGraphKernelNodeSetParams_v2(void *node, const struct kernel_node *params)
{
	struct kernel_node ours = {0};
	int r = params ? copy_kernel(&ours, params, 2) : 0;

	return r ? r : real_cuGraphKernelNodeSetParams_v2(node, params ? &ours : NULL);
}

/* ---- nodes that copy ---- */

/* The driver's own arrays in the place of the program's: the structure is word @at. */
static int call_with_copy(
	unsigned index, const struct graph_memcpy *params, uint64_t *words, unsigned at)
{
	struct graph_memcpy ours = params ? *params : (struct graph_memcpy){0};
	int r = arrays_lower_copy(&ours);

	words[at] = params ? WORD(&ours) : 0;
	return r ? r : graph_call(index, words);
}

int body_cuGraphAddMemcpyNode(void **node, void *graph, void *const *dependencies, size_t count,
	const struct graph_memcpy *params, void *context)
{
	uint64_t words[CALL_WORDS] = {
		WORD(node), WORD(graph), WORD(dependencies), count, 0, WORD(context)};

	return call_with_copy(INDEX_cuGraphAddMemcpyNode, params, words, 4);
}

int body_cuGraphMemcpyNodeGetParams(void *node, struct graph_memcpy *params)
{
	int r = real_cuGraphMemcpyNodeGetParams(node, params);

	if (!r)
		arrays_raise_copy(params);
	return r;
}

int body_cuGraphMemcpyNodeSetParams(void *node, const struct graph_memcpy *params)
{
	struct graph_memcpy ours = params ? *params : (struct graph_memcpy){0};
	int r = arrays_lower_copy(&ours);

	return r ? r : real_cuGraphMemcpyNodeSetParams(node, params ? &ours : NULL);
}

int body_cuGraphExecMemcpyNodeSetParams(
	void *graph, void *node, const struct graph_memcpy *params, void *context)
{
	uint64_t words[CALL_WORDS] = {WORD(graph), WORD(node), 0, WORD(context)};

	return call_with_copy(INDEX_cuGraphExecMemcpyNodeSetParams, params, words, 2);
}

/* ---- nodes of any kind ---- */

#define MOVE 1 /* CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE */

/* Where CUDA_MEMCPY_NODE_PARAMS and CUDA_MEMSET_NODE_PARAMS_v2 have the context: words. */
#define COPY_CONTEXT 1
#define SET_CONTEXT  5

/* What the program gave, for raise_params(). */
struct given {
	void *first, *kernel;
	struct graph_memcpy copy;
};

static int graph_has_memory(void *graph)
{
	const struct object *o = graph_argument(CUDA_GRAPH, graph);

	return o && o->kind == CUDA_GRAPH && !is_dead(o->real) && graph_state(o)->memory_nodes;
}

static int lower_first(void **handle, void *given)
{
	*handle = object_real(given);
	return is_dead(*handle) ? CUDA_ERROR_INVALID_HANDLE : 0;
}

/* Lower the parameters in place: some kinds of node are told things in them. */
static int lower_params(struct node_params *p, struct given *given)
{
	*given = (struct given){0};
	if (!p)
		return 0;
	given->first = p->params.event; /* they all are the first word */
	switch (p->type) {
	case GRAPH_HOST:
		p->params.host.function = crossing_callback_pointer(given->first);
		return 0;
	case GRAPH_KERNEL:
		given->kernel = p->params.kernel.kernel;
		return lower_kernel(&p->params.kernel, 2);
	case GRAPH_MEMCPY:
		given->copy = p->params.memcpy.copy;
		return arrays_lower_copy(&p->params.memcpy.copy);
	case GRAPH_CHILD:
		return graph_has_memory(given->first)
			       ? CUDA_ERROR_NOT_SUPPORTED
			       : lower_first(&p->params.child.graph, given->first);
	case GRAPH_WAIT_EVENT:
	case GRAPH_EVENT_RECORD:
		return lower_first(&p->params.event, given->first);
	}
	return 0;
}

static void raise_params(struct node_params *p, const struct given *given)
{
	switch (p ? p->type : GRAPH_EMPTY) {
	case GRAPH_KERNEL:
		p->params.kernel.kernel = given->kernel;
		/* fall through */
	case GRAPH_HOST:
	case GRAPH_CHILD:
	case GRAPH_WAIT_EVENT:
	case GRAPH_EVENT_RECORD:
		p->params.event = given->first;
		break;
	case GRAPH_MEMCPY:
		p->params.memcpy.copy = given->copy;
	}
}

/* A graph that is moved into @node of @whole is part of it from then on. */
static void move_child(struct object *child, void *node, struct object *whole)
{
	struct object *o = in_records_window((uintptr_t)node) ? node : NULL;

	if (o)
		__atomic_or_fetch(&o->flags, CUDA_OBJECT_ADOPTS, __ATOMIC_RELAXED);
	child->parent = o ? o : whole;
}

static void child_added(struct object *child, void *node, struct object *whole, int is_moved)
{
	if (child && whole && child->flags & CUDA_OBJECT_LOST)
		graph_lose(whole, graph_state(child)->reason);
	if (child && is_moved)
		move_child(child, node, whole);
	if (child)
		user_objects_in_child(is_moved ? NULL : node, child);
}

/* Of a copy, which the driver does not tell. */
static void note_context(void *node, uint64_t context)
{
	if (in_records_window((uintptr_t)node))
		((struct object *)node)->value = context;
}

static void note_added(struct node_params *p, void *node, void *graph)
{
	struct object *whole = graph_argument(CUDA_GRAPH, graph);

	if (p && p->type == GRAPH_MEMCPY)
		note_context(node, p->params.words[COPY_CONTEXT]);
	if (p && p->type == GRAPH_MEMSET)
		note_context(node, p->params.words[SET_CONTEXT]);

	if (p && p->type == GRAPH_CHILD)
		child_added(graph_argument(CUDA_GRAPH, p->params.child.graph), node, whole,
			p->params.child.ownership == MOVE);
	if (p && p->type == GRAPH_CONDITIONAL)
		graph_conditional_added(
			&p->params.conditional, graph_argument(CUDA_GRAPH_NODE, node), whole);
}

static int is_of_memory(const struct node_params *p)
{
	return p && (p->type == GRAPH_ALLOCATION || p->type == GRAPH_FREE);
}

static int add_memory_node(void **node, void *graph, void *const *dependencies,
	const void *edges, size_t count, struct node_params *p)
{
	return p->type == GRAPH_FREE ? graph_add_free(node, graph, dependencies, edges, count,
					       p->params.words[0])
				     : graph_add_allocation(node, graph, dependencies, edges,
					       count, &p->params.allocation);
}

int body_cuGraphAddNode(void **node, void *graph, void *const *dependencies, size_t count,
	struct node_params *params)
{
	struct given given;
	int r;

	if (is_of_memory(params))
		return add_memory_node(node, graph, dependencies, NULL, count, params);
	r = lower_params(params, &given);
	if (!r)
		r = graph_call(
			INDEX_cuGraphAddNode, WORDS(WORD(node), WORD(graph), WORD(dependencies),
						      count, WORD(params)));
	raise_params(params, &given);
	if (!r)
		note_added(params, *node, graph);
	return r;
}

int body_cuGraphAddNode_v2(void **node, void *graph, void *const *dependencies,
	const void *edges, size_t count, struct node_params *params)
{
	struct given given;
	int r;

	if (is_of_memory(params))
		return add_memory_node(node, graph, dependencies, edges, count, params);
	r = lower_params(params, &given);
	if (!r)
		r = graph_call(INDEX_cuGraphAddNode_v2,
			WORDS(WORD(node), WORD(graph), WORD(dependencies), WORD(edges), count,
				WORD(params)));
	raise_params(params, &given);
	if (!r)
		note_added(params, *node, graph);
	return r;
}

int body_cuGraphNodeSetParams(void *node, struct node_params *params)
{
	struct given given;
	int r = lower_params(params, &given);

	if (!r)
		r = real_cuGraphNodeSetParams(node, params);
	raise_params(params, &given);
	return r;
}

int body_cuGraphExecNodeSetParams(void *graph, void *node, struct node_params *params)
{
	struct given given;
	int r = lower_params(params, &given);

	if (!r)
		r = graph_call(INDEX_cuGraphExecNodeSetParams,
			WORDS(WORD(graph), WORD(node), WORD(params)));
	raise_params(params, &given);
	return r;
}

int body_cuGraphNodeGetEnabled(void *graph, void *node, unsigned *is_enabled)
{
	return graph_call(
		INDEX_cuGraphNodeGetEnabled, WORDS(WORD(graph), WORD(node), WORD(is_enabled)));
}

/* ---- */

static int instantiate_graph(
	void **executable, void *graph, struct instantiate_params *params, unsigned index)
{
	void *stream = params ? params->stream : NULL, *whole, *node;
	int r;

	if (params) {
		r = lower_first(&params->stream, stream);
		node = params->error_node;
	}
	if (!params || !r)
		r = graph_call(index, WORDS(WORD(executable), WORD(graph), WORD(params)));
	if (!params)
		return r;
	params->stream = stream;
	whole = graph_argument(CUDA_GRAPH, graph);
	if (params->error_node != node)
		params->error_node = graph_raise(CUDA_GRAPH_NODE, params->error_node, whole);
	return r;
}

int body_cuGraphInstantiateWithParams(
	void **executable, void *graph, struct instantiate_params *params)
{
	return instantiate_graph(executable, graph, params, INDEX_cuGraphInstantiateWithParams);
}

int body_cuGraphInstantiateWithParams_ptsz(
	void **executable, void *graph, struct instantiate_params *params)
{
	return instantiate_graph(
		executable, graph, params, INDEX_cuGraphInstantiateWithParams_ptsz);
}

int body_cuGraphExecUpdate_v2(void *executable, void *graph, struct update_result *result)
{
	struct update_result ours = {0};
	struct object *whole = graph_argument(CUDA_GRAPH, graph);
	int r = graph_call(INDEX_cuGraphExecUpdate_v2,
		WORDS(WORD(executable), WORD(graph), result ? WORD(&ours) : 0));

	if (!result)
		return r;
	ours.node = graph_raise(CUDA_GRAPH_NODE, ours.node, whole);
	ours.from = graph_raise(CUDA_GRAPH_NODE, ours.from, whole);
	*result = ours;
	return r;
}
