/* Streams that are being captured: work becomes nodes, events lead from stream to stream. */
#include <stdlib.h>
#include <string.h>

#include "t/sim/device.h"
#include "t/sim/graph.h"

enum {
	UNSUPPORTED = 900,
	UNMATCHED = 903,
	UNJOINED = 904,
	ISOLATION = 905,
	ILLEGAL_STATE = 401,
};

struct capture {
	struct sim_graph *graph;
	void *origin;
	uint64_t id;
	size_t before; /* nodes that were there */
	int own;       /* the graph is */
};

/* Where a stream is, or an event was recorded. */
struct place {
	void *handle;
	struct capture *capture;
	struct sim_node **nodes;
	size_t count;
	struct place *next;
};

static struct place *streams, *events;

SIM_EXPORT int cuStreamBeginCapture_v2(void *stream, int mode);
SIM_EXPORT int cuStreamBeginCaptureToGraph(void *stream, void *graph, void *const *list,
	const uint64_t *edges, size_t count, int mode);
SIM_EXPORT int cuStreamEndCapture(void *stream, void **graph);
SIM_EXPORT int cuStreamIsCapturing(void *stream, int *status);
SIM_EXPORT int cuStreamGetCaptureInfo_v2(
	void *stream, int *status, uint64_t *id, void **graph, void ***nodes, size_t *count);
SIM_EXPORT int cuStreamGetCaptureInfo_v3(void *stream, int *status, uint64_t *id, void **graph,
	void ***nodes, const void **edges, size_t *count);
SIM_EXPORT int cuStreamUpdateCaptureDependencies(
	void *stream, void *const *nodes, size_t count, unsigned flags);

static struct place *find(struct place *list, const void *handle)
{
	while (list && list->handle != handle)
		list = list->next;
	return list;
}

static struct place *add(struct place **list, void *handle, struct capture *c)
{
	struct place *p = calloc(1, sizeof(*p));

	*p = (struct place){.handle = handle, .capture = c, .next = *list};
	return *list = p;
}

static void drop(struct place **list, const void *handle, const struct capture *c)
{
	while (*list) {
		struct place *p = *list;

		if (p->handle != handle && p->capture != c) {
			list = &p->next;
			continue;
		}
		*list = p->next;
		free(p->nodes);
		free(p);
	}
}

static void depend(struct place *p, struct sim_node *const *nodes, size_t count)
{
	p->nodes = realloc(p->nodes, (p->count + count + 1) * sizeof(*p->nodes));
	for (size_t i = 0; i < count; i++) {
		size_t j = 0;

		while (j < p->count && p->nodes[j] != nodes[i])
			j++;
		if (j == p->count)
			p->nodes[p->count++] = nodes[i];
	}
}

int capture_is_active(void *stream)
{
	return find(streams, stream) != NULL;
}

int capture_work(void *stream, int type, const union graph_params *params, int *result)
{
	struct place *p = find(streams, stream);
	struct sim_node *n;

	if (!p)
		return 0;
	n = graph_add(p->capture->graph, type, NULL);
	*result = graph_set_params(n, params, __func__);
	for (size_t i = 0; i < p->count; i++)
		graph_add_edge(n, p->nodes[i], 0);
	p->count = 0;
	depend(p, &n, 1);
	return 1;
}

void capture_forget_event(void *event)
{
	drop(&events, event, NULL);
}

int capture_record(void *event, void *stream, int *result)
{
	struct place *p = find(streams, stream), *e;

	if (!p)
		return 0;
	capture_forget_event(event);
	e = add(&events, event, p->capture);
	depend(e, p->nodes, p->count);
	*result = 0;
	return 1;
}

int capture_wait(void *event, void *stream, int *result)
{
	struct place *p = find(streams, stream), *e = find(events, event);

	if (!p && !e)
		return 0;
	*result = !e ? ISOLATION : 0;
	if (!e)
		return 1;
	if (!p)
		p = add(&streams, stream, e->capture);
	depend(p, e->nodes, e->count);
	return 1;
}

