/* Streams that are being captured into graphs: memory.c has to know that there are any, and
 * programs may ask for the graph, and for nodes of it, meanwhile. */
#include "shared/raw.h"
#include "stubs/cuda/graphs.h"
#include "stubs/cuda/memory.h"

#include "cuda.index.h"

#define ACTIVE    1   /* CU_STREAM_CAPTURE_STATUS_ACTIVE */
#define UNMATCHED 903 /* CUDA_ERROR_STREAM_CAPTURE_UNMATCHED: the capture continues */

/* ---- what is asked during a capture ---- */

/* A thread's own default stream goes by the same name in each. */
static uint64_t thread_of(const void *stream)
{
	return (uintptr_t)stream <= (uintptr_t)STREAM_PER_THREAD ? raw(SYS_gettid) : 0;
}

/* Room for @count nodes that are asked for by @stream, for as long as nobody asks again. */
static struct graph_capture *capture_room(
	struct graph_state *state, const void *stream, size_t count)
{
	struct graph_capture **at = &state->captures, *c;
	uint64_t size = sizeof(*c) + count * sizeof(void *), thread = thread_of(stream);

	while ((c = *at) && (c->stream != (uint64_t)stream || c->thread != thread))
		at = &c->next;
	if (c && c->size >= size)
		return c;
	if (c) {
		*at = c->next;
		block_free(c, c->size);
	}
	c = block_new(size);
	if (!c)
		return NULL;
	*c = (struct graph_capture){state->captures, size, (uint64_t)stream, thread};
	state->captures = c;
	return c;
}

struct info {
	int status;
	uint64_t id;
	void *graph, **nodes;
	size_t count;
};

static int give_nodes(
	const struct info *info, struct object *graph, const void *stream, void ***nodes)
{
	struct graph_capture *c = capture_room(graph_state(graph), stream, info->count);

	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < info->count; i++)
		c->nodes[i] = graph_raise(CUDA_GRAPH_NODE, info->nodes[i], graph);
	*nodes = c->nodes;
	return 0;
}

static int give_info(const struct info *info, void *stream, int *status, uint64_t *id,
	void **graph, void ***nodes, size_t *count)
{
	struct object *known = object_find(CUDA_GRAPH, info->graph), *o;

	if (status)
		*status = info->status;
	if (info->status != ACTIVE)
		return 0;
	if (id)
		*id = info->id;
	if (count)
		*count = info->count;
	if (!graph && !nodes)
		return 0;
	o = known ? known : graph_object(info->graph);
	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!known)
		graph_state(o)->capturing = (uint64_t)stream + 1;
	if (graph)
		*graph = o->flags & CUDA_OBJECT_REAL ? o->real : o;
	return nodes ? give_nodes(info, o, stream, nodes) : 0;
}

static int get_info_v2(__typeof__(real_cuStreamGetCaptureInfo_v2) *get, void *stream,
	int *status, uint64_t *id, void **graph, void ***nodes, size_t *count)
{
	struct info info = {0};
	int r = get(stream, &info.status, &info.id, &info.graph, nodes ? &info.nodes : NULL,
		&info.count);

	return r ? r : give_info(&info, stream, status, id, graph, nodes, count);
}

static int get_info_v3(__typeof__(real_cuStreamGetCaptureInfo_v3) *get, void *stream,
	int *status, uint64_t *id, void **graph, void ***nodes, const void **edges,
	size_t *count)
{
	struct info info = {0};
	const void *data = NULL;
	int r = get(stream, &info.status, &info.id, &info.graph, nodes ? &info.nodes : NULL,
		edges ? &data : NULL, &info.count);

	if (!r && edges && info.status == ACTIVE)
		*edges = data;
	return r ? r : give_info(&info, stream, status, id, graph, nodes, count);
}

