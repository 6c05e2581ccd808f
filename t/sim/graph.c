/* Graphs and their nodes. */
#include "t/sim/arrays.h"
#include "t/sim/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/sim/device.h"
#include "t/sim/external.h"
#include "t/sim/memory.h"
#include "t/sim/module.h"

#define HOST 1 /* CU_MEMORYTYPE_HOST */

SIM_EXPORT int cuGraphCreate(void **graph, unsigned flags);
SIM_EXPORT int cuGraphDestroy(void *graph);
SIM_EXPORT int cuGraphClone(void **clone, void *graph);
SIM_EXPORT int cuGraphNodeFindInClone(void **node, void *original, void *clone);
SIM_EXPORT int cuGraphDestroyNode(void *node);
SIM_EXPORT int cuGraphNodeGetType(void *node, int *type);
SIM_EXPORT int cuGraphGetNodes(void *graph, void **nodes, size_t *count);
SIM_EXPORT int cuGraphGetRootNodes(void *graph, void **nodes, size_t *count);
SIM_EXPORT int cuGraphGetEdges(void *graph, void **from, void **to, size_t *count);
SIM_EXPORT int cuGraphGetEdges_v2(
	void *graph, void **from, void **to, uint64_t *data, size_t *count);
SIM_EXPORT int cuGraphNodeGetDependencies(void *node, void **list, size_t *count);
SIM_EXPORT int cuGraphNodeGetDependencies_v2(
	void *node, void **list, uint64_t *data, size_t *count);
SIM_EXPORT int cuGraphAddDependencies(void *graph, void **from, void **to, size_t count);
SIM_EXPORT int cuGraphAddDependencies_v2(
	void *graph, void **from, void **to, const uint64_t *data, size_t count);
SIM_EXPORT int cuGraphRemoveDependencies(void *graph, void **from, void **to, size_t count);
SIM_EXPORT int cuGraphDebugDotPrint(void *graph, const char *path, unsigned flags);

/* ---- inside ---- */

struct sim_graph *graph_get(void *graph, const char *function)
{
	return object_get(OBJECT_GRAPH, graph, function);
}

struct sim_graph *graph_make(enum object_kind kind)
{
	struct sim_graph *g = object_new(kind, sizeof(*g));

	g->last = &g->first;
	return g;
}

static void end_node(struct sim_node *n)
{
	struct sim_graph *inner, *whole = graph_whole(n->graph);

	if (n->type == GRAPH_CONDITIONAL && n->handle <= whole->handle_count)
		whole->handles[n->handle - 1].used = false;
	for (unsigned i = 0; (inner = graph_inner(n, i)); i++)
		graph_end(inner);
	free(n->bodies);
	free(n->edges);
	object_free(n);
}

void graph_end(struct sim_graph *graph)
{
	struct sim_node *n;

	graph_drop_references(graph);
	while ((n = graph->first)) {
		graph->first = n->next;
		end_node(n);
	}
	if (graph->executable)
		graph->executable->source = NULL;
	if (graph->source)
		graph->source->executable = NULL;
	free(graph->handles);
	object_free(graph);
}

struct sim_graph *graph_whole(struct sim_graph *graph)
{
	while (graph->owner)
		graph = graph->owner->graph;
	return graph;
}

struct sim_graph *graph_inner(const struct sim_node *node, unsigned i)
{
	if (node->child)
		return i ? NULL : node->child;
	return i < node->body_count ? node->bodies[i] : NULL;
}

void graph_add_bodies(struct sim_node *node, unsigned count)
{
	node->bodies = calloc(count, sizeof(*node->bodies));
	node->body_count = count;
	for (unsigned i = 0; i < count; i++) {
		node->bodies[i] = graph_make(OBJECT_GRAPH);
		node->bodies[i]->owner = node;
	}
}

void graph_set_condition(struct sim_graph *graph, uint64_t handle, unsigned value)
{
	if (!graph || !handle || handle > graph->handle_count)
		sim_hostile("a handle of no conditional node in what runs", __func__);
	graph->handles[handle - 1].value = value;
}

struct sim_node *graph_node(const struct sim_graph *graph, size_t number)
{
	struct sim_node *n = graph->first;

	while (n && number--)
		n = n->next;
	return n;
}

size_t graph_number(const struct sim_node *node)
{
	size_t number = 0;

	for (const struct sim_node *n = node->graph->first; n != node; n = n->next)
		number++;
	return number;
}

