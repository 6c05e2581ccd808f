/*
 * What goes with what: an object that outlives what it was made of is still there for the
 * checkpoint, and one that goes with it is not. Each SIGUSR1 takes a step, after which the
 * program says which it was, and what the checkpoint is to be refused for, or "nothing". At the end,
 * after a restart, what has outlived the rest is used, and what has not is an invalid handle.
 */
#include "shared/cuda/graph_params.h"
#include "t/split/driver_victim.h"

#define INVALID_HANDLE 400
#define MOVE           1

static void *primary, *graph, *copy, *executable, *context, *object, *texture, *stream, *event;
static void *pool, *kernel_function, *description, *green, *node;
static CUdeviceptr pooled;
static void *lasting[3], *lasting_executable;
static void *lasting_library, *lasting_kernel;
static void *stream_gone, *event_gone, *module_gone, *graph_gone;
static atomic_uint calls;

/* Might be shared with other processes. */
static const struct {
	int type, handle_types, location, id;
	char rest[72];
} on_device = {.type = 1, .handle_types = 1, .location = 1};

/* CUgraphNodeParams of a graph */
static struct {
	int type, reserved[3];
	void *graph;
	int ownership;
	char rest[224];
} child = {.type = 4, .ownership = 1};

void victim_hurt(void)
{
	OK(cuMemsetD32_v2(pooled, 1, 10));
}

static void no_call(void *data)
{
}

/* CU_JIT_GLOBAL_SYMBOL_NAMES: a linker state with such options cannot be made again. */
static const int symbol_names[] = {17};

static void *context_of_its_own(void)
{
	void *c = NULL;

	OK(cuCtxCreate_v2(&c, 0, 0));
	return c;
}

/* ---- graphs ---- */

static void executable_without_graph(void)
{
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
	OK(cuGraphDestroy(graph));
}

static void executable_with_parameters(void)
{
	uint64_t parameters[4] = {0};

	OK(cuGraphExecDestroy(executable));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphInstantiateWithParams(&executable, graph, parameters));
	OK(cuGraphDestroy(graph));
}

static void no_executable(void)
{
	OK(cuGraphExecDestroy(executable));
}

static void copy_without_graph(void)
{
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphClone(&copy, graph));
	OK(cuGraphDestroy(graph));
}

static void no_copy(void)
{
	OK(cuGraphDestroy(copy));
}

/* Unloading has all parts looked for whose whole is gone. */
static void captured(void)
{
	void *module;

	OK(cuModuleLoadData(&module, "sim module\n"));
	OK(cuStreamCreate(&stream, 0));
	OK(cuStreamBeginCapture_v2(stream, 0));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuStreamDestroy_v2(stream));
	OK(cuModuleUnload(module));
}

static void no_graph(void)
{
	OK(cuGraphDestroy(graph));
}

static void two_graphs(void)
{
	OK(cuGraphCreate(&copy, 0));
	OK(cuGraphCreate(&graph, 0));
}

static void moved(void)
{
	child.graph = copy;
	OK(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &child));
	graph_gone = copy;
	OK(cuGraphDestroy(graph));
}

/* ---- what a context does not take along ---- */

static void graphs_without_context(void)
{
	context = context_of_its_own();
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
	OK(cuGraphDestroy(graph));
	OK(cuCtxDestroy_v2(context));
}

static void count_call(void *data)
{
	calls++;
}

static void *graph_that_calls(void)
{
	const struct graph_host h = {(void *)count_call, NULL};
	void *made = NULL;

	OK(cuGraphCreate(&made, 0));
	OK(cuGraphAddHostNode(&node, made, NULL, 0, &h));
	return made;
}

/* A graph, a clone whose original is gone, and a graph whose stream is; they stay to the end. */
static void lasting_graphs(void)
{
	void *original;

	OK(cuGraphExecDestroy(executable));
	context = context_of_its_own();
	lasting[0] = graph_that_calls();
	OK(cuGraphInstantiateWithFlags(&lasting_executable, lasting[0], 0));
	original = graph_that_calls();
	OK(cuGraphClone(&lasting[1], original));
	OK(cuGraphDestroy(original));
	OK(cuStreamCreate(&stream, 1));
	OK(cuStreamBeginCapture_v2(stream, 0));
	OK(cuLaunchHostFunc(stream, count_call, NULL));
	OK(cuStreamEndCapture(stream, &lasting[2]));
	OK(cuStreamDestroy_v2(stream));
	OK(cuCtxDestroy_v2(context));
}

