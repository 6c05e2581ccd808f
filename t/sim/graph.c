/* Graphs, as far as to hold host nodes and run them. */
#include <stdlib.h>

#include "t/sim/object.h"
#include "t/sim/sim.h"
#include "t/sim/stream.h"

struct host_node {
	void (*function)(void *);
	void *data;
};

struct instantiate_params;

/* CUgraphNodeParams, of a graph */
#define CU_GRAPH_NODE_TYPE_GRAPH 4
struct node_params {
	int type, reserved[3];
	union {
		struct {
			void *graph;
			int ownership;
		} child;
		uint64_t words[29];
	} params;
	uint64_t reserved2;
};

struct node {
	struct object object;
	struct host_node host;
	struct node *next;
};

struct graph {
	struct object object;
	struct node *nodes;
};

SIM_EXPORT int cuGraphCreate(void **graph, unsigned flags);
SIM_EXPORT int cuGraphAddHostNode(void **node, void *graph, void *const *dependencies,
	size_t count, const struct host_node *params);
SIM_EXPORT int cuGraphHostNodeGetParams(void *node, struct host_node *params);
SIM_EXPORT int cuGraphInstantiateWithFlags(void **executable, void *graph, uint64_t flags);
SIM_EXPORT int cuGraphInstantiateWithParams(
	void **executable, void *graph, struct instantiate_params *params);
SIM_EXPORT int cuGraphClone(void **clone, void *graph);
SIM_EXPORT int cuGraphAddNode_v2(void **node, void *graph, void *const *dependencies,
	const void *edges, size_t count, struct node_params *params);
SIM_EXPORT int cuStreamBeginCapture_v2(void *stream, int mode);
SIM_EXPORT int cuStreamEndCapture(void *stream, void **graph);
SIM_EXPORT int cuGraphLaunch(void *executable, void *stream);
SIM_EXPORT int cuGraphExecDestroy(void *executable);
SIM_EXPORT int cuGraphDestroy(void *graph);
SIM_EXPORT int cuGraphAddEventRecordNode(
	void **node, void *graph, void *const *dependencies, size_t count, void *event);
SIM_EXPORT int cuGraphEventRecordNodeSetEvent(void *node, void *event);

int cuGraphCreate(void **graph, unsigned flags)
{
	SIM_ENTER();
	*graph = object_new(OBJECT_GRAPH, sizeof(struct graph));
	return 0;
}

int cuGraphAddHostNode(void **node, void *graph, void *const *dependencies, size_t count,
	const struct host_node *params)
{
	struct graph *g;
	struct node *n;

	SIM_ENTER();
	g = object_get(OBJECT_GRAPH, graph, __func__);
	if (!g || !params)
		return SIM_INVALID_VALUE;
	n = object_new(OBJECT_NODE, sizeof(*n));
	n->host = *params;
	n->next = g->nodes;
	g->nodes = n;
	*node = n;
	return 0;
}

int cuGraphHostNodeGetParams(void *node, struct host_node *params)
{
	struct node *n;

	SIM_ENTER();
	n = object_get(OBJECT_NODE, node, __func__);
	if (!n)
		return SIM_INVALID_VALUE;
	*params = n->host;
	return 0;
}

static int copy_nodes(struct graph *to, const struct graph *from)
{
	struct node **at = &to->nodes;

	for (const struct node *n = from->nodes; n; n = n->next) {
		*at = object_new(OBJECT_NODE, sizeof(**at));
		if (!*at)
			return SIM_OUT_OF_MEMORY;
		(*at)->host = n->host;
		at = &(*at)->next;
	}
	return 0;
}

/* A graph or executable graph of its own: what it was made of may go. */
static int copy(void **to, enum object_kind kind, void *graph, const char *function)
{
	struct graph *from = object_get(OBJECT_GRAPH, graph, function);
	struct graph *made = from ? object_new(kind, sizeof(*made)) : NULL;

	if (!from)
		return SIM_INVALID_VALUE;
	*to = made;
	return made ? copy_nodes(made, from) : SIM_OUT_OF_MEMORY;
}