bool graph_has_memory(const struct sim_graph *graph)
{
	for (const struct sim_node *n = graph->first; n; n = n->next)
		if (n->type == GRAPH_ALLOCATION || n->type == GRAPH_FREE)
			return true;
	return false;
}

bool graph_is_strange(const struct sim_graph *graph)
{
	for (const struct sim_node *n = graph->first; n; n = n->next)
		if (n->child && graph_is_strange(n->child))
			return true;
	return graph_has_memory(graph) ||
	       graph_whole((struct sim_graph *)graph)->handle_count > 0;
}

void graph_add_edge(struct sim_node *to, struct sim_node *from, uint64_t data)
{
	to->edges = realloc(to->edges, (to->edge_count + 1) * sizeof(*to->edges));
	to->edges[to->edge_count++] = (struct sim_edge){from, data};
}

static int set_kernel(struct sim_node *n, const struct graph_kernel *k, const char *function)
{
	void *handle = k->function ? k->function : k->kernel;
	void **extra = k->params ? NULL : k->extra;

	if (!function_to_run(handle, function))
		return SIM_INVALID_HANDLE;
	if (!k->params && !extra)
		return SIM_INVALID_VALUE;
	for (unsigned i = 0; i < SIM_PARAMS; i++)
		n->arguments[i] =
			k->params ? *(uint64_t *)k->params[i] : ((uint64_t *)extra[1])[i];
	for (unsigned i = 0; i < SIM_PARAMS; i++)
		n->pointers[i] = &n->arguments[i];
	n->params.kernel = *k;
	n->params.kernel.params = n->pointers;
	n->params.kernel.extra = NULL;
	return 0;
}

int graph_set_params(
	struct sim_node *node, const union graph_params *params, const char *function)
{
	switch (node->type) {
	case GRAPH_KERNEL:
		return set_kernel(node, &params->kernel, function);
	case GRAPH_MEMCPY:
		node->params.copy = params->copy;
		return array_check_copy(&params->copy, function);
	case GRAPH_MEMSET:
		if (!graph_is_memory(params->set.address))
			memory_check(params->set.address,
				params->set.width * params->set.element, function);
		node->params.set = params->set;
		return 0;
	case GRAPH_HOST:
		node->params.host = params->host;
		return 0;
	case GRAPH_WAIT_EVENT:
	case GRAPH_EVENT_RECORD:
		node->params.event = params->event;
		return object_get(OBJECT_EVENT, params->event, function) ? 0
									 : SIM_INVALID_HANDLE;
	case GRAPH_BATCH_MEM_OP:
		node->params.batch = params->batch;
		node->params.batch.operations =
			memcpy(malloc(params->batch.count * GRAPH_MEM_OP + 1),
				params->batch.operations, params->batch.count * GRAPH_MEM_OP);
		return 0;
	case GRAPH_SIGNAL:
	case GRAPH_WAIT:
		return external_set_node(
			node->type, &node->params.semaphores, &params->semaphores, function);
	default:
		return 0;
	}
}

bool graph_is_clone(const struct sim_node *node, const struct sim_node *original)
{
	return node->original == original && node->original_number == original->number;
}

/* Of all nodes that there have been. */
static uint64_t numbers;

struct sim_node *graph_add(struct sim_graph *graph, int type, const union graph_params *params)
{
	struct sim_node *n = object_new(OBJECT_NODE, sizeof(*n));

	n->graph = graph;
	n->type = type;
	n->number = ++numbers;
	*graph->last = n;
	graph->last = &n->next;
	graph->count++;
	return n;
}

static void copy_inside(struct sim_graph *to, struct sim_graph *from);

static void copy_node(struct sim_graph *to, struct sim_node *from)
{
	struct sim_node *n = graph_add(to, from->type, NULL);

	n->params = from->params;
	memcpy(n->arguments, from->arguments, sizeof(n->arguments));
	memcpy(n->attributes, from->attributes, sizeof(n->attributes));
	for (unsigned i = 0; i < SIM_PARAMS; i++)
		n->pointers[i] = &n->arguments[i];
	if (n->type == GRAPH_KERNEL)
		n->params.kernel.params = n->pointers;
	n->original = from;
	n->original_number = from->number;
	n->handle = from->handle;
	n->condition = from->condition;
	graph_add_bodies(n, from->body_count);
	for (unsigned i = 0; i < n->body_count; i++)
		copy_inside(n->bodies[i], from->bodies[i]);
	if (from->child) {
		n->child = graph_copy(OBJECT_GRAPH, from->child);
		n->child->owner = n;
	}
}

