/*
 * Memory and semaphores of another interface: used as they are for, and the program holds some after each
 * step. Each SIGUSR1 takes a step, after which the program says which it was, and what the checkpoint is to be
 * refused for, or "nothing". Here files in memory stand for what Vulkan would export.
 */
#include "t/split/driver_victim.h"

#define NOT_SUPPORTED 801
#define OPAQUE_FD     1
#define SIZE          (64 * KIB)

static void *context, *stream, *memory, *array, *semaphore, *graph, *executable, *own;
static void *signal_node, *wait_node;
static CUdeviceptr buffer, kept;
static unsigned *view;             /* of what is imported as memory */
static volatile uint64_t *counter; /* a semaphore's */

/* CUDA_EXTERNAL_MEMORY_HANDLE_DESC; of a semaphore, the flags are where the size is. */
struct handle {
	int type, pad, fd, pad2;
	void *more;
	uint64_t size;
	char rest[72];
};

/* CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC: 16 x 16, one channel of 32 bits, two levels */
static const struct {
	uint64_t offset, width, height, depth;
	int format, channels, flags, reserved;
	unsigned levels;
	char rest[68];
} two_levels = {
	.offset = 8192, .width = 16, .height = 16, .format = 3, .channels = 1, .levels = 2};

/* CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS and ..._WAIT_PARAMS */
struct operation {
	uint64_t value;
	char rest[136];
};

/* CUDA_EXT_SEM_SIGNAL_NODE_PARAMS and ..._WAIT_NODE_PARAMS */
struct node_params {
	void **semaphores;
	const struct operation *operations;
	unsigned count;
};

void victim_hurt(void)
{
	OK(cuMemsetD32_v2(kept, 1, 10));
}

/* A file of @size bytes, mapped at *@at; the descriptor of it is gone when it has been imported. */
static struct handle exported(size_t size, void *at)
{
	struct handle h = {.type = OPAQUE_FD, .size = size};

	h.fd = memfd_create("exported", MFD_CLOEXEC);
	MUST(h.fd >= 0 && !ftruncate(h.fd, size));
	*(void **)at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, h.fd, 0);
	MUST(*(void **)at != MAP_FAILED);
	return h;
}

static void unmap(void *at, size_t size)
{
	MUST(!munmap(at, size));
}

static void import_memory(void)
{
	struct handle h = exported(SIZE, &view);

	OK(cuImportExternalMemory(&memory, &h));
	CHECK(fcntl(h.fd, F_GETFD) < 0, "the driver has not taken the descriptor over");
}

/* ---- memory ---- */

static void import_nothing(void)
{
	struct handle h = {.type = OPAQUE_FD, .size = SIZE};
	static const struct {
		int type, handle_types, location, id;
		char rest[16];
	} exportable = {.type = 1, .handle_types = 1, .location = 1};
	uint64_t handle;
	void *none = NULL;

	h.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	CHECK(cuImportExternalMemory(&none, &h) && !none, "no memory is imported");
	CHECK(!close(h.fd), "the driver has taken over what it has not imported");
	OK(cuMemCreate(&handle, 2 * MIB, &exportable, 0));
	OK(cuMemExportToShareableHandle(&h.fd, handle, 1, 0));
	CHECK(cuImportExternalMemory(&none, &h) == NOT_SUPPORTED,
		"it is not memory of another's");
	CHECK(!close(h.fd), "the descriptor is gone");
	OK(cuMemRelease(handle));
}

static void map_buffer(void)
{
	static const uint64_t part[11] = {4096, 8192};
	unsigned word = 0;
	CUdeviceptr start;
	size_t size;

	OK(cuExternalMemoryGetMappedBuffer(&buffer, memory, part));
	OK(cuDestroyExternalMemory(memory));
	OK(cuMemGetAddressRange_v2(&start, &size, buffer + 100));
	CHECK(start == buffer && size == 8192, "it is at %lx, of %zu bytes", start, size);
	view[1024] = 77;
	OK(cuMemcpyDtoH_v2(&word, buffer, sizeof(word)));
	CHECK(word == 77, "the device sees %u, not what the program has written", word);
	OK(cuMemsetD32_v2(buffer + 4, 78, 10));
	CHECK(view[1025] == 78, "the program sees %u, not what the device has written",
		view[1025]);
}

static void free_buffer(void)
{
	OK(cuMemFree_v2(buffer));
	CHECK(cuMemFree_v2(buffer), "it can be freed twice");
	CHECK(view[1025] == 78, "the memory has gone with the buffer");
	unmap(view, SIZE);
}

static void map_array(void)
{
	void *level;
	unsigned word = 0;

	import_memory();
	OK(cuExternalMemoryGetMappedMipmappedArray(&array, memory, &two_levels));
	OK(cuDestroyExternalMemory(memory));
	view[2048] = 81;
	OK(cuMipmappedArrayGetLevel(&level, array, 0));
	OK(cuMemcpyAtoH_v2(&word, level, 0, sizeof(word)));
	CHECK(word == 81, "the array has %u, not what the program has written", word);
}

static void destroy_array(void)
{
	OK(cuMipmappedArrayDestroy(array));
	unmap(view, SIZE);
}

/* ---- semaphores ---- */