static void destroy(struct graph *g)
{
	struct node *n;

	while ((n = g->nodes)) {
		g->nodes = n->next;
		object_free(n);
	}
	object_free(g);
}

int cuGraphInstantiateWithFlags(void **executable, void *graph, uint64_t flags)
{
	SIM_ENTER();
	return copy(executable, OBJECT_GRAPH_EXEC, graph, __func__);
}

int cuGraphInstantiateWithParams(
	void **executable, void *graph, struct instantiate_params *params)
{
	SIM_ENTER();
	return copy(executable, OBJECT_GRAPH_EXEC, graph, __func__);
}

int cuGraphClone(void **clone, void *graph)
{
	SIM_ENTER();
	return copy(clone, OBJECT_GRAPH, graph, __func__);
}

/* A graph as a node: moved into the other one, whose it is from then on. */
int cuGraphAddNode_v2(void **node, void *graph, void *const *dependencies, const void *edges,
	size_t count, struct node_params *params)
{
	struct graph *g, *child;

	SIM_ENTER();
	g = object_get(OBJECT_GRAPH, graph, __func__);
	if (!g || params->type != CU_GRAPH_NODE_TYPE_GRAPH)
		return SIM_INVALID_VALUE;
	child = object_get(OBJECT_GRAPH, params->params.child.graph, __func__);
	if (!child || params->params.child.ownership != 1)
		return SIM_INVALID_VALUE;
	*node = object_new(OBJECT_NODE, sizeof(struct node));
	destroy(child);
	return *node ? 0 : SIM_OUT_OF_MEMORY;
}

static void run_node(void *data)
{
	struct host_node *h = data;

	h->function(h->data);
}

int cuGraphLaunch(void *executable, void *stream)
{
	struct graph *g;

	SIM_ENTER();
	g = object_get(OBJECT_GRAPH_EXEC, executable, __func__);
	for (struct node *n = g ? g->nodes : NULL; n; n = n->next)
		stream_queue(
			stream, run_node, stream_data(&n->host, sizeof(n->host)), __func__);
	return g ? 0 : SIM_INVALID_HANDLE;
}

static int destroy_handle(enum object_kind kind, void *graph, const char *function)
{
	struct graph *g = object_get(kind, graph, function);

	if (g)
		destroy(g);
	return g ? 0 : SIM_INVALID_HANDLE;
}

int cuGraphExecDestroy(void *executable)
{
	SIM_ENTER();
	return destroy_handle(OBJECT_GRAPH_EXEC, executable, __func__);
}

int cuGraphDestroy(void *graph)
{
	SIM_ENTER();
	return destroy_handle(OBJECT_GRAPH, graph, __func__);
}

/* Nothing that is done meanwhile comes into the graph. */
int cuStreamBeginCapture_v2(void *stream, int mode)
{
	SIM_ENTER();
	return object_get(OBJECT_STREAM, stream, __func__) ? 0 : SIM_INVALID_HANDLE;
}

int cuStreamEndCapture(void *stream, void **graph)
{
	SIM_ENTER();
	if (!object_get(OBJECT_STREAM, stream, __func__))
		return SIM_INVALID_HANDLE;
	*graph = object_new(OBJECT_GRAPH, sizeof(struct graph));
	return *graph ? 0 : SIM_OUT_OF_MEMORY;
}

static void record_nothing(void *data)
{
}

int cuGraphAddEventRecordNode(
	void **node, void *graph, void *const *dependencies, size_t count, void *event)
{
	const struct host_node host = {record_nothing, NULL};

	SIM_ENTER();
	if (!object_get(OBJECT_EVENT, event, __func__))
		return SIM_INVALID_HANDLE;
	return cuGraphAddHostNode(node, graph, dependencies, count, &host);
}

int cuGraphEventRecordNodeSetEvent(void *node, void *event)
{
	SIM_ENTER();
	return object_get(OBJECT_EVENT, event, __func__) &&
			       object_get(OBJECT_NODE, node, __func__)
		       ? 0
		       : SIM_INVALID_HANDLE;
}
