/*
 * When memory that graphs allocate comes and goes: whose it is after updates, when it is freed behind a stream, by another
 * graph, after its graph has gone, and while something still uses it. All of that at first and after each SIGUSR1; what is
 * held at a checkpoint is memory that has outlived its graph, and executables that were updated.
 */
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "shared/cuda/graph_params.h"
#include "t/split/conditional_params.h"
#include "t/split/graph_values.h"

#define COUNT  1024
#define BYTES  (4 * COUNT)
#define LARGE  (4ul << 20)
#define ROUNDS 3

#define STREAM_PER_THREAD ((void *)2)
#define NOT_READY         600

int cuGraphAddMemFreeNode(void **, void *, void *const *, size_t, uint64_t);
int cuUserObjectCreate(void **, void *, void (*)(void *), unsigned, unsigned);
int cuUserObjectRelease(void *, unsigned);
int cuGraphRetainUserObject(void *, void *, unsigned, unsigned);

static void *context, *streams[2];
static CUdeviceptr survivor, updated_address;
static void *updated, *scale;

void victim_hurt(void)
{
	OK(cuMemsetD32_v2(survivor, 1, COUNT));
}

/* ---- a stream that is busy for as long as the program wants ---- */

static atomic_int released, returns, host_done, too_early;

static void wait_for_program(void *data)
{
	time_t end = time(NULL) + 20;

	(void)data;
	while (!released && time(NULL) < end)
		sched_yield();
	CHECK(released, "turn %u: the program waits for a stream in vain", turn);
}

static void hold(void *stream)
{
	released = 0;
	OK(cuLaunchHostFunc(stream, wait_for_program, NULL));
}

static void let_go(void *stream)
{
	released = 1;
	OK(cuStreamSynchronize(stream));
}

/* While a stream is held: nobody else has what is at @address. */
static void check_taken(const char *what, CUdeviceptr address, size_t size)
{
	CUdeviceptr others[4];

	for (int i = 0; i < 4; i++) {
		OK(i % 2 ? cuMemAlloc_v2(&others[i], size)
			 : cuMemAllocAsync(&others[i], size, streams[0]));
		CHECK(others[i] + size <= address || address + size <= others[i],
			"turn %u, %s: it is somebody else's, too", turn, what);
	}
	for (int i = 0; i < 4; i++)
		OK(cuMemFreeAsync(others[i], streams[0]));
}

/* ---- graphs ---- */

static void *add_allocation(void *graph, void *after, size_t size, CUdeviceptr *address)
{
	struct graph_allocation p = {.kind = 1, .location = 1, .size = size};
	void *node = NULL;

	OK(cuGraphAddMemAllocNode(&node, graph, &after, after != NULL, &p));
	*address = p.address;
	return node;
}

static void *add_free(void *graph, void *after, CUdeviceptr address)
{
	void *node = NULL;

	OK(cuGraphAddMemFreeNode(&node, graph, &after, after != NULL, address));
	return node;
}

static void *add_set(void *graph, void *after, CUdeviceptr address, uint32_t value)
{
	const struct graph_memset m = {
		.address = address, .value = value, .element = 4, .width = COUNT, .height = 1};
	void *node = NULL;

	OK(cuGraphAddMemsetNode(&node, graph, &after, after != NULL, &m, context));
	return node;
}

/* With a kernel, which an update may change. */
static void *add_fill(void *graph, void *after, CUdeviceptr address, uint32_t value)
{
	uint64_t words[3] = {address, 0, value};
	void *pointers[3] = {&words[0], &words[1], &words[2]}, *node = NULL;
	const struct graph_kernel k = {.function = scale,
		.grid = {COUNT / 32, 1, 1},
		.block = {32, 1, 1},
		.params = pointers};

	OK(cuGraphAddKernelNode_v2(&node, graph, &after, 1, &k));
	return node;
}

/* A graph that allocates @size bytes, sets some to @value, and frees them if @frees. */
static void *make_graph(size_t size, uint32_t value, int frees, CUdeviceptr *address)
{
	void *graph, *node;

	OK(cuGraphCreate(&graph, 0));
	node = add_allocation(graph, NULL, size, address);
	node = add_fill(graph, node, *address, value);
	if (frees)
		add_free(graph, node, *address);
	return graph;
}

