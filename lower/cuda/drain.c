/* Before a checkpoint: all work is done, and all there is can be made again. */
#include "lower/cuda/cuda.h"

#define GRAPH_MEMORY_USED 0 /* CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT */

static int synchronise(void *context)
{
	void *popped;
	int r = CUDA(cuCtxPushCurrent_v2, (void *))(context);

	if (r)
		return cuda_failed("cuCtxPushCurrent", r);
	r = CUDA(cuCtxSynchronize, (void))();
	CUDA(cuCtxPopCurrent_v2, (void **))(&popped); /* what was pushed is there */
	return r ? cuda_failed("cuCtxSynchronize", r) : 0;
}

static int has_primary(const struct cuda_state *s, unsigned device)
{
	for (const struct object *o = s->objects; o; o = o->next)
		if (cuda_is_primary(o, device))
			return 1;
	return 0;
}

/* A context that no record knows of would be lost. */
static int refuse_unknown(const struct cuda_state *s)
{
	for (unsigned i = 0; i < s->device_count; i++) {
		unsigned flags;
		int active = 0, device, r;

		if (has_primary(s, i))
			continue;
		r = CUDA(cuDeviceGet, (int *, int))(&device, i);
		if (!r)
			r = CUDA(cuDevicePrimaryCtxGetState, (int, unsigned *, int *))(
				device, &flags, &active);
		if (r)
			return cuda_failed("cuDevicePrimaryCtxGetState", r);
		if (active)
			return agent_fail(
				"it holds a CUDA context, which is not supported yet");
	}
	return 0;
}

static const struct {
	enum cuda_kind kind;
	const char *one, *many;
} names[] = {
	{CUDA_CONTEXT, "CUDA context with parameters or of a green context",
		"CUDA contexts with parameters or of green contexts"},
	{CUDA_STREAM, "CUDA stream of a green context", "CUDA streams of green contexts"},
	{CUDA_MODULE, "CUDA module linked with addresses of its own",
		"CUDA modules linked with addresses of their own"},
	{CUDA_LIBRARY, "CUDA library linked with addresses of its own",
		"CUDA libraries linked with addresses of their own"},
	{CUDA_EVENT, "CUDA event shared with other processes",
		"CUDA events shared with other processes"},
	{CUDA_ARRAY, "CUDA array", "CUDA arrays"},
	{CUDA_MIPMAPPED_ARRAY, "mipmapped CUDA array", "mipmapped CUDA arrays"},
	{CUDA_TEXTURE, "CUDA texture object", "CUDA texture objects"},
	{CUDA_SURFACE, "CUDA surface object", "CUDA surface objects"},
	{CUDA_GRAPH, "CUDA graph", "CUDA graphs"},
	{CUDA_GRAPH_EXEC, "executable CUDA graph", "executable CUDA graphs"},
	{CUDA_LINKER, "CUDA linker state", "CUDA linker states"},
	{CUDA_USER_OBJECT, "CUDA user object", "CUDA user objects"},
	{CUDA_GREEN_CONTEXT, "green CUDA context", "green CUDA contexts"},
	{CUDA_ASYNC_CALLBACK, "CUDA notification", "CUDA notifications"},
	{CUDA_LOG_CALLBACK, "callback for CUDA logs", "callbacks for CUDA logs"},
	{CUDA_RESOURCE_DESCRIPTION, "description of a part of a GPU",
		"descriptions of parts of a GPU"},
	{CUDA_SETTING, "setting of a thread's default stream or of memory",
		"settings of threads' default streams or of memory"},
};

static int refuse(enum cuda_kind kind, unsigned count)
{
	const char *one = "CUDA object", *many = "CUDA objects";

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].kind == kind) {
			one = names[i].one;
			many = names[i].many;
		}
	}
	return agent_fail(
		"it holds %u %s, which cannot be restored yet", count, count == 1 ? one : many);
}

/* What cannot be made again: named, with how many there are. */
static int refuse_lost(const struct cuda_state *s)
{
	unsigned count[CUDA_KINDS] = {0};

	for (const struct object *o = s->objects; o; o = o->next)
		count[o->kind] += !!(o->flags & CUDA_OBJECT_LOST);
	for (unsigned kind = 0; kind < CUDA_KINDS; kind++)
		if (count[kind])
			return refuse(kind, count[kind]);
	return 0;
}

/* What graphs have allocated stays after them, until it is freed; nobody else knows of it. */
static int refuse_graph_memory(const struct cuda_state *s)
{
	for (unsigned i = 0; s->graphs_launchable && i < s->device_count; i++) {
		uint64_t used = 0;
		int r = CUDA(cuDeviceGetGraphMemAttribute, (int, int, uint64_t *))(
			i, GRAPH_MEMORY_USED, &used);

		if (r == CUDA_MISSING) /* a driver before 11.4: such graphs neither */
			return 0;
		if (r)
			return cuda_failed("cuDeviceGetGraphMemAttribute", r);
		if (used)
			return agent_fail(
				"it holds %lu bytes of device memory that CUDA graphs "
				"have allocated, which cannot be restored yet",
				used);
	}
	return 0;
}

int cuda_drain(void)
{
	struct cuda_state *s = cuda_records();

	if (!s || !s->initialised)
		return 0;
	if (refuse_lost(s))
		return -1;
	if (refuse_unknown(s) || refuse_graph_memory(s))
		return -1;
	for (const struct object *o = s->objects; o; o = o->next)
		if (o->kind == CUDA_CONTEXT && synchronise(o->real))
			return -1;
	if (agent_go_on() || cuda_list_memory(s) || cuda_save_globals(s) ||
		cuda_refuse_managed(s) || agent_go_on() || cuda_save_events(s))
		return -1;
	return cuda_save_threads(s);
}