static void import_semaphore(void)
{
	struct handle h = exported(4096, &counter);

	h.size = 0;
	OK(cuImportExternalSemaphore(&semaphore, &h));
	OK(cuWaitExternalSemaphoresAsync(
		&semaphore, &(struct operation){.value = 1}, 1, stream));
	OK(cuSignalExternalSemaphoresAsync(
		&semaphore, &(struct operation){.value = 2}, 1, stream));
	CHECK(cuStreamQuery(stream), "the stream does not wait");
	*counter = 1;
	OK(cuStreamSynchronize(stream));
	CHECK(*counter == 2, "the semaphore is at %lu", *counter);
}

/* It is not waited for: what the checkpoint is refused for is there anyway. */
static void wait_for_signal(void)
{
	OK(cuWaitExternalSemaphoresAsync(
		&semaphore, &(struct operation){.value = 3}, 1, stream));
}

static void check_params(int (*get)(void *, void *), void *node, uint64_t value)
{
	struct node_params p = {0};

	OK(get(node, &p));
	CHECK(p.count == 1 && *p.semaphores == semaphore && p.operations->value == value,
		"a node has other parameters");
}

static void launch_graph(void)
{
	const struct operation values[] = {
		{.value = 4}, {.value = 5}, {.value = 6}, {.value = 7}};
	struct node_params p[4];

	for (int i = 0; i < 4; i++)
		p[i] = (struct node_params){&semaphore, &values[i], 1};
	*counter = 3;
	OK(cuStreamSynchronize(stream));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddExternalSemaphoresWaitNode(&wait_node, graph, NULL, 0, &p[1]));
	OK(cuGraphAddExternalSemaphoresSignalNode(&signal_node, graph, &wait_node, 1, &p[1]));
	OK(cuGraphExternalSemaphoresWaitNodeSetParams(wait_node, &p[0]));
	check_params(cuGraphExternalSemaphoresWaitNodeGetParams, wait_node, 4);
	check_params(cuGraphExternalSemaphoresSignalNodeGetParams, signal_node, 5);
	OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
	*counter = 4;
	OK(cuGraphLaunch(executable, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(*counter == 5, "the graph has set it to %lu", *counter);
	OK(cuGraphExternalSemaphoresSignalNodeSetParams(signal_node, &p[2]));
	OK(cuGraphExecExternalSemaphoresWaitNodeSetParams(executable, wait_node, &p[1]));
	OK(cuGraphExecExternalSemaphoresSignalNodeSetParams(executable, signal_node, &p[3]));
	OK(cuGraphLaunch(executable, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(*counter == 7, "the changed graph has set it to %lu", *counter);
	OK(cuDestroyExternalSemaphore(semaphore));
	unmap((void *)counter, 4096);
}

static void only_executable(void)
{
	OK(cuGraphDestroy(graph));
}

static void no_graph(void)
{
	OK(cuGraphExecDestroy(executable));
}

static void capture_graph(void)
{
	import_semaphore();
	OK(cuStreamBeginCapture_v2(stream, 0));
	OK(cuSignalExternalSemaphoresAsync(
		&semaphore, &(struct operation){.value = 9}, 1, stream));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuDestroyExternalSemaphore(semaphore));
	unmap((void *)counter, 4096);
}

/* ---- with a context ---- */

static void context_with_all(void)
{
	OK(cuCtxCreate_v2(&own, 0, 0));
	import_semaphore();
	import_memory();
	OK(cuExternalMemoryGetMappedBuffer(&buffer, memory, (const uint64_t[11]){0, 4096}));
}

static void no_context(void)
{
	OK(cuCtxDestroy_v2(own));
	OK(cuCtxSetCurrent(context));
	unmap(view, SIZE);
	unmap((void *)counter, 4096);
}

static const struct step {
	void (*take)(void);
	const char *refused;
} steps[] = {
	{import_nothing, "nothing"},
	{import_memory, "1 external CUDA memory object,"},
	{map_buffer, "1 mapped buffer of external CUDA memory,"},
	{free_buffer, "nothing"},
	{map_array, "1 mipmapped CUDA array of external memory,"},
	{destroy_array, "nothing"},
	{import_semaphore, "1 external CUDA semaphore,"},
	{wait_for_signal, "1 external CUDA semaphore,"},
	{launch_graph, "a CUDA graph with a node that waits for an external semaphore,"},
	{only_executable, "a CUDA graph with a node that waits for an external semaphore,"},
	{no_graph, "nothing"},
	{capture_graph, "a CUDA graph with a node that signals an external semaphore,"},
	{only_executable, "nothing"},
	{context_with_all, "1 external CUDA memory object,"},
	{no_context, "nothing"},
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

int main(void)
{
	unsigned word = 0;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&stream, 1));
	OK(cuMemAlloc_v2(&kept, 4000));
	OK(cuMemsetD32_v2(kept, 4321, 1000));
	victim_ready();
	for (size_t i = 0; i < STEPS; i++) {
		victim_wait();
		steps[i].take();
		victim_say(
			"%s %zu: %s", i + 1 < STEPS ? "step" : "last", i + 1, steps[i].refused);
	}
	victim_wait();
	OK(cuMemcpyDtoH_v2(&word, kept, sizeof(word)));
	CHECK(word == 4321, "memory of the program's own has %u", word);
	return victim_done();
}
