/*
 * graphs [WHAT]: graphs of all kinds of nodes, built and captured, clones, and executable
 * graphs whose graph is gone or has changed since, or which were updated. After each SIGUSR1
 * all are launched, what they have left in memory is compared, and some are changed by handles
 * that the program has held from the beginning. WHAT is one that cannot be restored, held as
 * well.
 */
#include <sched.h>

#include "shared/cuda/graph_params.h"
#include "t/split/conditional_params.h"
#include "t/split/driver_victim.h"
#include "t/split/kernel_node.h"

#define COUNT   256
#define BUFFERS 4
#define ROUNDS  3
#define DEVICE  2 /* CU_MEMORYTYPE_... */
#define HOST    1

#define INVALID_VALUE 1
#define AUTO_FREE     1
#define PRIORITY      8 /* CU_LAUNCH_ATTRIBUTE_PRIORITY */
#define PROGRAMMATIC  1 /* port and type of an edge */

static void *context, *streams[2], *events[2], *recorded;
static void *count, *scale;    /* functions */
static void *library, *kernel; /* scale, of a library */
static CUdeviceptr buffers[BUFFERS];
static uint32_t model[BUFFERS][COUNT], host_words[COUNT];
static unsigned calls, expected_calls, turn;

static void *built, *built_exec, *copy, *copy_exec;
static void *start, *set, *multiply, *move, *call, *record; /* nodes of `built` */
static unsigned move_enabled = 1;
static void *changed, *changed_exec, *changed_node;
static void *captured_exec, *updated, *updated_exec, *updated_node;
static void *parent, *parent_exec, *child_node, *inner, *inner_node, *child_scale;
static void *appended, *appended_exec, *seen_graph, *seen_node;
static void *edged, *edges_of[3];

void victim_hurt(void)
{
	OK(cuGraphDestroyNode(move));
}

/* ---- what is expected ---- */

static void model_set(int b, uint32_t value)
{
	for (int i = 0; i < COUNT; i++)
		model[b][i] = value;
}

static void model_count(int b, uint32_t from)
{
	for (int i = 0; i < COUNT; i++)
		model[b][i] = from + i;
}

static void model_scale(int b, uint32_t by, uint32_t plus)
{
	for (int i = 0; i < COUNT; i++)
		model[b][i] = model[b][i] * by + plus;
}

static void model_copy(int to, int from)
{
	memcpy(model[to], model[from], sizeof(model[to]));
}

static void compare(const char *what)
{
	uint32_t words[COUNT];

	for (int b = 0; b < BUFFERS; b++) {
		OK(cuMemcpyDtoH_v2(words, buffers[b], sizeof(words)));
		for (int i = 0; i < COUNT; i++)
			if (words[i] != model[b][i]) {
				CHECK(0, "turn %u, %s: word %d of buffer %d is %u, not %u",
					turn, what, i, b, words[i], model[b][i]);
				break;
			}
	}
	CHECK(calls == expected_calls, "turn %u, %s: %u calls, not %u", turn, what, calls,
		expected_calls);
}

static void called(void *argument)
{
	calls += *(unsigned *)argument;
}

static unsigned one = 1, ten = 10;

static void run(void *executable)
{
	OK(cuGraphLaunch(executable, streams[0]));
	OK(cuStreamSynchronize(streams[0]));
}

/* ---- parameters ---- */

static struct graph_kernel kernel_params(
	void *function, struct kernel_arguments *a, int b, uint64_t x, uint64_t y)
{
	return kernel_node_params(function, COUNT, a, buffers[b], x, y);
}

static void *add_kernel(void *graph, void *after, void *function, int b, uint64_t x, uint64_t y)
{
	struct kernel_arguments a;
	struct graph_kernel k = kernel_params(function, &a, b, x, y);
	void *node = NULL;

	OK(cuGraphAddKernelNode_v2(&node, graph, &after, after != NULL, &k));
	return node;
}

static struct graph_memset set_params(int b, uint32_t value)
{
	return (struct graph_memset){.address = buffers[b],
		.value = value,
		.element = 4,
		.width = COUNT,
		.height = 1};
}

