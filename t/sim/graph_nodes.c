/* Adding nodes of each kind, and their parameters. */
#include <stdlib.h>
#include <string.h>

#include "t/sim/device.h"
#include "t/sim/graph.h"
#include "t/sim/module.h"

typedef void *const *dependencies;

/* CUgraphNodeParams */
struct any_params {
	int type, reserved[3];
	union {
		union graph_params known;
		struct {
			void *graph;
			int ownership;
		} child;
		struct {
			uint64_t handle;
			int type;
			unsigned count;
			void **graphs;
			void *context;
		} conditional;
		uint64_t words[29];
	} params;
	uint64_t reserved2;
};

static int add(void **node, void *graph, dependencies list, const uint64_t *edges, size_t count,
	int type, const void *params, size_t size, const char *function)
{
	struct sim_graph *g = graph_get(graph, function);
	union graph_params all = {0};
	struct sim_node *n, *from;
	int r;

	if (!g || (size && !params))
		return SIM_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		from = object_get(OBJECT_NODE, list[i], function);
		if (!from || from->graph != g)
			return SIM_INVALID_VALUE;
	}
	if (size)
		memcpy(&all, params, size);
	n = graph_add(g, type, NULL);
	r = graph_set_params(n, &all, function);
	for (size_t i = 0; i < count; i++)
		graph_add_edge(n, list[i], edges ? edges[i] : 0);
	*node = n;
	return r;
}

/* Templates, as each kind of node has exported functions of its own, with a type of its own. */
#define ADD(name, kind, type)                                                                  \
	SIM_EXPORT int name(void **node, void *graph, dependencies list, size_t count,         \
		const type *params);                                                           \
	int name(                                                                              \
		void **node, void *graph, dependencies list, size_t count, const type *params) \
	{                                                                                      \
		SIM_ENTER();                                                                   \
		return add(                                                                    \
			node, graph, list, NULL, count, kind, params, sizeof(type), __func__); \
	}
#define GET_SET(get, set, kind, type)                                                          \
	SIM_EXPORT int get(void *node, type *params);                                          \
	SIM_EXPORT int set(void *node, const type *params);                                    \
	int get(void *node, type *params)                                                      \
	{                                                                                      \
		SIM_ENTER();                                                                   \
		return get_params(node, kind, params, sizeof(type), __func__);                 \
	}                                                                                      \
	int set(void *node, const type *params)                                                \
	{                                                                                      \
		SIM_ENTER();                                                                   \
		return set_params(node, kind, params, sizeof(type), __func__);                 \
	}

static int get_params(void *node, int kind, void *params, size_t size, const char *function)
{
	struct sim_node *n = object_get(OBJECT_NODE, node, function);

	if (!n || n->type != kind)
		return SIM_INVALID_VALUE;
	memcpy(params, &n->params, size);
	return 0;
}

static int set_params(
	void *node, int kind, const void *params, size_t size, const char *function)
{
	struct sim_node *n = object_get(OBJECT_NODE, node, function);
	union graph_params all = {0};

	if (!n || n->type != kind || !params)
		return SIM_INVALID_VALUE;
	memcpy(&all, params, size);
	return graph_set_params(n, &all, function);
}

ADD(cuGraphAddKernelNode_v2, GRAPH_KERNEL, struct graph_kernel)
GET_SET(cuGraphKernelNodeGetParams_v2, cuGraphKernelNodeSetParams_v2, GRAPH_KERNEL,
	struct graph_kernel)
ADD(cuGraphAddHostNode, GRAPH_HOST, struct graph_host)
GET_SET(cuGraphHostNodeGetParams, cuGraphHostNodeSetParams, GRAPH_HOST, struct graph_host)
GET_SET(cuGraphMemcpyNodeGetParams, cuGraphMemcpyNodeSetParams, GRAPH_MEMCPY,
	struct graph_memcpy)
GET_SET(cuGraphMemsetNodeGetParams, cuGraphMemsetNodeSetParams, GRAPH_MEMSET,
	struct graph_memset)
ADD(cuGraphAddBatchMemOpNode, GRAPH_BATCH_MEM_OP, struct graph_batch)
GET_SET(cuGraphBatchMemOpNodeGetParams, cuGraphBatchMemOpNodeSetParams, GRAPH_BATCH_MEM_OP,
	struct graph_batch)