static void check_lasting(void)
{
	for (int i = 0; i < 3; i++) {
		OK(cuGraphInstantiateWithFlags(&executable, lasting[i], 0));
		OK(cuGraphLaunch(executable, NULL));
		OK(cuCtxSynchronize());
		CHECK(calls == i + 1u, "%u calls by %d graphs", calls, i + 1);
	}
	OK(cuGraphLaunch(lasting_executable, NULL));
	OK(cuCtxSynchronize());
	CHECK(calls == 4, "%u calls", calls);
}

static void lasting_code(void)
{
	context = context_of_its_own();
	OK(cuLibraryLoadData(&lasting_library, "sim module\n", NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&lasting_kernel, lasting_library, "count"));
	OK(cuCtxDestroy_v2(context));
}

static void check_lasting_code(void)
{
	void *same = NULL;
	int value;

	OK(cuKernelGetAttribute(&value, 8, lasting_kernel, 0));
	OK(cuLibraryGetKernel(&same, lasting_library, "count"));
	CHECK(same == lasting_kernel, "a kernel is %p, was %p", same, lasting_kernel);
	OK(cuLibraryUnload(lasting_library));
}

static void notification_without_context(void)
{
	context = context_of_its_own();
	OK(cuDeviceRegisterAsyncNotification(0, no_call, NULL, &object));
	OK(cuCtxDestroy_v2(context));
}

static void callback_without_context(void)
{
	OK(cuDeviceUnregisterAsyncNotification(0, object));
	context = context_of_its_own();
	OK(cuLogsRegisterCallback(no_call, NULL, &event));
	OK(cuCtxDestroy_v2(context));
}

static void object_without_context(void)
{
	OK(cuLogsUnregisterCallback(event));
	context = context_of_its_own();
	OK(cuUserObjectCreate(&object, NULL, no_call, 3, 1));
	OK(cuCtxDestroy_v2(context));
}

/* ---- and what it does ---- */

/* CUDA_ARRAY3D_DESCRIPTOR, CUDA_ARRAY_DESCRIPTOR */
static const uint64_t small[5] = {8, 8, 0, 1ul << 32 | 1}, flat[3] = {8, 8, 1ul << 32 | 1};

/* CUDA_RESOURCE_DESC of an array */
static const uint64_t *resource_of(void *array)
{
	static uint64_t resource[18];

	resource[1] = (uint64_t)array;
	return resource;
}

static void context_with_all(void)
{
	void *made[6];

	OK(cuUserObjectRelease(object, 3));
	context = context_of_its_own();
	OK(cuArrayCreate_v2(&made[0], flat));
	OK(cuMipmappedArrayCreate(&made[1], small, 2));
	OK(cuMipmappedArrayGetLevel(&made[2], made[1], 0));
	OK(cuTexObjectCreate(&made[3], resource_of(made[2]), (char[104]){0}, NULL));
	OK(cuSurfObjectCreate(&made[4], resource_of(made[0])));
	OK(cuLinkCreate_v2(1, symbol_names, (void *[]){NULL}, &made[5]));
	OK(cuStreamCreate(&stream_gone, 0));
	OK(cuEventCreate(&event_gone, 0));
	OK(cuModuleLoadData(&module_gone, "sim module\n"));
}

/* Of contexts; and a graph that was moved into another, which is no more. */
static void check_gone(void)
{
	void *function;

	CHECK(cuStreamQuery(stream_gone) == INVALID_HANDLE, "a stream outlives its context");
	CHECK(cuEventQuery(event_gone) == INVALID_HANDLE, "an event outlives its context");
	CHECK(cuModuleGetFunction(&function, module_gone, "count") == INVALID_HANDLE,
		"a module outlives its context");
	CHECK(cuGraphGetNodes(graph_gone, NULL, &(size_t){0}) == INVALID_HANDLE,
		"a graph outlives the one that it was moved into");
}

static void no_context(void)
{
	OK(cuCtxDestroy_v2(context));
}

