/*
 * Graph nodes, whose parameters are structures with handles and functions of the program in
 * them: functions are exchanged for such as the lower half may call, handles for the driver's
 * own; and back when the program asks. Graphs themselves cannot be made again yet.
 */
#include "stubs/cuda/objects.h"

/* ---- nodes that call a function of the program ---- */

static struct host_node lowered(const struct host_node *params)
{
	return (struct host_node){
		crossing_callback_pointer(params->function), params->argument};
}

int body_cuGraphAddHostNode(void **node, void *graph, void *const *dependencies, size_t count,
	const struct host_node *params)
{
	struct host_node ours;

	if (!params)
		return real_cuGraphAddHostNode(node, graph, dependencies, count, params);
	ours = lowered(params);
	return real_cuGraphAddHostNode(node, graph, dependencies, count, &ours);
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
	ours = lowered(params);
	return real_cuGraphHostNodeSetParams(node, &ours);
}

int body_cuGraphExecHostNodeSetParams(void *graph, void *node, const struct host_node *params)
{
	struct host_node ours;

	if (!params)
		return real_cuGraphExecHostNodeSetParams(graph, node, params);
	ours = lowered(params);
	return real_cuGraphExecHostNodeSetParams(graph, node, &ours);
}

/* ---- nodes that launch a kernel ---- */

/* What the driver calls a function, back: a kernel may stand for one. Nothing but what the
 * program has asked for by its name can be in a graph. */
static void *raised(void *real)
{
	struct object *o = real ? object_find(CUDA_FUNCTION, real) : NULL;

	if (real && !o)
		o = object_find(CUDA_KERNEL, real);
	return o ? o : real;
}

static int lower_kernel(struct kernel_node *k, int version)
{
	k->function = object_real(k->function);
	if (version > 1)
		k->kernel = object_real(k->kernel);
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

#define KERNEL_NODE(suffix, version)                                                           \
	int body_cuGraphAddKernelNode##suffix(void **node, void *graph,                        \
		void *const *dependencies, size_t count, const struct kernel_node *params)     \
	{                                                                                      \
		struct kernel_node ours = {0};                                                 \
		int r = params ? copy_kernel(&ours, params, version) : 0;                      \
		return r ? r                                                                   \
			 : real_cuGraphAddKernelNode##suffix(                                  \
				   node, graph, dependencies, count, params ? &ours : NULL);   \
	}                                                                                      \
	int body_cuGraphKernelNodeGetParams##suffix(void *node, struct kernel_node *params)    \
	{                                                                                      \
		int r = real_cuGraphKernelNodeGetParams##suffix(node, params);                 \
		if (!r)                                                                        \
			params->function = raised(params->function);                           \
		if (!r && (version) > 1)                                                       \
			params->kernel = raised(params->kernel);                               \
		return r;                                                                      \
	}                                                                                      \
	int body_cuGraphKernelNodeSetParams##suffix(                                           \
		void *node, const struct kernel_node *params)                                  \
	{                                                                                      \
		struct kernel_node ours = {0};                                                 \
		int r = params ? copy_kernel(&ours, params, version) : 0;                      \
		return r ? r                                                                   \
			 : real_cuGraphKernelNodeSetParams##suffix(                            \
				   node, params ? &ours : NULL);                               \
	}                                                                                      \
	int body_cuGraphExecKernelNodeSetParams##suffix(                                       \
		void *graph, void *node, const struct kernel_node *params)                     \
	{                                                                                      \
		struct kernel_node ours = {0};                                                 \
		int r = params ? copy_kernel(&ours, params, version) : 0;                      \
		return r ? r                                                                   \
			 : real_cuGraphExecKernelNodeSetParams##suffix(                        \
				   graph, node, params ? &ours : NULL);                        \
	}
KERNEL_NODE(, 1)
KERNEL_NODE(_v2, 2)

/* ---- nodes of any kind ---- */

/* What the program gave, for raise(). */
struct given {
	void *first, *kernel;
};

/* Lower the parameters in place: some kinds of node are told things in them. */
static int lower(struct node_params *p, struct given *given)
{
	*given = (struct given){0};
	if (!p)
		return 0;
	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_HOST:
		given->first = p->params.host.function;
		p->params.host.function = crossing_callback_pointer(given->first);
		return 0;
	case CU_GRAPH_NODE_TYPE_KERNEL:
		given->first = p->params.kernel.function;
		given->kernel = p->params.kernel.kernel;
		return lower_kernel(&p->params.kernel, 2);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		given->first = p->params.event;
		p->params.event = object_real(given->first);
		return is_dead(p->params.event) ? CUDA_ERROR_INVALID_HANDLE : 0;
	}
	return 0;
}

static void raise(struct node_params *p, const struct given *given)
{
	if (given->first)
		p->params.event = given->first; /* they all are the first word */
	if (given->kernel)
		p->params.kernel.kernel = given->kernel;
}

#define CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE 1

/* A graph that is moved into another one is part of it from then on. */
static void moved(const struct node_params *p, void *graph)
{
	struct object *child;

	if (!p || p->type != CU_GRAPH_NODE_TYPE_GRAPH ||
		p->params.child.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
		return;
	child = object_find(CUDA_GRAPH, p->params.child.graph);
	if (child)
		child->parent = object_find(CUDA_GRAPH, graph);
}

int body_cuGraphAddNode(void **node, void *graph, void *const *dependencies, size_t count,
	struct node_params *params)
{
	struct given given;
	int r = lower(params, &given);

	if (!r)
		r = real_cuGraphAddNode(node, graph, dependencies, count, params);
	if (!r)
		moved(params, graph);
	raise(params, &given);
	return r;
}

int body_cuGraphAddNode_v2(void **node, void *graph, void *const *dependencies,
	const void *edges, size_t count, struct node_params *params)
{
	struct given given;
	int r = lower(params, &given);

	if (!r)
		r = real_cuGraphAddNode_v2(node, graph, dependencies, edges, count, params);
	if (!r)
		moved(params, graph);
	raise(params, &given);
	return r;
}

int body_cuGraphNodeSetParams(void *node, struct node_params *params)
{
	struct given given;
	int r = lower(params, &given);

	if (!r)
		r = real_cuGraphNodeSetParams(node, params);
	raise(params, &given);
	return r;
}

int body_cuGraphExecNodeSetParams(void *graph, void *node, struct node_params *params)
{
	struct given given;
	int r = lower(params, &given);

	if (!r)
		r = real_cuGraphExecNodeSetParams(graph, node, params);
	raise(params, &given);
	return r;
}

/* ---- */

typedef int instantiate(void **, void *, struct instantiate_params *);

static int instantiate_lowered(
	void **executable, void *graph, struct instantiate_params *params, instantiate *real)
{
	void *stream = params ? params->stream : NULL;
	int r;

	if (params)
		params->stream = object_real(stream);
	r = is_dead(params ? params->stream : NULL) ? CUDA_ERROR_INVALID_HANDLE
						    : real(executable, graph, params);
	if (params)
		params->stream = stream;
	return r ? r : object_lost(CUDA_GRAPH_EXEC, *executable);
}

int body_cuGraphInstantiateWithParams(
	void **executable, void *graph, struct instantiate_params *params)
{
	return instantiate_lowered(
		executable, graph, params, real_cuGraphInstantiateWithParams);
}

int body_cuGraphInstantiateWithParams_ptsz(
	void **executable, void *graph, struct instantiate_params *params)
{
	return instantiate_lowered(
		executable, graph, params, real_cuGraphInstantiateWithParams_ptsz);
}