ADD(cuGraphAddExternalSemaphoresSignalNode, GRAPH_SIGNAL, struct graph_semaphores)
GET_SET(cuGraphExternalSemaphoresSignalNodeGetParams,
	cuGraphExternalSemaphoresSignalNodeSetParams, GRAPH_SIGNAL, struct graph_semaphores)
ADD(cuGraphAddExternalSemaphoresWaitNode, GRAPH_WAIT, struct graph_semaphores)
GET_SET(cuGraphExternalSemaphoresWaitNodeGetParams, cuGraphExternalSemaphoresWaitNodeSetParams,
	GRAPH_WAIT, struct graph_semaphores)

/* Structures of version 1 end before the kernel. */
struct kernel_v1 {
	char bytes[56];
};
ADD(cuGraphAddKernelNode, GRAPH_KERNEL, struct kernel_v1)
GET_SET(cuGraphKernelNodeGetParams, cuGraphKernelNodeSetParams, GRAPH_KERNEL, struct kernel_v1)

/* ---- in a context ---- */

#define ADD_IN_CONTEXT(name, kind, type)                                                       \
	SIM_EXPORT int name(void **node, void *graph, dependencies list, size_t count,         \
		const type *params, void *context);                                            \
	int name(void **node, void *graph, dependencies list, size_t count,                    \
		const type *params, void *context)                                             \
	{                                                                                      \
		SIM_ENTER();                                                                   \
		if (!object_get(OBJECT_CONTEXT, context, __func__))                            \
			return SIM_INVALID_CONTEXT;                                            \
		return add(                                                                    \
			node, graph, list, NULL, count, kind, params, sizeof(type), __func__); \
	}
ADD_IN_CONTEXT(cuGraphAddMemcpyNode, GRAPH_MEMCPY, struct graph_memcpy)
ADD_IN_CONTEXT(cuGraphAddMemsetNode, GRAPH_MEMSET, struct graph_memset)

/* ---- without parameters, or with one ---- */

#define EVENT(add_name, get, set, kind)                                                        \
	SIM_EXPORT int add_name(                                                               \
		void **node, void *graph, dependencies list, size_t count, void *event);       \
	int add_name(void **node, void *graph, dependencies list, size_t count, void *event)   \
	{                                                                                      \
		SIM_ENTER();                                                                   \
		return add(node, graph, list, NULL, count, kind, &event, sizeof(event),        \
			__func__);                                                             \
	}                                                                                      \
	SIM_EXPORT int get(void *node, void **event);                                          \
	SIM_EXPORT int set(void *node, void *event);                                           \
	int get(void *node, void **event)                                                      \
	{                                                                                      \
		SIM_ENTER();                                                                   \
		return get_params(node, kind, event, sizeof(*event), __func__);                \
	}                                                                                      \
	int set(void *node, void *event)                                                       \
	{                                                                                      \
		SIM_ENTER();                                                                   \
		return set_params(node, kind, &event, sizeof(event), __func__);                \
	}
EVENT(cuGraphAddEventRecordNode, cuGraphEventRecordNodeGetEvent, cuGraphEventRecordNodeSetEvent,
	GRAPH_EVENT_RECORD)
EVENT(cuGraphAddEventWaitNode, cuGraphEventWaitNodeGetEvent, cuGraphEventWaitNodeSetEvent,
	GRAPH_WAIT_EVENT)

SIM_EXPORT int cuGraphAddEmptyNode(void **node, void *graph, dependencies list, size_t count);
SIM_EXPORT int cuGraphAddChildGraphNode(
	void **node, void *graph, dependencies list, size_t count, void *child);
SIM_EXPORT int cuGraphChildGraphNodeGetGraph(void *node, void **graph);
SIM_EXPORT int cuGraphAddMemAllocNode(void **node, void *graph, dependencies list, size_t count,
	struct graph_allocation *params);
SIM_EXPORT int cuGraphAddMemFreeNode(
	void **node, void *graph, dependencies list, size_t count, uint64_t address);
SIM_EXPORT int cuGraphConditionalHandleCreate(
	uint64_t *handle, void *graph, void *context, unsigned value, unsigned flags);
