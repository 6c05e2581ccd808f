/* Graph nodes that call a function of the program: the function is exchanged for one that the
 * lower half may call, and back when the program asks. */
#include "stubs/cuda/cuda.h"

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

/* Lower the parameters in place: some kinds of node are told things in them. Returns the
 * program's function, for raise(). */
static void *lower(struct node_params *params)
{
	void *function = NULL;

	if (params && params->type == CU_GRAPH_NODE_TYPE_HOST) {
		function = params->params.host.function;
		params->params.host.function = crossing_callback_pointer(function);
	}
	return function;
}

static void raise(struct node_params *params, void *function)
{
	if (function)
		params->params.host.function = function;
}

int body_cuGraphAddNode(void **node, void *graph, void *const *dependencies, size_t count,
	struct node_params *params)
{
	void *function = lower(params);
	int r = real_cuGraphAddNode(node, graph, dependencies, count, params);

	raise(params, function);
	return r;
}

int body_cuGraphAddNode_v2(void **node, void *graph, void *const *dependencies, const void *edges,
	size_t count, struct node_params *params)
{
	void *function = lower(params);
	int r = real_cuGraphAddNode_v2(node, graph, dependencies, edges, count, params);

	raise(params, function);
	return r;
}

int body_cuGraphNodeSetParams(void *node, struct node_params *params)
{
	void *function = lower(params);
	int r = real_cuGraphNodeSetParams(node, params);

	raise(params, function);
	return r;
}

int body_cuGraphExecNodeSetParams(void *graph, void *node, struct node_params *params)
{
	void *function = lower(params);
	int r = real_cuGraphExecNodeSetParams(graph, node, params);

	raise(params, function);
	return r;
}