static void *make_executable(size_t size, uint32_t value, int frees, CUdeviceptr *address)
{
	void *graph = make_graph(size, value, frees, address), *executable;

	OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
	OK(cuGraphDestroy(graph));
	return executable;
}

static void update(void *executable, void *graph)
{
	uint64_t info[8];

	OK(cuGraphExecUpdate_v2(executable, graph, info));
	OK(cuGraphDestroy(graph));
}

/* ---- memory that is freed ---- */

/* In the order of a stream, which has it again at once; it is of no pool. */
static void check_ordinary(void)
{
	CUdeviceptr address, again;

	OK(cuMemAlloc_v2(&address, BYTES));
	OK(cuMemFreeAsync(address, streams[0]));
	OK(cuMemAllocAsync(&again, BYTES, streams[0]));
	OK(cuMemFreeAsync(again, streams[0]));
}

/* Another stream than that of the launch may use it until it comes to the free. */
static void check_freed_behind(size_t size)
{
	CUdeviceptr address;
	void *executable = make_executable(size, 1, 0, &address);

	OK(cuGraphLaunch(executable, streams[0]));
	OK(cuStreamSynchronize(streams[0]));
	hold(streams[1]);
	OK(cuMemFreeAsync(address, streams[1]));
	OK(cuGraphExecDestroy(executable));
	check_taken("freed behind a stream", address, size);
	let_go(streams[1]);
}

/* Goes on for a while after @returns. */
static void tell_order(void *data)
{
	time_t end = time(NULL) + 20;

	(void)data;
	while (!returns && time(NULL) < end)
		sched_yield();
	for (int i = 0; i < 20000; i++)
		sched_yield();
	too_early = host_done != 0;
}

/* As of memory of pools, cuMemFree waits for no stream. */
static void check_free_waits_not(void)
{
	CUdeviceptr address;
	void *executable = make_executable(BYTES, 1, 0, &address);

	OK(cuGraphLaunch(executable, streams[0]));
	OK(cuStreamSynchronize(streams[0]));
	hold(streams[1]);
	OK(cuMemFree_v2(address));
	CHECK(cuStreamQuery(streams[1]) == NOT_READY, "turn %u: cuMemFree has waited", turn);
	CHECK(cuMemFree_v2(address) == INVALID_VALUE, "turn %u: freed twice", turn);
	let_go(streams[1]);
	OK(cuGraphExecDestroy(executable));
}

/* But before the launch has ended, nobody has it. */
static void check_freed_in_flight(size_t size)
{
	uint64_t reserved = attribute(RESERVED);
	CUdeviceptr address;
	void *executable = make_executable(size, 1, 0, &address);

	hold(streams[1]);
	OK(cuGraphLaunch(executable, streams[1]));
	OK(cuGraphExecDestroy(executable));
	OK(cuMemFree_v2(address));
	check_taken("freed while its launch is under way", address, size);
	let_go(streams[1]);
	CHECK(attribute(RESERVED) == reserved, "turn %u: %lu bytes remain", turn,
		attribute(RESERVED) - reserved);
}

static void note_done(void *data)
{
	(void)data;
	host_done = 1;
}

/* A launch comes after what another stream does with the memory before it frees that. */
static void check_launch_waits(void)
{
	CUdeviceptr address;
	void *executable = make_executable(BYTES, 1, 0, &address);

	OK(cuGraphLaunch(executable, streams[0]));
	OK(cuStreamSynchronize(streams[0]));
	returns = host_done = 0;
	OK(cuLaunchHostFunc(streams[1], tell_order, NULL));
	OK(cuMemFreeAsync(address, streams[1]));
	OK(cuGraphLaunch(executable, streams[0]));
	OK(cuLaunchHostFunc(streams[0], note_done, NULL));
	returns = 1;
	OK(cuStreamSynchronize(streams[0]));
	OK(cuStreamSynchronize(streams[1]));
	CHECK(!too_early, "turn %u: a launch overtakes a free", turn);
	OK(cuMemFree_v2(address));
	OK(cuGraphExecDestroy(executable));
}