static struct graph_memcpy copy_params(int to, int from)
{
	return (struct graph_memcpy){.from = {.type = DEVICE, .device = buffers[from]},
		.to = {.type = DEVICE, .device = buffers[to]},
		.width = COUNT * 4,
		.height = 1,
		.depth = 1};
}

/* ---- built by hand, held with its nodes; and a clone ---- */

static void build(void)
{
	const struct graph_memset m = set_params(0, 7);
	const struct graph_memcpy c = copy_params(1, 0);
	const struct graph_host h = {(void *)called, &one};
	void *both[2];

	OK(cuGraphCreate(&built, 0));
	OK(cuGraphAddEmptyNode(&start, built, NULL, 0));
	OK(cuGraphAddMemsetNode(&set, built, &start, 1, &m, context));
	multiply = add_kernel(built, set, scale, 0, 3, 1);
	OK(cuGraphKernelNodeSetAttribute(multiply, PRIORITY, (int[16]){-2}));
	OK(cuGraphAddMemcpyNode(&move, built, &multiply, 1, &c, context));
	OK(cuGraphAddHostNode(&call, built, &start, 1, &h));
	both[0] = call;
	both[1] = move;
	OK(cuGraphAddEventRecordNode(&record, built, both, 2, recorded));
	OK(cuGraphInstantiateWithFlags(&built_exec, built, AUTO_FREE));
	OK(cuGraphClone(&copy, built));
}

static void model_built(uint32_t factor)
{
	model_set(0, 7);
	model_scale(0, factor, 1);
	if (move_enabled)
		model_copy(1, 0);
	expected_calls++;
}

static void check_nodes(void)
{
	void *const wanted[] = {start, set, multiply, move, call, record};
	void *nodes[8] = {NULL}, *roots[2], *depends[2];
	size_t n = 8, root_count = 2, depend_count = 2;
	uint64_t flags = 0, edges[2];
	int value[16] = {0}, type = -1;

	OK(cuGraphGetNodes(built, nodes, &n));
	CHECK(n == 6 && !memcmp(nodes, wanted, sizeof(wanted)), "%zu nodes, or others", n);
	OK(cuGraphGetRootNodes(built, roots, &root_count));
	CHECK(root_count == 1 && roots[0] == start, "%zu roots", root_count);
	OK(cuGraphNodeGetDependencies_v2(record, depends, edges, &depend_count));
	CHECK(depend_count == 2 && depends[0] == call && depends[1] == move, "%zu before it",
		depend_count);
	OK(cuGraphNodeGetType(move, &type));
	CHECK(type == GRAPH_MEMCPY, "a copy is of type %d", type);
	OK(cuGraphKernelNodeGetAttribute(multiply, PRIORITY, value));
	CHECK(value[0] == -2, "priority %d", value[0]);
	OK(cuGraphExecGetFlags(built_exec, &flags));
	CHECK(flags == AUTO_FREE, "flags %lu", flags);
	OK(cuEventQuery(recorded));
}

static void check_kernel(void)
{
	struct graph_kernel k;

	OK(cuGraphKernelNodeGetParams_v2(multiply, &k));
	CHECK(k.function == scale, "function %p, not %p", k.function, scale);
	CHECK(*(uint64_t *)k.params[1] == 3, "times %lu", *(uint64_t *)k.params[1]);
	CHECK(k.grid[0] == COUNT / 32, "%u blocks", k.grid[0]);
}

/* Nothing that is done to the executable changes the graph, nor the other way round. */
static void turn_built(void)
{
	struct kernel_arguments a;
	struct graph_kernel k = kernel_params(scale, &a, 0, 3 + turn, 1);
	unsigned enabled = 0;

	run(built_exec);
	model_built(turn ? 3 + turn - 1 : 3);
	check_nodes();
	check_kernel();
	OK(cuGraphExecKernelNodeSetParams_v2(built_exec, multiply, &k));
	OK(cuGraphNodeGetEnabled(built_exec, move, &enabled));
	CHECK(enabled == move_enabled, "enabled: %u", enabled);
	move_enabled = !move_enabled;
	OK(cuGraphNodeSetEnabled(built_exec, move, move_enabled));
}