SIM_EXPORT int cuGraphAddNode_v2(void **node, void *graph, dependencies list,
	const uint64_t *edges, size_t count, struct any_params *params);
SIM_EXPORT int cuGraphKernelNodeGetAttribute(void *node, int attribute, void *value);
SIM_EXPORT int cuGraphKernelNodeSetAttribute(void *node, int attribute, const void *value);
SIM_EXPORT int cuGraphKernelNodeCopyAttributes(void *to, void *from);
SIM_EXPORT int cuFuncGetParamInfo(void *function, size_t i, size_t *offset, size_t *size);
SIM_EXPORT int cuKernelGetParamInfo(void *kernel, size_t i, size_t *offset, size_t *size);

int cuGraphAddEmptyNode(void **node, void *graph, dependencies list, size_t count)
{
	SIM_ENTER();
	return add(node, graph, list, NULL, count, GRAPH_EMPTY, NULL, 0, __func__);
}

static int add_child(void **node, void *graph, dependencies list, const uint64_t *edges,
	size_t count, struct sim_graph *child, const char *function)
{
	int r = add(node, graph, list, edges, count, GRAPH_CHILD, NULL, 0, function);

	if (!r) {
		((struct sim_node *)*node)->child = child;
		child->owner = *node;
	}
	return r;
}

int cuGraphAddChildGraphNode(
	void **node, void *graph, dependencies list, size_t count, void *child)
{
	struct sim_graph *g;

	SIM_ENTER();
	g = graph_get(child, __func__);
	if (!g)
		return SIM_INVALID_VALUE;
	if (graph_is_strange(g))
		return SIM_NOT_SUPPORTED;
	return add_child(node, graph, list, NULL, count, graph_copy(OBJECT_GRAPH, g), __func__);
}

int cuGraphChildGraphNodeGetGraph(void *node, void **graph)
{
	struct sim_node *n;

	SIM_ENTER();
	n = object_get(OBJECT_NODE, node, __func__);
	if (!n || n->type != GRAPH_CHILD)
		return SIM_INVALID_VALUE;
	*graph = n->child;
	return 0;
}

/* Addresses that nothing is at: such graphs are not launched here. */
#define GRAPH_MEMORY 0x7f0000000000
#define PIECE        (32ul << 20)
static uint64_t next_piece = GRAPH_MEMORY;

bool graph_is_memory(uint64_t address)
{
	return address >= GRAPH_MEMORY && address < next_piece;
}

int cuGraphAddMemAllocNode(void **node, void *graph, dependencies list, size_t count,
	struct graph_allocation *params)
{
	int r;

	SIM_ENTER();
	r = add(node, graph, list, NULL, count, GRAPH_ALLOCATION, NULL, 0, __func__);
	if (r)
		return r;
	params->address = ((struct sim_node *)*node)->address = next_piece;
	next_piece += PIECE;
	return 0;
}

int cuGraphAddMemFreeNode(
	void **node, void *graph, dependencies list, size_t count, uint64_t address)
{
	struct sim_graph *g;
	int r;

	SIM_ENTER();
	g = graph_get(graph, __func__);
	if (!g || !graph_is_memory(address) || address % PIECE)
		return SIM_INVALID_VALUE;
	for (const struct sim_node *n = g->first; n; n = n->next)
		if (n->type == GRAPH_FREE && n->address == address)
			return SIM_INVALID_VALUE;
	r = add(node, graph, list, NULL, count, GRAPH_FREE, NULL, 0, __func__);
	if (!r)
		((struct sim_node *)*node)->address = address;
	return r;
}

int cuGraphConditionalHandleCreate(
	uint64_t *handle, void *graph, void *context, unsigned value, unsigned flags)
{
	struct sim_graph *g;

	SIM_ENTER();
	g = graph_get(graph, __func__);
	if (!g)
		return SIM_INVALID_VALUE;
	if (!context || !object_get(OBJECT_CONTEXT, context, __func__))
		return SIM_INVALID_CONTEXT;
	g = graph_whole(g);
	g->handles = realloc(g->handles, (g->handle_count + 1) * sizeof(*g->handles));
	g->handles[g->handle_count] = (struct sim_handle){.standard = value, .flags = flags};
	*handle = g->handle_count++ + strtoul(sim_machine("handles_from", "1"), NULL, 10);
	return 0;
}