/* A graph that frees what another one has allocated, and allocates: that is not the same memory. */
static void check_other_frees(void)
{
	CUdeviceptr address, own;
	void *executable = make_executable(BYTES, 1, 0, &address), *graph, *other, *node;

	OK(cuGraphCreate(&graph, 0));
	node = add_free(graph, NULL, address);
	node = add_allocation(graph, node, BYTES, &own);
	add_free(graph, add_set(graph, node, own, 2), own);
	OK(cuGraphInstantiateWithFlags(&other, graph, 0));
	OK(cuGraphDestroy(graph));
	for (int i = 0; i < 2; i++) {
		OK(cuGraphLaunch(executable, streams[0]));
		OK(cuGraphLaunch(other, streams[0]));
	}
	OK(cuStreamSynchronize(streams[0]));
	CHECK(cuMemFree_v2(address) == INVALID_VALUE, "turn %u: freed twice", turn);
	OK(cuGraphExecDestroy(executable));
	OK(cuGraphExecDestroy(other));
}

/* ---- memory without its graph ---- */

static void make_survivor(void)
{
	void *executable = make_executable(BYTES, 100 + turn, 0, &survivor);

	OK(cuGraphLaunch(executable, streams[0]));
	OK(cuStreamSynchronize(streams[0]));
	OK(cuGraphExecDestroy(executable));
}

static void *capture_free(CUdeviceptr address)
{
	CUdeviceptr nothing = 1;
	void *graph = NULL;

	OK(cuStreamBeginCapture_v2(streams[0], 2));
	OK(cuMemFreeAsync(address, streams[0]));
	OK(cuMemAllocAsync(&nothing, 0, streams[0]));
	CHECK(!nothing, "0 bytes at %lx", nothing);
	OK(cuStreamEndCapture(streams[0], &graph));
	return graph;
}

/* What has survived, also a restart, is freed by another graph. */
static void check_survivor(void)
{
	uint64_t used = attribute(USED), reserved = attribute(RESERVED);
	void *graph, *executable;

	compare_words("survivor", survivor, COUNT, 100 + turn);
	if (turn % 2) {
		OK(cuGraphCreate(&graph, 0));
		add_free(graph, NULL, survivor);
	} else {
		graph = capture_free(survivor);
	}
	OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
	OK(cuGraphLaunch(executable, streams[0]));
	OK(cuStreamSynchronize(streams[0]));
	CHECK(used - attribute(USED) == BYTES, "turn %u: %lu bytes were used, %lu are", turn,
		used, attribute(USED));
	OK(cuGraphDestroy(graph));
	OK(cuGraphExecDestroy(executable));
	CHECK(reserved - attribute(RESERVED) == BYTES, "turn %u: %lu bytes remain", turn,
		attribute(RESERVED));
	CHECK(cuMemFree_v2(survivor) != 0, "turn %u: the survivor survives", turn);
}

/* ---- updates ---- */

/* The executable has the memory of the graph that it was updated from, and no other. */
static void check_updates(void)
{
	CUdeviceptr address, old;
	void *executable = make_executable(LARGE, 1, 1, &old);
	uint64_t reserved = attribute(RESERVED);

	hold(streams[1]);
	OK(cuGraphLaunch(executable, streams[1]));
	update(executable, make_graph(LARGE, 2, 1, &address));
	check_taken("a launch before an update", old, LARGE);
	let_go(streams[1]);
	for (int i = 0; i < 3; i++) {
		update(executable, make_graph(LARGE, 2, 1, &address));
		OK(cuGraphLaunch(executable, streams[0]));
		OK(cuStreamSynchronize(streams[0]));
		check_taken("after an update", address, LARGE);
		CHECK(attribute(RESERVED) == reserved, "turn %u: %lu bytes, with %lu before",
			turn, attribute(RESERVED), reserved);
	}
	OK(cuGraphExecDestroy(executable));
}

static void destroy_nothing(void *data)
{
	(void)data;
}

