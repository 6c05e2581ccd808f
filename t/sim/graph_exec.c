/* Executable graphs: copies, whose nodes go by those they are copies of. */
#include <string.h>

#include "t/sim/device.h"
#include "t/sim/arrays.h"
#include "t/sim/external.h"
#include "t/sim/graph.h"
#include "t/sim/module.h"
#include "t/sim/stream.h"

#define UPDATE_FAILURE 910 /* CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE */
#define ASSIGN_DEFAULT 1

/* CUgraphExecUpdateResult */
#define UPDATE_ERROR      1
#define TOPOLOGY_CHANGED  2
#define NODE_TYPE_CHANGED 3
#define NOT_SUPPORTED     6

/* CUgraphInstantiateResult */
#define INSTANTIATE_ERROR 1
#define HANDLE_UNUSED     5
#define ALL_FLAGS         15
#define UPLOAD            2

/* CUDA_GRAPH_INSTANTIATE_PARAMS */
struct instantiate_params {
	uint64_t flags;
	void *stream, *error_node;
	int result;
};

/* CUgraphExecUpdateResultInfo */
struct update_result {
	int result;
	struct sim_node *node, *from;
};

SIM_EXPORT int cuGraphInstantiateWithFlags(void **executable, void *graph, uint64_t flags);
SIM_EXPORT int cuGraphInstantiateWithParams(
	void **executable, void *graph, struct instantiate_params *params);
SIM_EXPORT int cuGraphExecGetFlags(void *executable, uint64_t *flags);
SIM_EXPORT int cuGraphExecDestroy(void *executable);
SIM_EXPORT int cuGraphLaunch(void *executable, void *stream);
SIM_EXPORT int cuGraphUpload(void *executable, void *stream);
SIM_EXPORT int cuGraphExecUpdate_v2(
	void *executable, void *graph, struct update_result *result);
SIM_EXPORT int cuGraphNodeSetEnabled(void *executable, void *node, unsigned enabled);
SIM_EXPORT int cuGraphNodeGetEnabled(void *executable, void *node, unsigned *enabled);
SIM_EXPORT int cuGraphExecChildGraphNodeSetParams(void *executable, void *node, void *child);
int cuEventRecord(void *event, void *stream);
int cuStreamWaitEvent(void *stream, void *event, unsigned flags);

static struct sim_graph *get(void *executable, const char *function)
{
	return object_get(OBJECT_GRAPH_EXEC, executable, function);
}

static bool has_unused(const struct sim_graph *g)
{
	for (size_t i = 0; i < g->handle_count; i++)
		if (!g->handles[i].used)
			return true;
	return false;
}

/* @executable is that of @graph, and no other graph's. */
static void join(struct sim_graph *executable, struct sim_graph *graph)
{
	if (executable->source)
		executable->source->executable = NULL;
	executable->source = graph;
	graph->executable = executable;
}

static int instantiate(
	void **executable, void *graph, uint64_t flags, int *result, const char *function)
{
	struct sim_graph *g = graph_get(graph, function), *copy;

	*result = INSTANTIATE_ERROR;
	if (!g || g->owner || flags & ~(uint64_t)ALL_FLAGS)
		return SIM_INVALID_VALUE;
	if (g->executable)
		return SIM_NOT_SUPPORTED;
	*result = HANDLE_UNUSED;
	if (has_unused(g))
		return SIM_INVALID_VALUE;
	*result = 0;
	copy = graph_copy(OBJECT_GRAPH_EXEC, g);
	copy->flags = flags & ~(uint64_t)UPLOAD;
	if (g->handle_count || graph_has_memory(g))
		join(copy, g);
	*executable = copy;
	return 0;
}

int cuGraphInstantiateWithFlags(void **executable, void *graph, uint64_t flags)
{
	int result;

	SIM_ENTER();
	return instantiate(executable, graph, flags, &result, __func__);
}

