/*
 * Graphs that allocate memory and free it: built by nodes, and captured; one whose graph is gone; and one that leaves
 * what it has allocated to the program, which holds it at a checkpoint. After each SIGUSR1 all are launched and
 * compared.
 */
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "shared/cuda/graph_params.h"
#include "t/split/graph_values.h"

#define COUNT  256
#define BYTES  (4 * COUNT)
#define ROUNDS 3
#define DEVICE 2 /* CU_MEMORYTYPE_DEVICE */

#define AUTO_FREE 1

int cuGraphAddMemFreeNode(void **, void *, void *const *, size_t, uint64_t);
int cuGraphMemAllocNodeGetParams(void *, void *);
int cuGraphMemFreeNodeGetParams(void *, uint64_t *);

static void *context, *stream, *scale;
static CUdeviceptr results[3];

static void *built, *built_exec, *takes, *again, *frees;
static CUdeviceptr built_address;
static void *captured_exec;
static CUdeviceptr captured_address;
static void *left, *left_exec, *auto_exec;
static CUdeviceptr left_address, auto_address, survivor;

void victim_hurt(void)
{
	OK(cuMemsetD32_v2(left_address, 1, COUNT));
}

static void run(void *executable)
{
	OK(cuGraphLaunch(executable, stream));
	OK(cuStreamSynchronize(stream));
}

/* ---- nodes ---- */

static void *add_allocation(void *graph, void *after, size_t size, CUdeviceptr *address)
{
	struct graph_allocation p = {.kind = 1, .location = 1, .size = size};
	void *node = NULL;

	OK(cuGraphAddMemAllocNode(&node, graph, &after, after != NULL, &p));
	*address = p.address;
	return node;
}

static void *add_set_of(
	void *graph, void *after, CUdeviceptr address, uint32_t value, size_t count)
{
	const struct graph_memset m = {
		.address = address, .value = value, .element = 4, .width = count, .height = 1};
	void *node = NULL;

	OK(cuGraphAddMemsetNode(&node, graph, &after, 1, &m, context));
	return node;
}

static void *add_set(void *graph, void *after, CUdeviceptr address, uint32_t value)
{
	return add_set_of(graph, after, address, value, COUNT);
}

static void *add_copy(void *graph, void *after, CUdeviceptr to, CUdeviceptr from)
{
	const struct graph_memcpy c = {.from = {.type = DEVICE, .device = from},
		.to = {.type = DEVICE, .device = to},
		.width = BYTES,
		.height = 1,
		.depth = 1};
	void *node = NULL;

	OK(cuGraphAddMemcpyNode(&node, graph, &after, 1, &c, context));
	return node;
}

static void *add_scale(
	void *graph, void *after, CUdeviceptr address, uint64_t by, uint64_t plus)
{
	uint64_t words[3] = {address, by, plus};
	void *pointers[3] = {&words[0], &words[1], &words[2]}, *node = NULL;
	const struct graph_kernel k = {.function = scale,
		.grid = {COUNT / 32, 1, 1},
		.block = {32, 1, 1},
		.params = pointers};

	OK(cuGraphAddKernelNode_v2(&node, graph, &after, 1, &k));
	return node;
}

/* ---- what is held ---- */

static void make_built(void)
{
	CUdeviceptr address;
	void *node;

	OK(cuGraphCreate(&built, 0));
	takes = add_allocation(built, NULL, BYTES, &built_address);
	node = add_set(built, takes, built_address, 7);
	node = add_scale(built, node, built_address, 3, 1);
	node = add_copy(built, node, results[0], built_address);
	OK(cuGraphAddMemFreeNode(&node, built, &node, 1, built_address));
	/* It has the same address, as it depends on the free. */
	again = add_allocation(built, node, BYTES / 2, &address);
	CHECK(address == built_address, "at %lx, not %lx", address, built_address);
	node = add_set_of(built, again, address, 1, COUNT / 2);
	OK(cuGraphAddMemFreeNode(&frees, built, &node, 1, built_address));
	OK(cuGraphInstantiateWithFlags(&built_exec, built, 0));
}

static void check_built(void)
{
	struct graph_allocation p = {0};
	CUdeviceptr freed = 0;
	void *other;
	int type[2] = {-1, -1};

	run(built_exec);
	compare_words("built", results[0], COUNT, 22);
	OK(cuGraphNodeGetType(takes, &type[0]));
	OK(cuGraphNodeGetType(frees, &type[1]));
	CHECK(type[0] == GRAPH_ALLOCATION && type[1] == GRAPH_FREE, "types %d and %d", type[0],
		type[1]);
	OK(cuGraphMemAllocNodeGetParams(takes, &p));
	OK(cuGraphMemFreeNodeGetParams(frees, &freed));
	CHECK(p.address == built_address && p.size == BYTES && freed == built_address,
		"at %lx and %lx", p.address, freed);
	OK(cuGraphMemAllocNodeGetParams(again, &p));
	CHECK(p.address == built_address && p.size == BYTES / 2, "%lu bytes at %lx", p.size,
		p.address);
	CHECK(cuGraphMemAllocNodeGetParams(frees, &p) == INVALID_VALUE,
		"a free is an allocation");
	CHECK(cuGraphClone(&other, built) == NOT_SUPPORTED, "cloned");
	CHECK(cuGraphInstantiateWithFlags(&other, built, 0) == NOT_SUPPORTED,
		"instantiated twice");
}