/* Nor is this different where there are user objects, which do not stay behind. */
static void check_user_object(void)
{
	CUdeviceptr address;
	void *user, *graph, *executable;

	OK(cuUserObjectCreate(&user, NULL, destroy_nothing, 1, 1));
	graph = make_graph(LARGE, 1, 1, &address);
	OK(cuGraphRetainUserObject(graph, user, 1, 0));
	OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
	OK(cuGraphDestroy(graph));
	update(executable, make_graph(LARGE, 2, 1, &address));
	check_taken("an executable with a user object", address, LARGE);
	OK(cuGraphLaunch(executable, streams[0]));
	OK(cuStreamSynchronize(streams[0]));
	OK(cuGraphExecDestroy(executable));
	OK(cuUserObjectRelease(user, 1));
}

/* What the executable had used before its update has been freed. */
static void make_updated(void)
{
	CUdeviceptr before;
	void *graph;

	OK(cuMemAlloc_v2(&before, LARGE)); /* nothing has that at a checkpoint */
	OK(cuMemAlloc_v2(&updated_address, BYTES));
	OK(cuGraphCreate(&graph, 0));
	add_set(graph, NULL, before, 1);
	OK(cuGraphInstantiateWithFlags(&updated, graph, 0));
	OK(cuGraphDestroy(graph));
	OK(cuGraphCreate(&graph, 0));
	add_set(graph, NULL, updated_address, 21);
	update(updated, graph);
	OK(cuMemFree_v2(before));
}

static void check_updated(void)
{
	OK(cuMemsetD32_v2(updated_address, 0, COUNT));
	OK(cuGraphLaunch(updated, streams[0]));
	OK(cuStreamSynchronize(streams[0]));
	compare_words("updated", updated_address, COUNT, 21);
}

/* ---- the end of a graph waits for nothing, and nobody has its memory before ---- */

static void end_behind(const char *what, void *stream)
{
	uint64_t reserved = attribute(RESERVED);
	CUdeviceptr address;
	void *executable = make_executable(LARGE, 1, 1, &address);

	hold(stream);
	OK(cuGraphLaunch(executable, stream));
	OK(cuGraphExecDestroy(executable));
	check_taken(what, address, LARGE);
	let_go(stream);
	CHECK(attribute(RESERVED) == reserved, "turn %u, %s: %lu bytes remain", turn, what,
		attribute(RESERVED) - reserved);
}

static void end_without_stream(void)
{
	CUdeviceptr address;
	void *executable = make_executable(LARGE, 1, 1, &address), *stream;

	OK(cuStreamCreate(&stream, 1));
	OK(cuGraphLaunch(executable, stream));
	OK(cuStreamDestroy_v2(stream));
	hold(streams[1]);
	OK(cuGraphExecDestroy(executable));
	let_go(streams[1]);
}

/* The default stream is another one in another context. */
static void end_in_another_context(void)
{
	CUdeviceptr address;
	void *executable = make_executable(LARGE, 1, 1, &address), *other;

	hold(NULL);
	OK(cuGraphLaunch(executable, NULL));
	OK(cuCtxCreate_v2(&other, 0, 0));
	OK(cuGraphExecDestroy(executable));
	OK(cuCtxSetCurrent(context));
	check_taken("with another context", address, LARGE);
	let_go(NULL);
	OK(cuCtxDestroy_v2(other));
	OK(cuCtxSetCurrent(context));
}

static void end_in_capture(void)
{
	uint64_t reserved = attribute(RESERVED);
	CUdeviceptr address;
	void *executable = make_executable(LARGE, 1, 1, &address), *graph;

	OK(cuGraphLaunch(executable, streams[1]));
	OK(cuStreamBeginCapture_v2(streams[0], 0));
	OK(cuGraphExecDestroy(executable));
	OK(cuStreamEndCapture(streams[0], &graph));
	OK(cuGraphDestroy(graph));
	CHECK(attribute(RESERVED) == reserved, "turn %u: %lu bytes remain", turn,
		attribute(RESERVED) - reserved);
	OK(cuStreamSynchronize(streams[1]));
}

static size_t free_bytes(void)
{
	size_t free = 0, total;

	OK(cuMemGetInfo_v2(&free, &total));
	return free;
}