int body_cuStreamGetCaptureInfo_v2(
	void *stream, int *status, uint64_t *id, void **graph, void ***nodes, size_t *count)
{
	return get_info_v2(
		real_cuStreamGetCaptureInfo_v2, stream, status, id, graph, nodes, count);
}

int body_cuStreamGetCaptureInfo_v2_ptsz(
	void *stream, int *status, uint64_t *id, void **graph, void ***nodes, size_t *count)
{
	return get_info_v2(
		real_cuStreamGetCaptureInfo_v2_ptsz, stream, status, id, graph, nodes, count);
}

int body_cuStreamGetCaptureInfo_v3(void *stream, int *status, uint64_t *id, void **graph,
	void ***nodes, const void **edges, size_t *count)
{
	return get_info_v3(
		real_cuStreamGetCaptureInfo_v3, stream, status, id, graph, nodes, edges, count);
}

int body_cuStreamGetCaptureInfo_v3_ptsz(void *stream, int *status, uint64_t *id, void **graph,
	void ***nodes, const void **edges, size_t *count)
{
	return get_info_v3(real_cuStreamGetCaptureInfo_v3_ptsz, stream, status, id, graph,
		nodes, edges, count);
}

/* ---- from the beginning to the end ---- */

int body_cuStreamBeginCapture(void *stream)
{
	return memory_capture_begins(real_cuStreamBeginCapture(stream));
}

int body_cuStreamBeginCapture_ptsz(void *stream)
{
	return memory_capture_begins(real_cuStreamBeginCapture_ptsz(stream));
}

int body_cuStreamBeginCapture_v2(void *stream, int mode)
{
	return memory_capture_begins(real_cuStreamBeginCapture_v2(stream, mode));
}

int body_cuStreamBeginCapture_v2_ptsz(void *stream, int mode)
{
	return memory_capture_begins(real_cuStreamBeginCapture_v2_ptsz(stream, mode));
}

int body_cuStreamBeginCaptureToGraph(void *stream, void *graph, const void *dependencies,
	const void *data, size_t count, int mode)
{
	return memory_capture_begins(graph_call(INDEX_cuStreamBeginCaptureToGraph,
		WORDS(WORD(stream), WORD(graph), WORD(dependencies), WORD(data), count, mode)));
}

int body_cuStreamBeginCaptureToGraph_ptsz(void *stream, void *graph, const void *dependencies,
	const void *data, size_t count, int mode)
{
	return memory_capture_begins(graph_call(INDEX_cuStreamBeginCaptureToGraph_ptsz,
		WORDS(WORD(stream), WORD(graph), WORD(dependencies), WORD(data), count, mode)));
}

/* A graph whose capture has failed no longer exists. */
static void drop_captured(const void *stream)
{
	const struct memory_state *s = CUDA_STATE->memory;
	int last = !s || !s->captures;
	struct object *o, *next;

	for (o = CUDA_STATE->objects; o; o = next) {
		uint64_t by = o->kind == CUDA_GRAPH ? graph_state(o)->capturing : 0;

		next = o->next;
		if (!by || (!last && by != (uint64_t)stream + 1))
			continue;
		object_kill(o);
		next = CUDA_STATE->objects; /* its nodes went with it */
	}
}

static int end_capture(unsigned index, const void *stream, void **graph)
{
	int r = graph_call(index, WORDS(WORD(stream), WORD(graph)));
	struct object *o = r || !graph ? NULL : graph_argument(CUDA_GRAPH, *graph);

	if (r == UNMATCHED)
		return r;
	memory_capture_ends();
	if (o)
		graph_state(o)->capturing = 0;
	else if (r && state_usable())
		drop_captured(stream);
	return r;
}

int body_cuStreamEndCapture(void *stream, void **graph)
{
	return end_capture(INDEX_cuStreamEndCapture, stream, graph);
}

int body_cuStreamEndCapture_ptsz(void *stream, void **graph)
{
	return end_capture(INDEX_cuStreamEndCapture_ptsz, stream, graph);
}