static void turn_copy(void)
{
	struct kernel_arguments a;
	struct graph_kernel k = kernel_params(scale, &a, 0, 5, turn);
	void *node = NULL;

	OK(cuGraphNodeFindInClone(&node, multiply, copy));
	OK(cuGraphKernelNodeSetParams_v2(node, &k));
	if (copy_exec)
		OK(cuGraphExecDestroy(copy_exec));
	OK(cuGraphInstantiateWithFlags(&copy_exec, copy, 0));
	run(copy_exec);
	model_set(0, 7);
	model_scale(0, 5, turn);
	model_copy(1, 0);
	expected_calls++;
}

/* ---- whose graph has changed since ---- */

static void make_changed(void)
{
	void *dead_node;

	OK(cuGraphCreate(&changed, 0));
	changed_node = add_kernel(changed, NULL, count, 2, 100, 0);
	dead_node = add_kernel(changed, changed_node, scale, 2, 2, 5);
	OK(cuGraphInstantiateWithFlags(&changed_exec, changed, 0));
	OK(cuGraphDestroyNode(dead_node));
	add_kernel(changed, changed_node, scale, 2, 9, 9);
}

static void turn_changed(void)
{
	struct kernel_arguments a;
	struct graph_kernel k = kernel_params(count, &a, 2, 100 + turn, 0);

	OK(cuGraphExecKernelNodeSetParams_v2(changed_exec, changed_node, &k));
	run(changed_exec);
	model_count(2, 100 + turn);
	model_scale(2, 2, 5);
}

/* ---- captured, on two streams ---- */

static void launch(void *function, int b, uint64_t x, uint64_t y, void *stream)
{
	struct kernel_arguments a;
	struct graph_kernel k = kernel_params(function, &a, b, x, y);

	OK(cuLaunchKernel(function, k.grid[0], 1, 1, 32, 1, 1, 0, stream, a.pointers, NULL));
}

/* By a kernel of a library and copies on the second stream. */
static void *capture(uint32_t by)
{
	void *graph = NULL;

	OK(cuStreamBeginCapture_v2(streams[0], 2));
	OK(cuMemsetD32Async(buffers[3], by, COUNT, streams[0]));
	OK(cuEventRecord(events[0], streams[0]));
	OK(cuStreamWaitEvent(streams[1], events[0], 0));
	launch(kernel, 3, by, 1, streams[1]);
	launch(count, 1, by, 0, streams[0]);
	OK(cuEventRecord(events[1], streams[1]));
	OK(cuStreamWaitEvent(streams[0], events[1], 0));
	OK(cuMemcpyDtoDAsync_v2(buffers[2], buffers[3], COUNT * 4, streams[0]));
	OK(cuMemcpyDtoHAsync_v2(host_words, buffers[1], sizeof(host_words), streams[0]));
	OK(cuLaunchHostFunc(streams[0], called, &ten));
	OK(cuStreamEndCapture(streams[0], &graph));
	return graph;
}

static void model_captured(uint32_t by)
{
	model_set(3, by);
	model_scale(3, by, 1);
	model_count(1, by);
	model_copy(2, 3);
	expected_calls += 10;
}

static void make_captured(void)
{
	void *graph = capture(11);

	OK(cuGraphInstantiateWithFlags(&captured_exec, graph, 0));
	OK(cuGraphDestroy(graph));
	updated = capture(1);
	OK(cuGraphInstantiateWithFlags(&updated_exec, updated, 0));
}

static void turn_captured(void)
{
	memset(host_words, 0, sizeof(host_words));
	run(captured_exec);
	model_captured(11);
	CHECK(!memcmp(host_words, model[1], sizeof(host_words)), "turn %u: what was copied",
		turn);
}

/* Every second turn by a whole graph, which is gone then; else node by node. */
static void turn_updated(void)
{
	struct {
		uint64_t result;
		void *node, *from;
	} result;
	void *graph = capture(20 + turn), *nodes[8];
	struct graph_memset m = set_params(3, 40 + turn);
	size_t n = 8;

	run(updated_exec);
	model_captured(turn ? 20 + turn - 1 : 1);
	if (turn)
		model_set(3, 40 + turn - 1), model_scale(3, 20 + turn - 1, 1), model_copy(2, 3);
	OK(cuGraphExecUpdate_v2(updated_exec, graph, &result));
	OK(cuGraphDestroy(graph));
	OK(cuGraphGetNodes(updated, nodes, &n));
	CHECK(!updated_node || updated_node == nodes[0], "another handle for the same node");
	updated_node = nodes[0];
	OK(cuGraphExecMemsetNodeSetParams(updated_exec, nodes[0], &m, context));
}

