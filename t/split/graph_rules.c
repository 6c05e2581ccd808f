/*
 * What the driver refuses to do with graphs that allocate and free memory, a line each: what t/gpu/graph_memory.cu asks a
 * real one. Launches nothing.
 */
#include <stdio.h>

#include "shared/cuda/graph_params.h"
#include "t/split/driver_victim.h"

#define BYTES 4096

int cuGraphAddMemFreeNode(void **, void *, void *const *, size_t, uint64_t);

static void fact(const char *name, int value)
{
	printf("%s %d\n", name, value);
}

static void *add_allocation(void *graph, CUdeviceptr *address)
{
	struct graph_allocation p = {.kind = 1, .location = 1, .size = BYTES};
	void *node = NULL;

	WORKS(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &p));
	*address = p.address;
	return node;
}

/* It allocates, and frees that again: the nodes. */
static void *make_graph(void **nodes)
{
	CUdeviceptr address;
	void *graph;

	WORKS(cuGraphCreate(&graph, 0));
	nodes[0] = add_allocation(graph, &address);
	WORKS(cuGraphAddMemFreeNode(&nodes[1], graph, nodes, 1, address));
	return graph;
}

/* It fills what it allocates in between. */
static void *make_filling(uint32_t value)
{
	struct graph_memset set = {
		.value = value, .element = 4, .width = BYTES / 4, .height = 1};
	void *graph, *node, *context;

	WORKS(cuCtxGetCurrent(&context));
	WORKS(cuGraphCreate(&graph, 0));
	node = add_allocation(graph, &set.address);
	WORKS(cuGraphAddMemsetNode(&node, graph, &node, 1, &set, context));
	WORKS(cuGraphAddMemFreeNode(&node, graph, &node, 1, set.address));
	return graph;
}

static void *make_empty(void **nodes)
{
	void *graph;

	WORKS(cuGraphCreate(&graph, 0));
	WORKS(cuGraphAddEmptyNode(&nodes[0], graph, NULL, 0));
	WORKS(cuGraphAddEmptyNode(&nodes[1], graph, nodes, 1));
	return graph;
}

static void removals(void)
{
	void *nodes[2], *empty, *graph = make_graph(nodes), *other;

	WORKS(cuGraphAddEmptyNode(&empty, graph, nodes, 1));
	fact("remove-edge", cuGraphRemoveDependencies(graph, &nodes[0], &empty, 1));
	fact("destroy-free-node", cuGraphDestroyNode(nodes[1]));
	fact("destroy-allocation-node", cuGraphDestroyNode(nodes[0]));
	fact("destroy-node-beside", cuGraphDestroyNode(empty));
	WORKS(cuGraphDestroy(graph));
	graph = make_empty(nodes);
	fact("remove-edge-elsewhere",
		cuGraphRemoveDependencies(graph, &nodes[0], &nodes[1], 1));
	fact("destroy-node-elsewhere", cuGraphDestroyNode(nodes[1]));
	fact("clone-elsewhere", cuGraphClone(&other, graph));
	WORKS(cuGraphDestroy(other));
	WORKS(cuGraphDestroy(graph));
}

static void frees(void)
{
	CUdeviceptr address;
	void *graph, *other, *node;

	WORKS(cuGraphCreate(&graph, 0));
	add_allocation(graph, &address);
	WORKS(cuGraphCreate(&other, 0));
	fact("free-of-another's", cuGraphAddMemFreeNode(&node, other, NULL, 0, address));
	fact("free-of-another's-twice", cuGraphAddMemFreeNode(&node, other, NULL, 0, address));
	WORKS(cuGraphDestroy(other));
	fact("free-node", cuGraphAddMemFreeNode(&node, graph, NULL, 0, address));
	fact("free-node-twice", cuGraphAddMemFreeNode(&node, graph, NULL, 0, address));
	WORKS(cuGraphDestroy(graph));
}

static void copies(void)
{
	void *nodes[2], *graph = make_graph(nodes), *other, *executable, *second, *node;

	fact("clone", cuGraphClone(&other, graph));
	WORKS(cuGraphCreate(&other, 0));
	fact("as-child", cuGraphAddChildGraphNode(&node, other, NULL, 0, graph));
	WORKS(cuGraphDestroy(other));
	WORKS(cuGraphInstantiateWithFlags(&executable, graph, 0));
	fact("second-executable", cuGraphInstantiateWithFlags(&second, graph, 0));
	WORKS(cuGraphExecDestroy(executable));
	fact("executable-again", cuGraphInstantiateWithFlags(&executable, graph, 0));
	WORKS(cuGraphDestroy(graph));
	WORKS(cuGraphExecDestroy(executable));
}

/* CUgraphExecUpdateResultInfo */
static struct {
	int result;
	void *node, *from;
} info;

static void updates(void)
{
	void *nodes[2], *before = make_graph(nodes), *after = make_graph(nodes), *third,
			*executable, *other;

	WORKS(cuGraphInstantiateWithFlags(&executable, before, 0));
	fact("update", cuGraphExecUpdate_v2(executable, after, &info));
	fact("update-result", info.result);
	fact("update-of-itself", cuGraphExecUpdate_v2(executable, before, &info));
	fact("update-of-itself-result", info.result);
	WORKS(cuGraphDestroy(before));
	WORKS(cuGraphInstantiateWithFlags(&other, after, 0));
	fact("update-from-instantiated", cuGraphExecUpdate_v2(executable, after, &info));
	fact("update-from-instantiated-result", info.result);
	WORKS(cuGraphExecDestroy(other));
	fact("update-without-graph", cuGraphExecUpdate_v2(executable, after, &info));
	fact("executable-after-update", cuGraphInstantiateWithFlags(&other, after, 0));
	third = make_graph(nodes);
	fact("update-again", cuGraphExecUpdate_v2(executable, third, &info));
	WORKS(cuGraphDestroy(after));
	fact("update-again-without-graph", cuGraphExecUpdate_v2(executable, third, &info));
	WORKS(cuGraphDestroy(third));
	third = make_empty(nodes);
	fact("update-from-other-nodes", cuGraphExecUpdate_v2(executable, third, &info));
	fact("update-from-other-nodes-result", info.result);
	WORKS(cuGraphDestroy(third));
	WORKS(cuGraphExecDestroy(executable));
}

static void updates_of_sets(void)
{
	void *before = make_filling(1), *after = make_filling(2), *executable, *other;

	WORKS(cuGraphInstantiateWithFlags(&executable, before, 0));
	fact("update-of-set", cuGraphExecUpdate_v2(executable, after, &info));
	fact("update-of-set-result", info.result);
	fact("update-of-set-of-itself", cuGraphExecUpdate_v2(executable, before, &info));
	WORKS(cuGraphDestroy(before));
	fact("update-of-set-without-graph", cuGraphExecUpdate_v2(executable, after, &info));
	fact("update-of-set-without-graph-result", info.result);
	fact("executable-after-that", cuGraphInstantiateWithFlags(&other, after, 0));
	WORKS(cuGraphExecDestroy(other));
	WORKS(cuGraphDestroy(after));
	WORKS(cuGraphExecDestroy(executable));
}

int main(void)
{
	void *context;

	WORKS(cuInit(0));
	WORKS(cuDevicePrimaryCtxRetain(&context, 0));
	WORKS(cuCtxSetCurrent(context));
	removals();
	frees();
	copies();
	updates();
	updates_of_sets();
	return 0;
}