/* The stream of the last launch went with its context: nothing of the launch is under way. */
static void end_of_stream_context(void)
{
	size_t before = free_bytes();
	CUdeviceptr address;
	void *executable = make_executable(LARGE, 1, 1, &address), *other, *stream;

	OK(cuCtxCreate_v2(&other, 0, 0));
	OK(cuStreamCreate(&stream, 1));
	OK(cuGraphLaunch(executable, stream));
	OK(cuCtxDestroy_v2(other));
	OK(cuCtxSetCurrent(context));
	OK(cuGraphExecDestroy(executable));
	CHECK(free_bytes() == before, "turn %u: %zu bytes are free, not %zu", turn,
		free_bytes(), before);
}

/* Of two that one launch had, one is given back before the other. */
static void end_one_by_one(void)
{
	size_t before = free_bytes();
	CUdeviceptr first, second, other;
	void *graph, *executable, *node;

	OK(cuGraphCreate(&graph, 0));
	node = add_allocation(graph, NULL, LARGE, &first);
	node = add_allocation(graph, node, LARGE, &second);
	add_free(graph, node, first);
	OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
	OK(cuGraphDestroy(graph));
	hold(streams[1]);
	OK(cuGraphLaunch(executable, streams[1]));
	OK(cuGraphExecDestroy(executable));
	let_go(streams[1]);
	OK(cuMemAllocAsync(&other, 2 * LARGE, streams[0]));
	OK(cuMemFree_v2(other));
	OK(cuMemFree_v2(second));
	CHECK(free_bytes() == before, "turn %u: %zu bytes are free, not %zu", turn,
		free_bytes(), before);
}

/* Graphs inside others cannot have such nodes. */
static void capture_in_body(void)
{
	struct conditional_params p = {.node_type = GRAPH_CONDITIONAL, .count = 1};
	CUdeviceptr address;
	void *graph, *node;

	OK(cuGraphCreate(&graph, 0));
	p.context = context;
	OK(cuGraphConditionalHandleCreate(&p.handle, graph, context, 0, 1));
	OK(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &p));
	OK(cuStreamBeginCaptureToGraph(streams[0], p.graphs[0], NULL, NULL, 0, 2));
	CHECK(cuMemAllocAsync(&address, BYTES, streams[0]) == NOT_SUPPORTED,
		"turn %u: a body allocates", turn);
	CHECK(cuMemFreeAsync(survivor, streams[0]) == NOT_SUPPORTED, "turn %u: a body frees",
		turn);
	OK(cuStreamEndCapture(streams[0], &node));
	OK(cuGraphDestroy(graph));
}

/* What a context had goes with it, and is nobody's. */
static void end_of_context(void)
{
	uint64_t used = attribute(USED), reserved = attribute(RESERVED);
	CUdeviceptr address;
	void *executable, *other, *stream, *own = context;

	OK(cuCtxCreate_v2(&other, 0, 0));
	OK(cuStreamCreate(&stream, 1));
	context = other;
	executable = make_executable(BYTES, 1, 0, &address);
	context = own;
	OK(cuGraphLaunch(executable, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuGraphExecDestroy(executable));
	OK(cuCtxDestroy_v2(other));
	OK(cuCtxSetCurrent(context));
	CHECK(attribute(USED) == used && attribute(RESERVED) == reserved,
		"turn %u: memory of a context that has gone", turn);
	CHECK(cuMemFree_v2(address) != 0, "turn %u: it can be freed", turn);
}

static void take_turn(void)
{
	check_ordinary();
	check_freed_behind(BYTES);
	check_freed_behind(LARGE);
	check_free_waits_not();
	check_freed_in_flight(BYTES);
	check_freed_in_flight(LARGE);
	check_launch_waits();
	check_other_frees();
	check_survivor();
	check_updates();
	check_user_object();
	check_updated();
	end_behind("a stream", streams[1]);
	end_behind("the thread's own stream", STREAM_PER_THREAD);
	end_without_stream();
	end_in_another_context();
	end_in_capture();
	end_of_context();
	end_of_stream_context();
	end_one_by_one();
	turn++;
	make_survivor();
	capture_in_body();
}

int main(void)
{
	void *module;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuModuleLoadData(&module, "sim module"));
	OK(cuModuleGetFunction(&scale, module, "scale"));
	for (int i = 0; i < 2; i++)
		OK(cuStreamCreate(&streams[i], 1));
	make_survivor();
	make_updated();
	victim_take_turns(ROUNDS, take_turn, &turn);
	return victim_done();
}