static void failed_link(void)
{
	OK(cuLinkCreate_v2(0, NULL, NULL, &object));
	CHECK(cuLinkAddData_v2(object, 1, "not ended", 3, NULL, 0, NULL, NULL), "it is linked");
}

/* CU_JIT_TARGET_FROM_CUCONTEXT needs no value. */
static void link_without_values(void)
{
	const int from_context = 8;
	void *code = NULL;
	size_t size = 0;

	OK(cuLinkCreate_v2(1, &from_context, NULL, &object));
	OK(cuLinkAddData_v2(object, 1, "sim module\n", 12, NULL, 1, &from_context, NULL));
	OK(cuLinkComplete(object, &code, &size));
	CHECK(size == 12 && !strcmp(code, "sim module\n"), "the code is another");
}

/* CU_JIT_INFO_LOG_BUFFER and its size, and one of them once more. */
static char log_buffer[65 << 20];

static void link_with(int third, size_t size)
{
	const int options[] = {3, 4, third};
	static void *values[3];

	values[0] = log_buffer;
	values[1] = (void *)size;
	values[2] = third == 3 ? log_buffer : (void *)16;
	memset(log_buffer, '?', 80);
	OK(cuLinkCreate_v2(third ? 3 : 2, options, values, &object));
	OK(cuLinkAddData_v2(object, 1, "sim module\n", 12, "text", 0, NULL, NULL));
	CHECK(!strcmp(log_buffer, "added text\n"), "the log has \"%.40s\"", log_buffer);
}

static void link_with_large_log(void)
{
	link_with(0, sizeof(log_buffer));
}

static void link_with_two_logs(void)
{
	link_with(3, 64);
}

static void link_with_two_sizes(void)
{
	link_with(4, 64);
}

static void no_link(void)
{
	OK(cuLinkDestroy(object));
}

/* The device's own goes with the last release, and all of its with it. */
static void primary_with_all(void)
{
	void *made[2];

	OK(cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cuArrayCreate_v2(&made[0], flat));
	OK(cuLinkCreate_v2(1, symbol_names, (void *[]){NULL}, &made[1]));
	OK(cuDevicePrimaryCtxRelease_v2(0));
}

static void no_primary(void)
{
	OK(cuDevicePrimaryCtxRelease_v2(0));
	OK(cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cuCtxSetCurrent(primary));
}

/* ---- references ---- */

static void some_references(void)
{
	OK(cuUserObjectCreate(&object, NULL, no_call, 3, 1));
	OK(cuUserObjectRetain(object, 2));
	OK(cuUserObjectRelease(object, 4));
}

static void no_references(void)
{
	OK(cuUserObjectRelease(object, 1));
}

static void graph_of_object(void)
{
	OK(cuGraphCreate(&graph, 0));
	OK(cuUserObjectCreate(&object, NULL, no_call, 1, 1));
	OK(cuGraphRetainUserObject(graph, object, 1, 0));
	OK(cuUserObjectRelease(object, 1));
	OK(cuGraphReleaseUserObject(graph, object, 1));
}

static void object_moved(void)
{
	OK(cuUserObjectCreate(&object, NULL, no_call, 1, 1));
	OK(cuGraphRetainUserObject(graph, object, 1, MOVE));
	OK(cuGraphDestroy(graph));
}

/* ---- arrays ---- */

static void texture_without_array(void)
{
	static const uint64_t in_planes[3] = {8, 8, 3ul << 32 | 0xb0};
	void *array, *plane;

	OK(cuArrayCreate_v2(&array, in_planes));
	OK(cuArrayGetPlane(&plane, array, 0));
	OK(cuTexObjectCreate(&texture, resource_of(plane), (char[104]){0}, NULL));
	OK(cuArrayDestroy(array));
}

static void levels_go(void)
{
	void *array, *level;

	OK(cuTexObjectDestroy(texture));
	OK(cuMipmappedArrayCreate(&array, small, 2));
	OK(cuMipmappedArrayGetLevel(&level, array, 1));
	OK(cuMipmappedArrayDestroy(array));
}

/* ---- libraries and pools ---- */