static int begin(void *stream, struct sim_graph *graph, int own, const char *function)
{
	static uint64_t id;
	struct capture *c;

	if ((uintptr_t)stream < 3)
		return UNSUPPORTED;
	if (!object_get(OBJECT_STREAM, stream, function))
		return SIM_INVALID_HANDLE;
	if (find(streams, stream))
		return ILLEGAL_STATE;
	c = calloc(1, sizeof(*c));
	*c = (struct capture){graph, stream, ++id, graph->count, own};
	add(&streams, stream, c);
	return 0;
}

int cuStreamBeginCapture_v2(void *stream, int mode)
{
	SIM_ENTER();
	return begin(stream, graph_make(OBJECT_GRAPH), 1, __func__);
}

int cuStreamBeginCaptureToGraph(void *stream, void *graph, void *const *list,
	const uint64_t *edges, size_t count, int mode)
{
	struct sim_graph *g;
	int r;

	SIM_ENTER();
	g = graph_get(graph, __func__);
	r = g ? begin(stream, g, 0, __func__) : SIM_INVALID_VALUE;
	if (!r)
		depend(find(streams, stream), (struct sim_node *const *)list, count);
	return r;
}

static void mark(struct sim_node *n)
{
	if (n->done)
		return;
	n->done = true;
	for (size_t i = 0; i < n->edge_count; i++)
		mark(n->edges[i].from);
}

/* All that was captured leads to where the stream is that it began with. */
static int is_joined(const struct capture *c, const struct place *p)
{
	size_t i = 0;

	for (struct sim_node *n = c->graph->first; n; n = n->next)
		n->done = false;
	for (size_t j = 0; j < p->count; j++)
		mark(p->nodes[j]);
	for (struct sim_node *n = c->graph->first; n; n = n->next)
		if (i++ >= c->before && !n->done)
			return 0;
	return 1;
}

int cuStreamEndCapture(void *stream, void **graph)
{
	struct place *p;
	struct capture *c;
	int joined;

	SIM_ENTER();
	p = find(streams, stream);
	if (!p)
		return ILLEGAL_STATE;
	c = p->capture;
	if (c->origin != stream)
		return UNMATCHED;
	joined = is_joined(c, p);
	drop(&streams, NULL, c);
	drop(&events, NULL, c);
	*graph = joined ? c->graph : NULL;
	if (!joined && c->own)
		graph_end(c->graph);
	free(c);
	return joined ? 0 : UNJOINED;
}

int cuStreamIsCapturing(void *stream, int *status)
{
	SIM_ENTER();
	*status = find(streams, stream) != NULL;
	return sim_have_context();
}

static int info(
	void *stream, int *status, uint64_t *id, void **graph, void ***nodes, size_t *count)
{
	const struct place *p = find(streams, stream);

	*status = p != NULL;
	if (!p)
		return 0;
	if (id)
		*id = p->capture->id;
	if (graph)
		*graph = p->capture->graph;
	if (nodes)
		*nodes = (void **)p->nodes;
	if (count)
		*count = p->count;
	return 0;
}

int cuStreamGetCaptureInfo_v2(
	void *stream, int *status, uint64_t *id, void **graph, void ***nodes, size_t *count)
{
	SIM_ENTER();
	return info(stream, status, id, graph, nodes, count);
}

int cuStreamGetCaptureInfo_v3(void *stream, int *status, uint64_t *id, void **graph,
	void ***nodes, const void **edges, size_t *count)
{
	SIM_ENTER();
	if (edges)
		*edges = NULL;
	return info(stream, status, id, graph, nodes, count);
}

int cuStreamUpdateCaptureDependencies(
	void *stream, void *const *nodes, size_t count, unsigned flags)
{
	struct place *p;

	SIM_ENTER();
	p = find(streams, stream);
	if (!p)
		return ILLEGAL_STATE;
	for (size_t i = 0; i < count; i++)
		if (!object_get(OBJECT_NODE, nodes[i], __func__))
			return SIM_INVALID_VALUE;
	if (flags & 1) /* CU_STREAM_SET_CAPTURE_DEPENDENCIES */
		p->count = 0;
	depend(p, (struct sim_node *const *)nodes, count);
	return 0;
}
