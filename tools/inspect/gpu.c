/*
 * gpu.c - finds the records in memory as the image has it, and counts what they hold.
 */
#include "tools/inspect/gpu.h"

#include <inttypes.h>
#include <string.h>

#include "shared/cuda/cuda_state.h"
#include "tools/inspect/contents.h"
#include "tools/inspect/text.h"

/* The image is not trusted: more than this is none of ours. */
#define MAX_ALLOCATIONS (1u << 24)

static const char *const kinds[CUDA_KINDS] = {
	[CUDA_CONTEXT] = "contexts",
	[CUDA_STREAM] = "streams",
	[CUDA_EVENT] = "events",
	[CUDA_MODULE] = "modules",
	[CUDA_LIBRARY] = "libraries",
	[CUDA_FUNCTION] = "functions",
	[CUDA_KERNEL] = "kernels",
	[CUDA_POOL] = "memory pools",
	[CUDA_ARRAY] = "arrays",
	[CUDA_TEXTURE] = "textures",
	[CUDA_SURFACE] = "surfaces",
	[CUDA_MEMORY_HANDLE] = "memory handles",
	[CUDA_GRAPH] = "graphs",
	[CUDA_GRAPH_EXEC] = "executable graphs",
	[CUDA_GRAPH_NODE] = "graph nodes",
	[CUDA_OTHER] = "others",
	[CUDA_MIPMAPPED_ARRAY] = "mipmapped arrays",
	[CUDA_LINKER] = "linkers",
	[CUDA_USER_OBJECT] = "user objects",
	[CUDA_GREEN_CONTEXT] = "green contexts",
	[CUDA_ASYNC_CALLBACK] = "asynchronous callbacks",
	[CUDA_LOG_CALLBACK] = "log callbacks",
	[CUDA_ADDRESS] = "addresses of variables",
	[CUDA_STORAGE] = "values of runtime libraries",
	[CUDA_RESOURCE_DESCRIPTION] = "descriptions of parts of a device",
	[CUDA_SETTING] = "settings that cannot be made again",
	[CUDA_EXTERNAL_MEMORY] = "external memory objects",
	[CUDA_EXTERNAL_SEMAPHORE] = "external semaphores",
	[CUDA_EXTERNAL_BUFFER] = "mapped buffers of external memory",
};

static const char *const memories[] = {
	[CUDA_MEMORY_DEVICE] = "device",
	[CUDA_MEMORY_PINNED] = "pinned",
	[CUDA_MEMORY_MANAGED] = "managed",
};

struct gpu {
	struct cuda_state state;
	struct {
		uint64_t count, bytes;
	} memory[ARRAY_SIZE(memories)]; /* what has no name is at 0 */
};

static void add_allocations(struct contents *m, struct gpu *g)
{
	uint64_t count = g->state.allocation_count;

	if (count > MAX_ALLOCATIONS)
		return;
	for (uint64_t i = 0; i < count; i++) {
		struct allocation a;

		if (contents_read(m, (uintptr_t)(g->state.allocations + i), &a, sizeof(a)))
			return;
		if (a.kind >= ARRAY_SIZE(memories) || !memories[a.kind])
			a.kind = 0;
		g->memory[a.kind].count++;
		g->memory[a.kind].bytes += a.size;
	}
}

/* false: there is nothing of a GPU. */
static bool look_for_gpu(const struct checkpoint *c, size_t process, struct gpu *g)
{
	struct contents *m;
	bool found;
	size_t files;

	memset(g, 0, sizeof(*g));
	image_note_array(c->processes[process], IMAGE_NOTE_LOWER, struct image_module, &files);
	if (!files)
		return false;
	m = contents_open(c, process);
	found = !contents_read(m, RECORDS_CUDA, &g->state, sizeof(g->state)) &&
		g->state.magic == CUDA_STATE_MAGIC && g->state.version == CUDA_STATE_VERSION;
	if (found)
		add_allocations(m, g);
	contents_close(m);
	if (g->state.device_count > CUDA_DEVICES)
		g->state.device_count = CUDA_DEVICES;
	for (unsigned i = 0; found && i < CUDA_DEVICES; i++)
		g->state.devices[i].name[sizeof(g->state.devices[i].name) - 1] = 0;
	return found;
}

static const char *memory_name(size_t kind)
{
	return memories[kind] ? memories[kind] : "other";
}

void gpu_text(const struct checkpoint *c, size_t process, struct buf *out)
{
	char size[TEXT_SIZE];
	struct gpu g;

	if (!look_for_gpu(c, process, &g))
		return;
	for (unsigned i = 0; i < g.state.device_count; i++)
		text_line(out, "GPU %-7u %s, %s, CUDA %d.%d", i, g.state.devices[i].name,
			text_bytes(g.state.devices[i].memory, size),
			g.state.driver_version / 1000, g.state.driver_version % 1000 / 10);
	for (size_t k = 0; k < ARRAY_SIZE(memories); k++)
		if (g.memory[k].count)
			text_line(out, "            %" PRIu64 " allocations of %s memory, %s",
				g.memory[k].count, memory_name(k),
				text_bytes(g.memory[k].bytes, size));
	for (unsigned k = 0; k < CUDA_KINDS; k++)
		if (g.state.alive[k])
			text_line(out, "            %" PRIu64 " %s", g.state.alive[k],
				kinds[k] ? kinds[k] : "?");
}

void gpu_json(const struct checkpoint *c, size_t process, struct json *j)
{
	struct gpu g;

	if (!look_for_gpu(c, process, &g))
		return;
	json_object(j, "gpu");
	json_integer(j, "driver_version", g.state.driver_version);
	json_array(j, "devices");
	for (unsigned i = 0; i < g.state.device_count; i++) {
		json_object(j, NULL);
		json_text(j, "name", g.state.devices[i].name);
		json_number(j, "memory_bytes", g.state.devices[i].memory);
		json_end(j);
	}
	json_end(j);
	json_array(j, "allocations");
	for (size_t k = 0; k < ARRAY_SIZE(memories); k++) {
		if (!g.memory[k].count)
			continue;
		json_object(j, NULL);
		json_text(j, "kind", memory_name(k));
		json_number(j, "number", g.memory[k].count);
		json_number(j, "bytes", g.memory[k].bytes);
		json_end(j);
	}
	json_end(j);
	json_object(j, "objects");
	for (unsigned k = 0; k < CUDA_KINDS; k++)
		if (g.state.alive[k])
			json_number(j, kinds[k] ? kinds[k] : "?", g.state.alive[k]);
	json_end(j);
	json_end(j);
}