int cuGraphInstantiateWithParams(
	void **executable, void *graph, struct instantiate_params *params)
{
	SIM_ENTER();
	params->error_node = NULL;
	return instantiate(executable, graph, params->flags, &params->result, __func__);
}

int cuGraphExecGetFlags(void *executable, uint64_t *flags)
{
	struct sim_graph *g;

	SIM_ENTER();
	g = get(executable, __func__);
	if (g)
		*flags = g->flags;
	return g ? 0 : SIM_INVALID_VALUE;
}

int cuGraphExecDestroy(void *executable)
{
	struct sim_graph *g;

	SIM_ENTER();
	g = get(executable, __func__);
	if (g)
		graph_end(g);
	return g ? 0 : SIM_INVALID_HANDLE;
}

int cuGraphUpload(void *executable, void *stream)
{
	SIM_ENTER();
	return get(executable, __func__) ? 0 : SIM_INVALID_HANDLE;
}

/* ---- running ---- */

struct kernel_work {
	kernel_function *run;
	struct kernel_call call;
};

static void run_kernel(void *data)
{
	struct kernel_work *k = data;

	k->run(&k->call);
}

static void run_copy(void *data)
{
	const struct graph_memcpy *c = data;

	array_copy(c);
}

static void run_set(void *data)
{
	const struct graph_memset *m = data;

	for (uint64_t i = 0; i < m->width; i++)
		memcpy((char *)m->address + i * m->element, &m->value, m->element);
}

static void run_host(void *data)
{
	const struct graph_host *h = data;

	((void (*)(void *))h->function)(h->argument);
}

static int prepare_kernel(const struct sim_node *n, struct kernel_work *w)
{
	const struct graph_kernel *k = &n->params.kernel;

	*w = (struct kernel_work){
		.run = function_to_run(k->function ? k->function : k->kernel, __func__)};
	w->call.threads = (uint64_t)k->grid[0] * k->grid[1] * k->grid[2] * k->block[0] *
			  k->block[1] * k->block[2];
	w->call.a = n->arguments[0];
	w->call.b = n->arguments[1];
	w->call.c = n->arguments[2];
	w->call.context = current_context();
	w->call.graph = graph_whole(n->graph);
	return w->run ? 0 : SIM_INVALID_HANDLE;
}

static int queue_kernel(struct sim_node *n, void *stream)
{
	struct kernel_work w;
	int r = prepare_kernel(n, &w);

	return r ? r : stream_queue(stream, run_kernel, stream_data(&w, sizeof(w)), __func__);
}

static bool is_ready(const struct sim_node *n)
{
	for (size_t i = 0; i < n->edge_count; i++)
		if (!n->edges[i].from->done)
			return false;
	return !n->done;
}

/* The next node that all it depends on is done for. NULL: none is left, or none can be. */
static struct sim_node *next_ready(struct sim_graph *g)
{
	struct sim_node *n = g->first;

	while (n && !is_ready(n))
		n = n->next;
	return n;
}

static void begin(struct sim_graph *g)
{
	for (struct sim_node *n = g->first; n; n = n->next)
		n->done = false;
}

/* ---- in bodies, on the stream's thread ---- */

static void run_body(struct sim_graph *g);

static void run_conditional(struct sim_node *n)
{
	const unsigned *value = &graph_whole(n->graph)->handles[n->handle - 1].value;

	switch (n->condition) {
	case SIM_IF:
		if (*value || n->body_count > 1)
			run_body(n->bodies[!*value]);
		break;
	case SIM_WHILE:
		while (*value)
			run_body(n->bodies[0]);
		break;
	default:
		if (*value < n->body_count)
			run_body(n->bodies[*value]);
	}
}