/* ---- children ---- */

static void make_parent(void)
{
	void *child, *grandchild, *node;
	size_t n = 1;

	OK(cuGraphCreate(&grandchild, 0));
	add_kernel(grandchild, NULL, scale, 0, 2, 0);
	OK(cuGraphCreate(&child, 0));
	OK(cuGraphAddChildGraphNode(&node, child, NULL, 0, grandchild));
	add_kernel(child, node, scale, 0, 1, 3);
	OK(cuGraphCreate(&parent, 0));
	node = add_kernel(parent, NULL, count, 0, 1, 0);
	OK(cuGraphAddChildGraphNode(&child_node, parent, &node, 1, child));
	OK(cuGraphChildGraphNodeGetGraph(child_node, &inner));
	CHECK(inner != child, "a child that is no clone");
	OK(cuGraphGetRootNodes(inner, &inner_node, &n));
	OK(cuGraphInstantiateWithFlags(&parent_exec, parent, 0));
	OK(cuGraphDestroy(child));
	OK(cuGraphDestroy(grandchild));
}

/* The child's kernel by a graph of the same shape; then one node of it. */
static void turn_parent(void)
{
	struct kernel_arguments a;
	struct graph_kernel k;
	void *child, *grandchild, *node, *graph = NULL, *nodes[4];
	size_t n = 4;

	run(parent_exec);
	model_count(0, 1);
	model_scale(0, turn ? 4 + turn : 2, 0);
	model_scale(0, 1, turn ? 50 + turn : 3);
	OK(cuGraphChildGraphNodeGetGraph(child_node, &graph));
	CHECK(graph == inner, "another graph inside");
	OK(cuGraphGetNodes(inner, nodes, &n));
	CHECK(n == 2 && nodes[0] == inner_node, "another node inside");
	CHECK(!child_scale || child_scale == nodes[1], "another kernel inside");
	child_scale = nodes[1];
	OK(cuGraphCreate(&grandchild, 0));
	add_kernel(grandchild, NULL, scale, 0, 5 + turn, 0);
	OK(cuGraphCreate(&child, 0));
	OK(cuGraphAddChildGraphNode(&node, child, NULL, 0, grandchild));
	add_kernel(child, node, scale, 0, 1, 3);
	OK(cuGraphExecChildGraphNodeSetParams(parent_exec, child_node, child));
	k = kernel_params(scale, &a, 0, 1, 51 + turn);
	OK(cuGraphExecKernelNodeSetParams_v2(parent_exec, child_scale, &k));
	OK(cuGraphDestroy(child));
	OK(cuGraphDestroy(grandchild));
}

/* ---- captured to a graph that is there, whose nodes are asked for meanwhile ---- */