static bool may_have(int condition, unsigned bodies)
{
	return bodies &&
	       (condition == SIM_SWITCH || bodies == 1 || (condition == SIM_IF && bodies == 2));
}

static int add_conditional(void **node, void *graph, dependencies list, const uint64_t *edges,
	size_t count, struct any_params *p, const char *function)
{
	struct sim_graph *g = graph_get(graph, function), *whole;
	uint64_t handle = p->params.conditional.handle;
	struct sim_node *n;
	int r;

	whole = g ? graph_whole(g) : NULL;
	if (!whole || !handle || handle > whole->handle_count ||
		whole->handles[handle - 1].used ||
		!may_have(p->params.conditional.type, p->params.conditional.count))
		return SIM_INVALID_VALUE;
	r = add(node, graph, list, edges, count, GRAPH_CONDITIONAL, NULL, 0, function);
	if (r)
		return r;
	n = *node;
	n->handle = handle;
	n->condition = p->params.conditional.type;
	graph_add_bodies(n, p->params.conditional.count);
	whole->handles[handle - 1].used = true;
	p->params.conditional.graphs = (void **)n->bodies;
	return 0;
}

int cuGraphAddNode_v2(void **node, void *graph, dependencies list, const uint64_t *edges,
	size_t count, struct any_params *params)
{
	struct sim_graph *child;

	SIM_ENTER();
	if (params->type == GRAPH_CONDITIONAL)
		return add_conditional(node, graph, list, edges, count, params, __func__);
	if (params->type != GRAPH_CHILD)
		return add(node, graph, list, edges, count, params->type, &params->params,
			sizeof(union graph_params), __func__);
	child = graph_get(params->params.child.graph, __func__);
	if (!child || child->owner)
		return SIM_INVALID_VALUE;
	if (child->handle_count)
		return SIM_NOT_SUPPORTED;
	if (!params->params.child.ownership)
		child = graph_copy(OBJECT_GRAPH, child);
	return add_child(node, graph, list, edges, count, child, __func__);
}

/* ---- attributes, and what functions take ---- */

static uint64_t *attribute_of(void *node, int attribute, const char *function)
{
	struct sim_node *n = object_get(OBJECT_NODE, node, function);

	if (!n || n->type != GRAPH_KERNEL || attribute < 1 || attribute >= SIM_ATTRIBUTES ||
		attribute == 3)
		return NULL;
	return n->attributes[attribute];
}

int cuGraphKernelNodeGetAttribute(void *node, int attribute, void *value)
{
	uint64_t *a;

	SIM_ENTER();
	a = attribute_of(node, attribute, __func__);
	if (a)
		memcpy(value, a, 64);
	return a ? 0 : SIM_INVALID_VALUE;
}

int cuGraphKernelNodeSetAttribute(void *node, int attribute, const void *value)
{
	uint64_t *a;

	SIM_ENTER();
	a = attribute_of(node, attribute, __func__);
	if (a)
		memcpy(a, value, 64);
	return a ? 0 : SIM_INVALID_VALUE;
}

int cuGraphKernelNodeCopyAttributes(void *to, void *from)
{
	SIM_ENTER();
	if (!attribute_of(to, 1, __func__) || !attribute_of(from, 1, __func__))
		return SIM_INVALID_VALUE;
	memcpy(((struct sim_node *)to)->attributes, ((struct sim_node *)from)->attributes,
		sizeof(((struct sim_node *)to)->attributes));
	return 0;
}

static int param_info(void *handle, enum object_kind kind, size_t i, size_t *offset,
	size_t *size, const char *function)
{
	if (!object_get(kind, handle, function))
		return SIM_INVALID_HANDLE;
	if (i >= SIM_PARAMS)
		return SIM_INVALID_VALUE;
	*offset = 8 * i;
	*size = 8;
	return 0;
}

int cuFuncGetParamInfo(void *function, size_t i, size_t *offset, size_t *size)
{
	SIM_ENTER();
	return param_info(function, OBJECT_FUNCTION, i, offset, size, __func__);
}

int cuKernelGetParamInfo(void *kernel, size_t i, size_t *offset, size_t *size)
{
	SIM_ENTER();
	return param_info(kernel, OBJECT_KERNEL, i, offset, size, __func__);
}