static void library_and_pool(void)
{
	void *library, *kernel;
	int fd = -1;

	OK(cuLibraryLoadData(&library, "sim module\n", NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&kernel, library, "count"));
	OK(cuKernelGetFunction(&kernel_function, kernel));
	OK(cuLibraryUnload(library));
	OK(cuMemPoolCreate(&pool, &on_device));
	OK(cuMemAllocFromPoolAsync(&pooled, 4000, pool, NULL));
	OK(cuMemPoolExportToShareableHandle(&fd, pool, 1, 0));
	close(fd);
	OK(cuMemPoolDestroy(pool));
	OK(cuMemsetD32_v2(pooled, 4321, 1000));
}

/* ---- parts of devices ---- */

static void description_without_context(void)
{
	context = context_of_its_own();
	OK(cuDevResourceGenerateDesc(&description, (char[144]){0}, 1));
	OK(cuCtxDestroy_v2(context));
}

static void green_without_context(void)
{
	context = context_of_its_own();
	OK(cuGreenCtxCreate(&green, description, 0, 1));
	OK(cuCtxDestroy_v2(context));
}

static void stream_without_green(void)
{
	OK(cuGreenCtxStreamCreate(&stream, green, 1, 0));
	OK(cuGreenCtxDestroy(green));
}

static void no_stream(void)
{
	OK(cuStreamDestroy_v2(stream));
}

static const struct step {
	void (*take)(void);
	const char *refused;
} steps[] = {
	{executable_without_graph, "nothing"},
	{executable_with_parameters, "nothing"},
	{no_executable, "nothing"},
	{copy_without_graph, "nothing"},
	{no_copy, "nothing"},
	{captured, "nothing"},
	{no_graph, "nothing"},
	{two_graphs, "nothing"},
	{moved, "nothing"},
	{graphs_without_context, "nothing"},
	{lasting_graphs, "nothing"},
	{lasting_code, "nothing"},
	{notification_without_context, "1 CUDA notification,"},
	{callback_without_context, "1 callback for CUDA logs,"},
	{object_without_context, "nothing"},
	{context_with_all, "1 CUDA linker state that cannot be made again,"},
	{no_context, "nothing"},
	{failed_link, "1 CUDA linker state that cannot be made again,"},
	{no_link, "nothing"},
	{link_without_values, "1 CUDA linker state that cannot be made again,"},
	{no_link, "nothing"},
	{link_with_large_log, "1 CUDA linker state that cannot be made again,"},
	{no_link, "nothing"},
	{link_with_two_logs, "1 CUDA linker state that cannot be made again,"},
	{no_link, "nothing"},
	{link_with_two_sizes, "1 CUDA linker state that cannot be made again,"},
	{no_link, "nothing"},
	{primary_with_all, "1 CUDA linker state that cannot be made again,"},
	{no_primary, "nothing"},
	{some_references, "nothing"},
	{no_references, "nothing"},
	{graph_of_object, "nothing"},
	{object_moved, "nothing"},
	{texture_without_array, "nothing"},
	{levels_go, "nothing"},
	{library_and_pool, "nothing"},
};

/* Descriptions are never destroyed. */
static const struct step last_steps[] = {
	{description_without_context, "1 description of a part of a GPU,"},
	{green_without_context, "1 green CUDA context,"},
	{stream_without_green, "1 CUDA stream of a green context,"},
	{no_stream, "1 description of a part of a GPU,"},
};

static void take_steps(const struct step *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		victim_wait();
		list[i].take();
		victim_say(
			"%s %zu: %s", i + 1 < count ? "step" : "last", i + 1, list[i].refused);
	}
	victim_wait();
}

int main(int argc, char **argv)
{
	unsigned word = 0;
	int value;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cuCtxSetCurrent(primary));
	victim_ready();
	if (argc > 1) {
		take_steps(last_steps, sizeof(last_steps) / sizeof(last_steps[0]));
		return victim_done();
	}
	take_steps(steps, sizeof(steps) / sizeof(steps[0]));
	CHECK(cuFuncGetAttribute(&value, 8, kernel_function) == INVALID_HANDLE, "it lives");
	OK(cuMemcpyDtoH_v2(&word, pooled + 3996, 4));
	CHECK(word == 4321, "memory of a pool that is no more has %u", word);
	OK(cuMemFreeAsync(pooled, NULL));
	check_lasting();
	check_lasting_code();
	check_gone();
	return victim_done();
}
