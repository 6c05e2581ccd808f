/* Graphs, as far as to hold host nodes and run them. */
#include <stdlib.h>

#include "t/sim/object.h"
#include "t/sim/sim.h"
#include "t/sim/stream.h"

struct host_node {
	void (*function)(void *);
	void *data;
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

int cuGraphInstantiateWithFlags(void **executable, void *graph, uint64_t flags)
{
	SIM_ENTER();
	*executable = object_get(OBJECT_GRAPH, graph, __func__);
	return *executable ? 0 : SIM_INVALID_VALUE;
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
	g = object_get(OBJECT_GRAPH, executable, __func__);
	for (struct node *n = g ? g->nodes : NULL; n; n = n->next)
		stream_queue(
			stream, run_node, stream_data(&n->host, sizeof(n->host)), __func__);
	return g ? 0 : SIM_INVALID_HANDLE;
}

/* One is what the other was made of. */
int cuGraphExecDestroy(void *executable)
{
	SIM_ENTER();
	return object_get(OBJECT_GRAPH, executable, __func__) ? 0 : SIM_INVALID_HANDLE;
}

int cuGraphDestroy(void *graph)
{
	struct graph *g;
	struct node *n;

	SIM_ENTER();
	g = object_get(OBJECT_GRAPH, graph, __func__);
	while (g && (n = g->nodes)) {
		g->nodes = n->next;
		object_free(n);
	}
	if (g)
		object_free(g);
	return g ? 0 : SIM_INVALID_HANDLE;
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