static void run_node(struct sim_node *n)
{
	struct kernel_work w;

	switch (n->disabled ? GRAPH_EMPTY : n->type) {
	case GRAPH_KERNEL:
		if (!prepare_kernel(n, &w))
			run_kernel(&w);
		break;
	case GRAPH_MEMCPY:
		run_copy(&n->params.copy);
		break;
	case GRAPH_MEMSET:
		run_set(&n->params.set);
		break;
	case GRAPH_CHILD:
		run_body(n->child);
		break;
	case GRAPH_CONDITIONAL:
		run_conditional(n);
		break;
	case GRAPH_EMPTY:
		break;
	default:
		sim_hostile("a node that no body may have", __func__);
	}
}

static void run_body(struct sim_graph *g)
{
	struct sim_node *n;

	begin(g);
	while ((n = next_ready(g))) {
		run_node(n);
		n->done = true;
	}
}

static void decide(void *data)
{
	run_conditional(*(struct sim_node **)data);
}

static void assign_defaults(void *data)
{
	struct sim_graph *g = *(struct sim_graph **)data;

	for (size_t i = 0; i < g->handle_count; i++)
		if (g->handles[i].flags & ASSIGN_DEFAULT)
			g->handles[i].value = g->handles[i].standard;
}

/* ---- in order on a stream ---- */

static int queue_graph(struct sim_graph *g, void *stream);

#define QUEUE(run, params)                                                                     \
	stream_queue(stream, run, stream_data(params, sizeof(*(params))), __func__)

static int queue_node(struct sim_node *n, void *stream)
{
	switch (n->disabled ? GRAPH_EMPTY : n->type) {
	case GRAPH_KERNEL:
		return queue_kernel(n, stream);
	case GRAPH_MEMCPY:
		return QUEUE(run_copy, &n->params.copy);
	case GRAPH_MEMSET:
		return QUEUE(run_set, &n->params.set);
	case GRAPH_HOST:
		return QUEUE(run_host, &n->params.host);
	case GRAPH_CHILD:
		return queue_graph(n->child, stream);
	case GRAPH_CONDITIONAL:
		return QUEUE(decide, &n);
	case GRAPH_EVENT_RECORD:
		return cuEventRecord(n->params.event, stream);
	case GRAPH_WAIT_EVENT:
		return cuStreamWaitEvent(stream, n->params.event, 0);
	case GRAPH_SIGNAL:
	case GRAPH_WAIT:
		return external_queue(n->type, &n->params.semaphores, stream, __func__);
	case GRAPH_BATCH_MEM_OP: /* CU_STREAM_MEM_OP_WRITE_VALUE_64 alone */
		for (uint32_t i = 0; i < n->params.batch.count; i++) {
			const uint64_t *o =
				(const uint64_t *)n->params.batch.operations + 6 * i;
			const struct graph_memset m = {o[1], 0, o[2], 4, 1, 1};

			QUEUE(run_set, &m);
		}
	}
	return 0;
}

/* One node after the other, each after the nodes that it depends on. */
static int queue_graph(struct sim_graph *g, void *stream)
{
	size_t left = g->count;
	int r = 0;

	begin(g);
	while (left && !r) {
		struct sim_node *n = next_ready(g);

		if (!n)
			return SIM_INVALID_VALUE;
		r = queue_node(n, stream);
		n->done = true;
		left--;
	}
	return r;
}

int cuGraphLaunch(void *executable, void *stream)
{
	struct sim_graph *g;

	SIM_ENTER();
	g = get(executable, __func__);
	if (!g)
		return SIM_INVALID_HANDLE;
	if (g->handle_count)
		QUEUE(assign_defaults, &g);
	g->stream = stream;
	g->is_launched = true;
	return queue_graph(g, stream);
}

/* ---- changes ---- */

/* The copy of @node, which may be in a graph that is a node. */
static struct sim_node *find(struct sim_graph *g, const struct sim_node *node)
{
	struct sim_node *found = NULL;

	for (struct sim_node *n = g->first; n && !found; n = n->next) {
		struct sim_graph *inner;

		if (graph_is_clone(n, node))
			found = n;
		for (unsigned i = 0; !found && (inner = graph_inner(n, i)); i++)
			found = find(inner, node);
	}
	return found;
}