/* The graph is gone. */
static void make_captured(void)
{
	void *graph;

	OK(cuStreamBeginCapture_v2(stream, 2));
	OK(cuMemAllocAsync(&captured_address, BYTES, stream));
	OK(cuMemsetD32Async(captured_address, 9, COUNT, stream));
	OK(cuMemcpyDtoDAsync_v2(results[1], captured_address, BYTES, stream));
	OK(cuMemFreeAsync(captured_address, stream));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphInstantiateWithFlags(&captured_exec, graph, 0));
	OK(cuGraphDestroy(graph));
}

static void check_captured(void)
{
	OK(cuMemsetD32_v2(results[1], 0, COUNT));
	run(captured_exec);
	compare_words("captured", results[1], COUNT, 9);
}

static void make_left(void)
{
	void *graph, *node;

	OK(cuGraphCreate(&left, 0));
	node = add_allocation(left, NULL, BYTES, &left_address);
	add_set(left, node, left_address, 5);
	OK(cuGraphInstantiateWithFlags(&left_exec, left, 0));
	run(left_exec);

	OK(cuGraphCreate(&graph, 0));
	node = add_allocation(graph, NULL, BYTES, &auto_address);
	add_set(graph, node, auto_address, 6);
	OK(cuGraphInstantiateWithFlags(&auto_exec, graph, AUTO_FREE));
	OK(cuGraphDestroy(graph));
	run(auto_exec);
}

/* What the graph has allocated is here until it is freed, and then may be allocated again. */
static void check_left(void)
{
	uint64_t before = attribute(USED);

	compare_words("left", left_address, COUNT, turn ? 100 + turn : 5);
	CHECK(cuGraphLaunch(left_exec, stream) == INVALID_VALUE, "allocated twice");
	OK(turn % 2 ? cuMemFree_v2(left_address) : cuMemFreeAsync(left_address, stream));
	CHECK(before - attribute(USED) == BYTES, "%lu bytes were in use", before);
	CHECK(cuMemFree_v2(left_address) == INVALID_VALUE, "freed twice");
	run(left_exec);
	compare_words("allocated again", left_address, COUNT, 5);
	OK(cuMemsetD32_v2(left_address, 101 + turn, COUNT));
	compare_words("freed on launch", auto_address, COUNT, 6);
	run(auto_exec);
}

/* It stays when the graph and its executable go. */
static void make_survivor(void)
{
	void *graph, *executable, *node;

	OK(cuGraphCreate(&graph, 0));
	node = add_allocation(graph, NULL, BYTES, &survivor);
	add_set(graph, node, survivor, 11);
	OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
	run(executable);
	OK(cuGraphExecDestroy(executable));
	OK(cuGraphDestroy(graph));
}

static atomic_int may_run;
static int waited_in_vain;

static void wait_for_program(void *data)
{
	time_t end = time(NULL) + 20;

	while (!may_run && time(NULL) < end)
		sched_yield();
	waited_in_vain = !may_run;
}

/* Nothing is left of what nobody has, and nothing waits for it: it may run on for long. */
static void come_and_go(void)
{
	uint64_t before = attribute(RESERVED);
	CUdeviceptr address;
	void *graph, *executable, *node;

	OK(cuGraphCreate(&graph, 0));
	node = add_allocation(graph, NULL, BYTES, &address);
	OK(cuGraphAddMemFreeNode(&node, graph, &node, 1, address));
	OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
	CHECK(attribute(RESERVED) - before == BYTES, "%lu bytes, with %lu before",
		attribute(RESERVED), before);
	may_run = 0;
	OK(cuLaunchHostFunc(stream, wait_for_program, NULL));
	OK(cuGraphLaunch(executable, stream));
	OK(cuGraphDestroy(graph));
	OK(cuGraphExecDestroy(executable));
	may_run = 1;
	OK(cuStreamSynchronize(stream));
	CHECK(!waited_in_vain, "the end of a graph waits for its work");
	CHECK(attribute(RESERVED) == before, "%lu bytes remain", attribute(RESERVED) - before);
	CHECK(cuMemFree_v2(address) != 0, "memory remains");
}

static void take_turn(void)
{
	check_built();
	check_captured();
	check_left();
	come_and_go();
	compare_words("survivor", survivor, COUNT, 11);
	turn++;
}

int main(void)
{
	void *module;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&stream, 1));
	OK(cuModuleLoadData(&module, "sim module"));
	OK(cuModuleGetFunction(&scale, module, "scale"));
	for (int i = 0; i < 3; i++)
		OK(cuMemAlloc_v2(&results[i], BYTES));
	make_built();
	make_captured();
	make_left();
	make_survivor();
	victim_take_turns(ROUNDS, take_turn, &turn);
	OK(cuMemFree_v2(survivor));
	return victim_done();
}
