/* Before a checkpoint: all work is done, and all there is can be made again. */
#include <stdio.h>

#include "lower/cuda/cuda.h"
#include "lower/cuda/placement.h"
#include "lower/cuda/shared_memory.h"
#include "shared/cuda/memory_state.h"

#define GRAPH_MEMORY_USED 0 /* CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT */

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

static int refuse_export_entries(const struct cuda_state *s)
{
	const struct cuda_unknown *u = s->unknown;
	char id[2 * sizeof(u->id) + 1];

	if (s->unknown_lost)
		return agent_fail("it has called functions of the driver that have no name");
	if (!u)
		return 0;
	for (size_t i = 0; i < sizeof(u->id); i++)
		snprintf(id + 2 * i, 3, "%02x", u->id[i]);
	return agent_fail(
		"it has called function %lu of the driver's table %s, which has no name; "
		"what that leaves in the driver is not known",
		(unsigned long)u->slot, id);
}

struct names {
	const char *one, *many;
	const char *ends; /* the function that ends it; NULL: it may be supported some day */
};

static const struct names kinds[CUDA_KINDS] = {
	[CUDA_CONTEXT] = {"CUDA context with parameters or of a green context",
		"CUDA contexts with parameters or of green contexts", NULL},
	[CUDA_STREAM] = {"CUDA stream of a green context", "CUDA streams of green contexts",
		NULL},
	[CUDA_MODULE] = {"CUDA module linked with addresses of its own",
		"CUDA modules linked with addresses of their own", NULL},
	[CUDA_LIBRARY] = {"CUDA library linked with addresses of its own",
		"CUDA libraries linked with addresses of their own", NULL},
	[CUDA_ARRAY] = {"CUDA array", "CUDA arrays", NULL},
	[CUDA_MIPMAPPED_ARRAY] = {"mipmapped CUDA array of external memory",
		"mipmapped CUDA arrays of external memory", "cuMipmappedArrayDestroy"},
	[CUDA_TEXTURE] = {"CUDA texture object", "CUDA texture objects", NULL},
	[CUDA_SURFACE] = {"CUDA surface object", "CUDA surface objects", NULL},
	[CUDA_LINKER] = {"CUDA linker state that cannot be made again",
		"CUDA linker states that cannot be made again", NULL},
	[CUDA_USER_OBJECT] = {"CUDA user object", "CUDA user objects", NULL},
	[CUDA_GREEN_CONTEXT] = {"green CUDA context", "green CUDA contexts", NULL},
	[CUDA_ASYNC_CALLBACK] = {"CUDA notification", "CUDA notifications", NULL},
	[CUDA_LOG_CALLBACK] = {"callback for CUDA logs", "callbacks for CUDA logs", NULL},
	[CUDA_RESOURCE_DESCRIPTION] = {"description of a part of a GPU",
		"descriptions of parts of a GPU", NULL},
	[CUDA_EXTERNAL_MEMORY] = {"external CUDA memory object", "external CUDA memory objects",
		"cuDestroyExternalMemory"},
	[CUDA_EXTERNAL_SEMAPHORE] = {"external CUDA semaphore", "external CUDA semaphores",
		"cuDestroyExternalSemaphore"},
	[CUDA_EXTERNAL_BUFFER] = {"mapped buffer of external CUDA memory",
		"mapped buffers of external CUDA memory", "cuMemFree"},
};

static const struct names settings[CUDA_SETTINGS] = {
	[CUDA_SETTING_STREAM] = {"setting of a thread's default stream",
		"settings of threads' default streams", NULL},
	[CUDA_SETTING_MEMORY] = {"setting of memory", "settings of memory", NULL},
};

static int refuse_names(const struct names *n, unsigned count, int why)
{
	const char *name = count == 1 ? n->one : n->many;

	if (n->ends)
		return agent_fail_for(why,
			"it holds %u %s, which cannot be restored; a checkpoint is possible "
			"after "
			"%s",
			count, name, n->ends);
	return agent_fail_for(why, "it holds %u %s, which cannot be restored yet", count,
		name ? name : "CUDA objects");
}

/* Programs destroy a linker state as soon as they have loaded what it has linked: where it is all
 * that cannot be restored, another checkpoint is tried in a moment. */
static int refuse_object(enum cuda_kind kind, const unsigned *objects, const unsigned *set)
{
	int why = kind == CUDA_LINKER ? LOWER_PENDING : LOWER_FAILED;

	for (unsigned i = 0; i < CUDA_KINDS; i++)
		if (objects[i] && i != kind)
			why = LOWER_FAILED;
	for (unsigned i = 0; i < CUDA_SETTINGS; i++)
		if (set[i])
			why = LOWER_FAILED;
	return refuse_names(&kinds[kind], objects[kind], why);
}

/* What cannot be made again: named, with how many there are. */
static int refuse_lost(const struct cuda_state *s)
{
	unsigned objects[CUDA_KINDS] = {0}, set[CUDA_SETTINGS] = {0};

	for (const struct object *o = s->objects; o; o = o->next) {
		if (!(o->flags & CUDA_OBJECT_LOST))
			continue;
		if (o->kind == CUDA_SETTING && o->value < CUDA_SETTINGS)
			set[o->value]++;
		else
			objects[o->kind]++;
	}
	objects[CUDA_GRAPH] = objects[CUDA_GRAPH_EXEC] = 0; /* graph_save.c knows why */
	for (unsigned i = 0; i < CUDA_KINDS; i++)
		if (objects[i])
			return refuse_object(i, objects, set);
	if (set[CUDA_SETTING_FUNCTION])
		return agent_fail(
			"it uses a kernel that it has not asked for by its name, but found by "
			"a function of the driver that has no name: which one its handle "
			"stands for after a restart is not known");
	for (unsigned i = 0; i < CUDA_SETTINGS; i++)
		if (set[i])
			return refuse_names(&settings[i], set[i], LOWER_FAILED);
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

int cuda_drain(uint64_t patience_ns)
{
	struct cuda_state *s = cuda_records();

	table->imports = 0;
	table->uncertain = 0;
	if (!s || !s->initialised)
		return 0;
	table->imports = cuda_count_imports(s);
	if (refuse_lost(s) || refuse_export_entries(s))
		return -1;
	if (refuse_unknown(s) || refuse_graph_memory(s))
		return -1;
	/* To wait for a context ends a capture. */
	if (s->memory && s->memory->captures)
		return agent_fail_for(LOWER_PENDING, "it is capturing a stream into a graph");
	if (cuda_rest(s, patience_ns) || cuda_check_user_objects(s))
		return -1;
	if (agent_check_wanted() || cuda_list_memory(s) || cuda_save_graphs(s) ||
		cuda_save_globals(s) || placement_save(s) || agent_check_wanted() ||
		cuda_save_events(s))
		return -1;
	return cuda_save_threads(s);
}