static struct sim_node *find_in(void *executable, void *node, const char *function)
{
	struct sim_graph *g = get(executable, function);

	return g && object_get(OBJECT_NODE, node, function) ? find(g, node) : NULL;
}

static int set_params(void *executable, void *node, int kind, const void *params, size_t size,
	const char *function)
{
	struct sim_node *n = find_in(executable, node, function);
	union graph_params all = {0};

	if (!n || n->type != kind)
		return SIM_INVALID_VALUE;
	memcpy(&all, params, size);
	return graph_set_params(n, &all, function);
}

#define SET(name, kind, type)                                                                  \
	SIM_EXPORT int name(void *executable, void *node, const type *params);                 \
	int name(void *executable, void *node, const type *params)                             \
	{                                                                                      \
		SIM_ENTER();                                                                   \
		return set_params(executable, node, kind, params, sizeof(type), __func__);     \
	}
#define SET_IN_CONTEXT(name, kind, type)                                                       \
	SIM_EXPORT int name(void *executable, void *node, const type *params, void *context);  \
	int name(void *executable, void *node, const type *params, void *context)              \
	{                                                                                      \
		SIM_ENTER();                                                                   \
		return set_params(executable, node, kind, params, sizeof(type), __func__);     \
	}
#define SET_EVENT(name, kind)                                                                  \
	SIM_EXPORT int name(void *executable, void *node, void *event);                        \
	int name(void *executable, void *node, void *event)                                    \
	{                                                                                      \
		SIM_ENTER();                                                                   \
		return set_params(executable, node, kind, &event, sizeof(event), __func__);    \
	}
SET(cuGraphExecKernelNodeSetParams_v2, GRAPH_KERNEL, struct graph_kernel)
SET(cuGraphExecHostNodeSetParams, GRAPH_HOST, struct graph_host)
SET(cuGraphExecBatchMemOpNodeSetParams, GRAPH_BATCH_MEM_OP, struct graph_batch)
SET(cuGraphExecExternalSemaphoresSignalNodeSetParams, GRAPH_SIGNAL, struct graph_semaphores)
SET(cuGraphExecExternalSemaphoresWaitNodeSetParams, GRAPH_WAIT, struct graph_semaphores)
SET_IN_CONTEXT(cuGraphExecMemcpyNodeSetParams, GRAPH_MEMCPY, struct graph_memcpy)
SET_IN_CONTEXT(cuGraphExecMemsetNodeSetParams, GRAPH_MEMSET, struct graph_memset)
SET_EVENT(cuGraphExecEventRecordNodeSetEvent, GRAPH_EVENT_RECORD)
SET_EVENT(cuGraphExecEventWaitNodeSetEvent, GRAPH_WAIT_EVENT)

static void take_params(struct sim_node *to, const struct sim_node *from)
{
	to->params = from->params;
	memcpy(to->arguments, from->arguments, sizeof(to->arguments));
	memcpy(to->attributes, from->attributes, sizeof(to->attributes));
	if (to->type == GRAPH_KERNEL)
		to->params.kernel.params = to->pointers;
}

static bool is_alike(const struct sim_node *a, const struct sim_node *b)
{
	if (a->type != b->type || a->edge_count != b->edge_count || a->handle != b->handle ||
		a->condition != b->condition || a->body_count != b->body_count)
		return false;
	for (size_t i = 0; i < a->edge_count; i++)
		if (graph_number(a->edges[i].from) != graph_number(b->edges[i].from))
			return false;
	return true;
}

/* The node of @from that no longer goes with @to; NULL: all do. */
static struct sim_node *differs(const struct sim_graph *to, const struct sim_graph *from)
{
	struct sim_node *a = to->first, *b = from->first, *in = NULL;