static void make_appended(void)
{
	struct kernel_arguments a;
	struct graph_kernel k = kernel_params(NULL, &a, 3, 6, 0);
	uint64_t size = sizeof(a.words), id, operations[6] = {0}; /* CUstreamBatchMemOpParams */
	void *extra[] = {(void *)1, a.words, (void *)2, &size, NULL}, *first, *graph = NULL;
	struct graph_batch batch = {.context = context, .count = 1, .operations = operations};
	void **nodes = NULL;
	size_t n = 0;
	int status = 0;

	OK(cuGraphCreate(&appended, 0));
	first = add_kernel(appended, NULL, count, 3, 9, 0);
	k.params = NULL;
	k.extra = extra;
	k.kernel = kernel;
	OK(cuStreamBeginCaptureToGraph(streams[0], appended, &first, NULL, 1, 2));
	launch(scale, 3, 2, 2, streams[0]);
	OK(cuStreamGetCaptureInfo_v2(streams[0], &status, &id, &graph, &nodes, &n));
	CHECK(status == 1 && graph == appended && n == 1, "status %d, %zu nodes", status, n);
	seen_node = nodes[0];
	OK(cuGraphAddKernelNode_v2(&first, appended, &seen_node, 1, &k));
	OK(cuStreamUpdateCaptureDependencies(streams[0], &first, 1, 1));
	OK(cuMemsetD32Async(buffers[2], 3, COUNT, streams[0]));
	OK(cuStreamEndCapture(streams[0], &graph));
	CHECK(graph == appended, "another graph");
	operations[0] = 5; /* CU_STREAM_MEM_OP_WRITE_VALUE_64 */
	operations[1] = buffers[2] + 4;
	operations[2] = 77;
	OK(cuGraphGetNodes(appended, (void *[4]){NULL}, &(size_t){4}));
	OK(cuGraphAddBatchMemOpNode(&first, appended, &seen_node, 1, &batch));
	OK(cuGraphInstantiateWithFlags(&appended_exec, appended, 0));
	OK(cuStreamBeginCapture_v2(streams[1], 2));
	OK(cuStreamGetCaptureInfo_v2(streams[1], &status, &id, &seen_graph, NULL, NULL));
	OK(cuStreamEndCapture(streams[1], &graph));
	CHECK(graph == seen_graph, "not the graph that it was");
}

static void turn_appended(void)
{
	int type = -1;

	run(appended_exec);
	model_count(3, 9);
	model_scale(3, 2, 2);
	model_scale(3, 6, 0);
	model_set(2, 3);
	/* It is not told in which order with that. */
	OK(cuMemcpyDtoH_v2(&model[2][1], buffers[2] + 4, 4));
	CHECK(model[2][1] == 77 || model[2][1] == 3, "%u was written", model[2][1]);
	OK(cuGraphNodeGetType(seen_node, &type));
	CHECK(type == GRAPH_KERNEL, "a kernel is of type %d", type);
	OK(cuGraphGetNodes(seen_graph, NULL, &(size_t){0}));
}

/* ---- edges ---- */

static void make_edged(void)
{
	const uint64_t data[2] = {PROGRAMMATIC | PROGRAMMATIC << 16, 0};

	OK(cuGraphCreate(&edged, 0));
	for (int i = 0; i < 3; i++)
		edges_of[i] = add_kernel(edged, NULL, scale, 3, 1, 0);
	/* Against the order of nodes. */
	OK(cuGraphAddDependencies_v2(edged, (void *[]){edges_of[2], edges_of[2]},
		(void *[]){edges_of[0], edges_of[1]}, data, 2));
	OK(cuGraphAddDependencies_v2(edged, &edges_of[1], &edges_of[0], (uint64_t[]){0}, 1));
	OK(cuGraphRemoveDependencies(edged, &edges_of[1], &edges_of[0], 1));
}

static void turn_edged(void)
{
	void *from[4], *to[4];
	uint64_t data[4];
	size_t n = 4;

	OK(cuGraphGetEdges_v2(edged, from, to, data, &n));
	CHECK(n == 2 && from[0] == edges_of[2] && to[0] == edges_of[0] &&
			from[1] == edges_of[2] && to[1] == edges_of[1],
		"%zu edges, or others", n);
	CHECK(data[0] == (PROGRAMMATIC | PROGRAMMATIC << 16) && !data[1], "data %lx, %lx",
		data[0], data[1]);
}

/* ---- what cannot be restored ---- */

/* On a driver that does not number them from 1 on. */
static void hold_handle(void)
{
	uint64_t handle;
	void *graph;

	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphConditionalHandleCreate(&handle, graph, context, 0, 0));
}

/* Of a graph in a conditional node. */
static void hold_user_object(void)
{
	struct conditional_params p = {
		.node_type = GRAPH_CONDITIONAL, .count = 1, .context = context};
	void *graph, *node, *object;

	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphConditionalHandleCreate(&p.handle, graph, context, 0, 1));
	OK(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &p));
	OK(cuUserObjectCreate(&object, &one, called, 1, 1));
	OK(cuGraphRetainUserObject(p.graphs[0], object, 1, 1));
}