static void copy_inside(struct sim_graph *to, struct sim_graph *from)
{
	for (struct sim_node *n = from->first; n; n = n->next)
		copy_node(to, n);
	for (struct sim_node *n = from->first, *copy = to->first; n;
		n = n->next, copy = copy->next)
		for (size_t i = 0; i < n->edge_count; i++)
			graph_add_edge(copy, graph_node(to, graph_number(n->edges[i].from)),
				n->edges[i].data);
}

struct sim_graph *graph_copy(enum object_kind kind, struct sim_graph *graph)
{
	struct sim_graph *copy = graph_make(kind);
	size_t size = graph->handle_count * sizeof(*graph->handles);

	copy->original = graph;
	copy->handle_count = graph->handle_count;
	copy->handles =
		memcpy(malloc(size + 1), graph->handles ? graph->handles : (void *)"", size);
	copy_inside(copy, graph);
	graph_copy_references(copy, graph);
	return copy;
}

/* ---- graphs ---- */

int cuGraphCreate(void **graph, unsigned flags)
{
	SIM_ENTER();
	if (flags)
		return SIM_INVALID_VALUE;
	*graph = graph_make(OBJECT_GRAPH);
	return 0;
}

int cuGraphDestroy(void *graph)
{
	struct sim_graph *g;

	SIM_ENTER();
	g = graph_get(graph, __func__);
	if (!g || g->owner)
		return SIM_INVALID_VALUE;
	graph_end(g);
	return 0;
}

int cuGraphClone(void **clone, void *graph)
{
	struct sim_graph *g;

	SIM_ENTER();
	g = graph_get(graph, __func__);
	if (!g)
		return SIM_INVALID_VALUE;
	if (graph_is_strange(g))
		return SIM_NOT_SUPPORTED;
	*clone = graph_copy(OBJECT_GRAPH, g);
	return 0;
}

int cuGraphNodeFindInClone(void **node, void *original, void *clone)
{
	struct sim_graph *g;
	struct sim_node *n;

	SIM_ENTER();
	g = graph_get(clone, __func__);
	if (!g || !object_get(OBJECT_NODE, original, __func__))
		return SIM_INVALID_VALUE;
	for (n = g->first; n && !graph_is_clone(n, original);)
		n = n->next;
	if (n)
		*node = n;
	return n ? 0 : SIM_INVALID_VALUE;
}

int cuGraphGetNodes(void *graph, void **nodes, size_t *count)
{
	struct sim_graph *g;
	size_t i = 0;

	SIM_ENTER();
	g = graph_get(graph, __func__);
	if (!g)
		return SIM_INVALID_VALUE;
	for (struct sim_node *n = g->first; n && nodes && i < *count; n = n->next)
		nodes[i++] = n;
	*count = nodes ? i : g->count;
	return 0;
}

int cuGraphGetRootNodes(void *graph, void **nodes, size_t *count)
{
	struct sim_graph *g;
	size_t i = 0;

	SIM_ENTER();
	g = graph_get(graph, __func__);
	for (struct sim_node *n = g ? g->first : NULL; n; n = n->next) {
		if (n->edge_count)
			continue;
		if (nodes && i < *count)
			nodes[i] = n;
		i++;
	}
	*count = i;
	return g ? 0 : SIM_INVALID_VALUE;
}

static int get_edges(struct sim_graph *g, void **from, void **to, uint64_t *data, size_t *count)
{
	size_t i = 0;

	for (struct sim_node *n = g ? g->first : NULL; n; n = n->next)
		for (size_t j = 0; j < n->edge_count; j++, i++) {
			if (!from || i >= *count)
				continue;
			if (!data && n->edges[j].data)
				return SIM_LOSSY_QUERY;
			from[i] = n->edges[j].from;
			to[i] = n;
			if (data)
				data[i] = n->edges[j].data;
		}
	*count = i;
	return g ? 0 : SIM_INVALID_VALUE;
}

int cuGraphGetEdges(void *graph, void **from, void **to, size_t *count)
{
	SIM_ENTER();
	return get_edges(graph_get(graph, __func__), from, to, NULL, count);
}

int cuGraphGetEdges_v2(void *graph, void **from, void **to, uint64_t *data, size_t *count)
{
	SIM_ENTER();
	return get_edges(graph_get(graph, __func__), from, to, data, count);
}