	for (; a && b && !in; a = a->next, b = b->next) {
		struct sim_graph *inner;

		if (!is_alike(a, b))
			in = b;
		for (unsigned i = 0; !in && (inner = graph_inner(a, i)); i++)
			in = differs(inner, graph_inner(b, i));
	}
	return in;
}

static void take_all(struct sim_graph *to, const struct sim_graph *from)
{
	struct sim_node *b = from->first;

	graph_exchange_references(to, from);

	for (struct sim_node *a = to->first; a; a = a->next, b = b->next) {
		struct sim_graph *inner;

		take_params(a, b);
		for (unsigned i = 0; (inner = graph_inner(a, i)); i++)
			take_all(inner, graph_inner(b, i));
	}
}

/* A node that fills memory of a graph cannot be changed. */
static bool changes_set(const struct sim_graph *to, const struct sim_graph *from)
{
	for (struct sim_node *a = to->first, *b = from->first; a && b; a = a->next, b = b->next)
		if (a->type == GRAPH_MEMSET && b->type == GRAPH_MEMSET &&
			(graph_is_memory(a->params.set.address) ||
				graph_is_memory(b->params.set.address)) &&
			memcmp(&a->params.set, &b->params.set, sizeof(a->params.set)))
			return true;
	return false;
}

static int update(struct sim_graph *to, struct sim_graph *from, struct update_result *result)
{
	*result = (struct update_result){0};
	if (graph_has_memory(from) && from->executable && from->executable != to)
		return SIM_NOT_SUPPORTED;
	result->result = TOPOLOGY_CHANGED;
	if (to->count != from->count)
		return UPDATE_FAILURE;
	if (graph_has_memory(to) != graph_has_memory(from))
		result->result = NODE_TYPE_CHANGED;
	else if (changes_set(to, from))
		result->result = UPDATE_ERROR;
	if (result->result != TOPOLOGY_CHANGED)
		return UPDATE_FAILURE;
	result->node = differs(to, from);
	if (result->node && result->node->type == GRAPH_CONDITIONAL)
		result->result = NOT_SUPPORTED;
	if (result->node || to->handle_count != from->handle_count)
		return UPDATE_FAILURE;
	take_all(to, from);
	if (graph_has_memory(from))
		join(to, from);
	for (size_t i = 0; i < to->handle_count; i++) {
		to->handles[i].standard = from->handles[i].standard;
		to->handles[i].flags = from->handles[i].flags;
	}
	result->result = 0;
	return 0;
}

int cuGraphExecUpdate_v2(void *executable, void *graph, struct update_result *result)
{
	struct sim_graph *e, *g;

	SIM_ENTER();
	e = get(executable, __func__);
	g = graph_get(graph, __func__);
	return e && g ? update(e, g, result) : SIM_INVALID_VALUE;
}

int cuGraphExecChildGraphNodeSetParams(void *executable, void *node, void *child)
{
	struct update_result ignored;
	struct sim_node *n;
	struct sim_graph *g;

	SIM_ENTER();
	n = find_in(executable, node, __func__);
	g = graph_get(child, __func__);
	return n && g && n->type == GRAPH_CHILD ? update(n->child, g, &ignored)
						: SIM_INVALID_VALUE;
}

static bool can_be_disabled(const struct sim_node *n)
{
	return n && n->type <= GRAPH_MEMSET;
}

int cuGraphNodeSetEnabled(void *executable, void *node, unsigned enabled)
{
	struct sim_node *n;

	SIM_ENTER();
	n = find_in(executable, node, __func__);
	if (!can_be_disabled(n))
		return SIM_INVALID_VALUE;
	n->disabled = !enabled;
	return 0;
}

int cuGraphNodeGetEnabled(void *executable, void *node, unsigned *enabled)
{
	struct sim_node *n;

	SIM_ENTER();
	n = find_in(executable, node, __func__);
	if (!can_be_disabled(n))
		return SIM_INVALID_VALUE;
	*enabled = !n->disabled;
	return 0;
}