/* Whose the references were that an exchange of parameters takes away is not known. */
static void hold_exchanged(void)
{
	void *child, *graph, *node, *executable, *object;

	OK(cuUserObjectCreate(&object, &one, called, 1, 1));
	OK(cuGraphCreate(&child, 0));
	OK(cuGraphRetainUserObject(child, object, 1, 1));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
	OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
	OK(cuGraphExecChildGraphNodeSetParams(executable, node, child));
}

/* On a driver that does not let a clone of ours give its references back. */
static void hold_kept(void)
{
	void *graph, *executable, *object;

	OK(cuUserObjectCreate(&object, &one, called, 1, 1));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphRetainUserObject(graph, object, 1, 1));
	OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
}

static atomic_int may_end;

static void end_later(void *data)
{
	time_t end = time(NULL) + 60;

	(void)data;
	while (!may_end && time(NULL) < end)
		sched_yield();
}

/* Longer than what is half done for a moment only. */
static void end_slowly(void *data)
{
	uint64_t end = victim_now() + 3 * SEC;

	(void)data;
	while (victim_now() < end)
		sched_yield();
}

static void hold_slow(void)
{
	void *object;

	OK(cuUserObjectCreate(&object, NULL, end_slowly, 1, 1));
	OK(cuUserObjectRelease(object, 1));
}

static void hold_ending(void)
{
	void *object;

	OK(cuUserObjectCreate(&object, NULL, end_later, 1, 1));
	OK(cuUserObjectRelease(object, 1));
}

static void hold_freed(void)
{
	struct graph_memset m = set_params(0, 1);
	void *graph, *node;
	CUdeviceptr freed;

	OK(cuMemAlloc_v2(&freed, 4 * COUNT));
	m.address = freed;
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &m, context));
	OK(cuMemFree_v2(freed));
}

static void hold_device_launch(void)
{
	void *graph, *executable;

	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphInstantiateWithFlags(&executable, graph, 4));
}

static void hold_capture(void)
{
	OK(cuStreamBeginCapture_v2(streams[1], 2));
}

static const struct {
	const char *name;
	void (*hold)(void);
} strange[] = {
	{"handle", hold_handle},
	{"user", hold_user_object},
	{"exchanged", hold_exchanged},
	{"kept", hold_kept},
	{"ending", hold_ending},
	{"slow", hold_slow},
	{"freed", hold_freed},
	{"device", hold_device_launch},
	{"capture", hold_capture},
};

/* ---- */

static void prepare(void)
{
	void *module;

	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	for (int i = 0; i < 2; i++) {
		OK(cuStreamCreate(&streams[i], 1));
		OK(cuEventCreate(&events[i], 2));
	}
	OK(cuEventCreate(&recorded, 0));
	OK(cuModuleLoadData(&module, "sim module"));
	OK(cuModuleGetFunction(&count, module, "count"));
	OK(cuModuleGetFunction(&scale, module, "scale"));
	OK(cuLibraryLoadData(&library, "sim module\n", NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&kernel, library, "scale"));
	for (int i = 0; i < BUFFERS; i++) {
		OK(cuMemAlloc_v2(&buffers[i], sizeof(model[i])));
		OK(cuMemsetD32_v2(buffers[i], 0, COUNT));
	}
}

static void take_turn(void)
{
	turn_built();
	compare("built");
	turn_copy();
	compare("a clone");
	turn_changed();
	compare("changed since");
	turn_captured();
	compare("captured");
	turn_updated();
	compare("updated");
	turn_parent();
	compare("with children");
	turn_appended();
	compare("captured to a graph");
	turn_edged();
	turn++;
}

int main(int argc, char **argv)
{
	OK(cuInit(0));
	prepare();
	build();
	make_changed();
	make_captured();
	make_parent();
	make_appended();
	make_edged();
	take_turn();
	for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++)
		if (argc > 1 && !strcmp(argv[1], strange[i].name))
			strange[i].hold();
	victim_ready();
	for (int i = 0; i < (argc > 1 ? 1 : ROUNDS); i++) {
		victim_wait();
		may_end = 1;
		if (argc < 2 || strcmp(argv[1], "capture"))
			take_turn();
		victim_say("turn %u", turn);
	}
	return victim_done();
}