/* Who depends on what, for people. */
int cuGraphDebugDotPrint(void *graph, const char *path, unsigned flags)
{
	struct sim_graph *g;
	FILE *out;

	SIM_ENTER();
	g = graph_get(graph, __func__);
	out = g ? fopen(path, "we") : NULL;
	if (!out)
		return SIM_INVALID_VALUE;
	fprintf(out, "digraph {\n");
	for (const struct sim_node *n = g->first; n; n = n->next) {
		fprintf(out, "\t%zu [label=%d]\n", graph_number(n), n->type);
		for (size_t i = 0; i < n->edge_count; i++)
			fprintf(out, "\t%zu -> %zu\n", graph_number(n->edges[i].from),
				graph_number(n));
	}
	fprintf(out, "}\n");
	fclose(out);
	return 0;
}

/* ---- nodes ---- */

int cuGraphNodeGetType(void *node, int *type)
{
	struct sim_node *n;

	SIM_ENTER();
	n = object_get(OBJECT_NODE, node, __func__);
	if (n)
		*type = n->type;
	return n ? 0 : SIM_INVALID_VALUE;
}

static void forget_edges(struct sim_graph *g, const struct sim_node *from)
{
	for (struct sim_node *n = g->first; n; n = n->next)
		for (size_t i = 0; i < n->edge_count;)
			if (n->edges[i].from == from)
				memmove(&n->edges[i], &n->edges[i + 1],
					(--n->edge_count - i) * sizeof(*n->edges));
			else
				i++;
}

int cuGraphDestroyNode(void *node)
{
	struct sim_node *n, **at;

	SIM_ENTER();
	n = object_get(OBJECT_NODE, node, __func__);
	if (!n)
		return SIM_INVALID_VALUE;
	if (graph_has_memory(n->graph))
		return SIM_NOT_SUPPORTED;
	forget_edges(n->graph, n);
	for (at = &n->graph->first; *at != n; at = &(*at)->next)
		;
	*at = n->next;
	if (!*at)
		n->graph->last = at;
	n->graph->count--;
	end_node(n);
	return 0;
}

static int get_dependencies(
	void *node, void **list, uint64_t *data, size_t *count, const char *function)
{
	struct sim_node *n = object_get(OBJECT_NODE, node, function);

	for (size_t i = 0; n && list && i < *count && i < n->edge_count; i++) {
		list[i] = n->edges[i].from;
		if (data)
			data[i] = n->edges[i].data;
		else if (n->edges[i].data)
			return SIM_LOSSY_QUERY;
	}
	if (n)
		*count = n->edge_count;
	return n ? 0 : SIM_INVALID_VALUE;
}

int cuGraphNodeGetDependencies(void *node, void **list, size_t *count)
{
	SIM_ENTER();
	return get_dependencies(node, list, NULL, count, __func__);
}

int cuGraphNodeGetDependencies_v2(void *node, void **list, uint64_t *data, size_t *count)
{
	SIM_ENTER();
	return get_dependencies(node, list, data, count, __func__);
}

static int add_dependencies(
	void *graph, void **from, void **to, const uint64_t *data, size_t count)
{
	struct sim_graph *g = graph_get(graph, __func__);

	if (!g)
		return SIM_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		struct sim_node *a = object_get(OBJECT_NODE, from[i], __func__),
				*b = object_get(OBJECT_NODE, to[i], __func__);

		if (!a || !b || a->graph != g || b->graph != g)
			return SIM_INVALID_VALUE;
		graph_add_edge(b, a, data ? data[i] : 0);
	}
	return 0;
}

int cuGraphAddDependencies(void *graph, void **from, void **to, size_t count)
{
	SIM_ENTER();
	return add_dependencies(graph, from, to, NULL, count);
}

int cuGraphAddDependencies_v2(
	void *graph, void **from, void **to, const uint64_t *data, size_t count)
{
	SIM_ENTER();
	return add_dependencies(graph, from, to, data, count);
}

int cuGraphRemoveDependencies(void *graph, void **from, void **to, size_t count)
{
	struct sim_graph *g;

	SIM_ENTER();
	g = graph_get(graph, __func__);
	if (!g)
		return SIM_INVALID_VALUE;
	if (graph_has_memory(g))
		return SIM_NOT_SUPPORTED;
	for (size_t i = 0; i < count; i++) {
		struct sim_node *n = object_get(OBJECT_NODE, to[i], __func__);
		size_t j = 0;

		while (n && j < n->edge_count && n->edges[j].from != from[i])
			j++;
		if (!n || j == n->edge_count)
			return SIM_INVALID_VALUE;
		memmove(&n->edges[j], &n->edges[j + 1],
			(--n->edge_count - j) * sizeof(*n->edges));
	}
	return 0;
}
