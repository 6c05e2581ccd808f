/*
 * conditional: graphs with conditional nodes of all kinds, nested, built and captured, whose bodies and
 * nodes the program holds; executable ones whose graph is there, is gone, has changed since, or which
 * were updated. After each SIGUSR1 all are launched, what they have left in memory is compared, and
 * some are changed.
 */
#include "shared/cuda/graph_params.h"
#include "t/split/conditional_params.h"
#include "t/split/driver_victim.h"
#include "t/split/kernel_node.h"

#define COUNT         64
#define BUFFERS       3
#define ROUNDS        3
#define INVALID       1
#define NOT_SUPPORTED 801

/* CUgraphConditionalNodeType, and a flag of handles */
enum { IF, WHILE, SWITCH };
#define ASSIGN_DEFAULT 1

static void *context, *stream, *aside, *count, *scale, *choose;
static CUdeviceptr buffers[BUFFERS], words; /* words: rounds left, which branch */
static uint32_t model[BUFFERS][COUNT];
static unsigned turn;

/* ---- nodes ---- */

static struct graph_kernel kernel_params(
	void *function, struct kernel_arguments *a, uint64_t x, uint64_t y, uint64_t z)
{
	return kernel_node_params(function, COUNT, a, x, y, z);
}

static void *add_kernel(
	void *graph, void *after, void *function, uint64_t x, uint64_t y, uint64_t z)
{
	struct kernel_arguments a;
	struct graph_kernel k = kernel_params(function, &a, x, y, z);
	void *node = NULL;

	OK(cuGraphAddKernelNode_v2(&node, graph, &after, after != NULL, &k));
	return node;
}

static void *add_conditional(
	void *graph, void *after, uint64_t handle, int type, unsigned bodies, void ***out)
{
	struct conditional_params p = {.node_type = GRAPH_CONDITIONAL,
		.handle = handle,
		.type = type,
		.count = bodies,
		.context = context};
	void *node = NULL;

	OK(cuGraphAddNode_v2(&node, graph, &after, NULL, after != NULL, &p));
	*out = p.graphs;
	return node;
}

static uint64_t new_handle(void *graph, unsigned value, unsigned flags)
{
	uint64_t handle = 0;

	OK(cuGraphConditionalHandleCreate(&handle, graph, context, value, flags));
	return handle;
}

/* ---- the graph ----
 *
 * While words[0], which is one less each time, is not 0: scale, and one of two branches. Then one
 * of three by what the graph says.
 */

struct program {
	void *graph, *executable;
	void **loop, **branches, **cases; /* bodies, as the driver has given them */
	void *step, *child;               /* nodes in a body */
	void *first, *again, *which;      /* nodes of the graph */
	uint64_t handles[3];
	/* What it does: */
	uint32_t factor, way, enabled;
};

static void fill_branches(struct program *p, void **branches)
{
	struct graph_memset m = {
		.address = buffers[1], .value = 9, .element = 4, .width = 4, .height = 1};
	void *inner, *node;

	add_kernel(branches[0], NULL, scale, buffers[0], 1, 100);
	OK(cuGraphCreate(&inner, 0));
	add_kernel(inner, NULL, scale, buffers[2], 2, 1);
	OK(cuGraphAddMemsetNode(&node, branches[1], NULL, 0, &m, context));
	OK(cuGraphAddChildGraphNode(&p->child, branches[1], &node, 1, inner));
	OK(cuGraphDestroy(inner));
	/* Captured to the body. */
	OK(cuStreamBeginCaptureToGraph(aside, branches[1], &p->child, NULL, 1, 2));
	OK(cuMemsetD32Async(buffers[1] + 4, 8, 4, aside));
	OK(cuStreamEndCapture(aside, &inner));
	CHECK(inner == branches[1], "another graph than the body was captured to");
}

static void fill_loop(struct program *p, void *loop)
{
	void *decide, *last;

	if (!p->handles[2])
		p->handles[2] = new_handle(loop, 0, 0);
	p->step = add_kernel(loop, NULL, scale, buffers[0], p->factor, 1);
	decide = add_kernel(loop, p->step, choose, p->handles[2], words + 4, 0);
	last = add_conditional(loop, decide, p->handles[2], IF, 2, &p->branches);
	fill_branches(p, p->branches);
	add_kernel(loop, last, choose, p->handles[0], words, 1);
}

static void add_loop(struct program *p)
{
	p->again = add_conditional(p->graph, p->first, p->handles[0], WHILE, 1, &p->loop);
	fill_loop(p, p->loop[0]);
}

static void make_handles(struct program *p, uint32_t way)
{
	p->way = way;
	p->handles[0] = new_handle(p->graph, 1, ASSIGN_DEFAULT);
	p->handles[1] = new_handle(p->graph, way, ASSIGN_DEFAULT);
	CHECK(p->handles[0] == 1 && p->handles[1] == 2, "handles %lu and %lu", p->handles[0],
		p->handles[1]);
}

static void fill(struct program *p)
{
	add_loop(p);
	p->which = add_conditional(p->graph, p->again, p->handles[1], SWITCH, 3, &p->cases);
	for (int i = 0; i < 3; i++)
		add_kernel(p->cases[i], NULL, scale, buffers[1], 1, 10 * (i + 1));
}

static void build(struct program *p, uint32_t factor, uint32_t way)
{
	*p = (struct program){.factor = factor, .enabled = 1};
	OK(cuGraphCreate(&p->graph, 0));
	make_handles(p, way);
	p->first = add_kernel(p->graph, NULL, count, buffers[0], 5, 0);
	fill(p);
}

/* Into a capture in progress, as the driver tells of it. */
static void capture(struct program *p, uint32_t factor, uint32_t way)
{
	struct kernel_arguments a;
	const struct graph_kernel k = kernel_params(count, &a, buffers[0], 5, 0);
	void **nodes = NULL, *graph;
	uint64_t id;
	size_t n = 0;
	int status;

	*p = (struct program){.factor = factor, .enabled = 1};
	OK(cuStreamBeginCapture_v2(stream, 2));
	OK(cuLaunchKernel(
		count, k.grid[0], 1, 1, k.block[0], 1, 1, 0, stream, a.pointers, NULL));
	OK(cuStreamGetCaptureInfo_v2(stream, &status, &id, &p->graph, &nodes, &n));
	CHECK(n == 1, "%zu nodes are captured", n);
	p->first = nodes[0];
	make_handles(p, way);
	fill(p);
	OK(cuStreamUpdateCaptureDependencies(stream, &p->which, 1, 1));
	OK(cuStreamEndCapture(stream, &graph));
	CHECK(graph == p->graph, "another graph");
}

static void instantiate(struct program *p)
{
	OK(cuGraphInstantiateWithFlags(&p->executable, p->graph, 0));
}

/* ---- what is expected ---- */

static void model_scale(int b, uint32_t by, uint32_t plus)
{
	for (int i = 0; i < COUNT; i++)
		model[b][i] = model[b][i] * by + plus;
}

static void model_round(const struct program *p, uint32_t branch)
{
	if (p->enabled)
		model_scale(0, p->factor, 1);
	if (branch) {
		model_scale(0, 1, 100);
		return;
	}
	for (int i = 0; i < 5; i++)
		model[1][i] = i ? 8 : 9;
	model_scale(2, 2, 1);
}

static void compare(const char *what)
{
	uint32_t found[COUNT];

	for (int b = 0; b < BUFFERS; b++) {
		OK(cuMemcpyDtoH_v2(found, buffers[b], sizeof(found)));
		for (int i = 0; i < COUNT; i++)
			if (found[i] != model[b][i]) {
				CHECK(0, "turn %u, %s: word %d of buffer %d is %u, not %u",
					turn, what, i, b, found[i], model[b][i]);
				break;
			}
	}
}

static void run(const struct program *p, const char *what)
{
	const uint32_t rounds = 2 + turn, branch = turn % 2, told[2] = {rounds, branch};

	OK(cuMemcpyHtoD_v2(words, told, sizeof(told)));
	OK(cuGraphLaunch(p->executable, stream));
	OK(cuStreamSynchronize(stream));
	for (int i = 0; i < COUNT; i++)
		model[0][i] = 5 + i;
	for (uint32_t i = 0; i < rounds; i++)
		model_round(p, branch);
	if (p->way < 3)
		model_scale(1, 1, 10 * (p->way + 1));
	compare(what);
}

/* ---- the programs ---- */

static struct program held, gone, changed, updated, idle, rebuilt, captured;
static void *growing;
static unsigned grown;

void victim_hurt(void)
{
	OK(cuGraphDestroyNode(held.step));
}

/* What the program holds is what it was. */
static void check_held(void)
{
	struct graph_kernel k = {0};
	void *nodes[8], *graph = NULL, *executable;
	size_t n = 8;
	int type = -1;

	OK(cuGraphGetNodes(held.loop[0], nodes, &n));
	CHECK(n == 4 && nodes[0] == held.step, "%zu nodes in the body, or others", n);
	OK(cuGraphNodeGetType(nodes[2], &type));
	CHECK(type == GRAPH_CONDITIONAL, "the node inside is of type %d", type);
	OK(cuGraphKernelNodeGetParams_v2(nodes[1], &k));
	CHECK(k.params && *(uint64_t *)k.params[0] == 3, "another handle inside");
	OK(cuGraphChildGraphNodeGetGraph(held.child, &graph));
	n = 8;
	OK(cuGraphGetNodes(graph, nodes, &n));
	CHECK(n == 1, "%zu nodes in the child", n);
	CHECK(cuGraphDestroy(held.branches[0]) == INVALID, "a body was destroyed");
	CHECK(cuGraphClone(&graph, held.loop[0]) == NOT_SUPPORTED, "a body was cloned");
	if (!turn)
		CHECK(cuGraphInstantiateWithFlags(&executable, held.graph, 0) == NOT_SUPPORTED,
			"two executables");
}

static void change_step(struct program *p, uint32_t factor)
{
	struct kernel_arguments a;
	struct graph_kernel k = kernel_params(scale, &a, buffers[0], factor, 1);

	OK(cuGraphExecKernelNodeSetParams_v2(p->executable, p->step, &k));
	p->factor = factor;
}

static void turn_held(void)
{
	unsigned enabled = 2;

	run(&held, "a loop");
	check_held();
	change_step(&held, 7 + turn);
	OK(cuGraphNodeGetEnabled(held.executable, held.step, &enabled));
	CHECK(enabled == held.enabled, "enabled: %u", enabled);
	held.enabled = !held.enabled;
	OK(cuGraphNodeSetEnabled(held.executable, held.step, held.enabled));
}

static void make_changed(void)
{
	build(&changed, 5, 1);
	instantiate(&changed);
	add_kernel(changed.loop[0], changed.step, scale, buffers[0], 11, 11);
	OK(cuGraphDestroyNode(changed.child));
}

static void turn_changed(void)
{
	run(&changed, "changed since");
	change_step(&changed, 20 + turn);
}

/* By a whole graph, which is gone then; every second turn by one node, too. */
static void turn_updated(void)
{
	struct program p;
	struct {
		uint64_t result;
		void *node, *from;
	} result;

	run(&updated, "updated");
	build(&p, 30 + turn, turn % 4);
	OK(cuGraphExecUpdate_v2(updated.executable, p.graph, &result));
	OK(cuGraphDestroy(p.graph));
	updated.factor = p.factor;
	updated.way = p.way;
	if (turn % 2)
		change_step(&updated, 40 + turn);
}

static void turn_idle(void)
{
	instantiate(&idle);
	run(&idle, "instantiated just now");
	OK(cuGraphExecDestroy(idle.executable));
}

/* The loop, with all that is inside, is destroyed and there again, with the same handles. */
static void turn_rebuilt(void)
{
	OK(cuGraphDestroyNode(rebuilt.again));
	add_loop(&rebuilt);
	OK(cuGraphAddDependencies_v2(
		rebuilt.graph, &rebuilt.again, &rebuilt.which, (uint64_t[]){0}, 1));
	instantiate(&rebuilt);
	run(&rebuilt, "with another loop");
	OK(cuGraphExecDestroy(rebuilt.executable));
}

/* Handles are numbered on, and there is none without its node. */
static void turn_growing(void)
{
	uint64_t handle = new_handle(growing, 1, ASSIGN_DEFAULT);
	void **body, *executable;

	CHECK(handle == ++grown, "handle %lu is given out as number %u", handle, grown);
	CHECK(cuGraphInstantiateWithFlags(&executable, growing, 0) == INVALID,
		"instantiated with a handle that nothing uses");
	add_conditional(growing, NULL, handle, IF, 1, &body);
	add_kernel(body[0], NULL, scale, buffers[2], 1, grown);
	OK(cuGraphInstantiateWithFlags(&executable, growing, 0));
	OK(cuGraphLaunch(executable, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuGraphExecDestroy(executable));
	model_scale(2, 1, grown * (grown + 1) / 2);
	compare("with one more node");
}

/* ---- */

static void prepare(void)
{
	void *module;

	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&stream, 1));
	OK(cuStreamCreate(&aside, 1));
	OK(cuModuleLoadData(&module, "sim module"));
	OK(cuModuleGetFunction(&count, module, "count"));
	OK(cuModuleGetFunction(&scale, module, "scale"));
	OK(cuModuleGetFunction(&choose, module, "choose"));
	OK(cuMemAlloc_v2(&words, 8));
	for (int i = 0; i < BUFFERS; i++) {
		OK(cuMemAlloc_v2(&buffers[i], sizeof(model[i])));
		OK(cuMemsetD32_v2(buffers[i], 0, COUNT));
	}
}

static void take_turn(void)
{
	turn_held();
	run(&gone, "whose graph is gone");
	run(&captured, "captured");
	turn_changed();
	turn_updated();
	turn_idle();
	turn_rebuilt();
	turn_growing();
	turn++;
}

int main(void)
{
	OK(cuInit(0));
	prepare();
	build(&held, 3, 0);
	instantiate(&held);
	build(&gone, 4, 2);
	instantiate(&gone);
	OK(cuGraphDestroy(gone.graph));
	capture(&captured, 9, 1);
	instantiate(&captured);
	OK(cuGraphDestroy(captured.graph));
	make_changed();
	build(&updated, 6, 3);
	instantiate(&updated);
	build(&idle, 2, 1);
	build(&rebuilt, 8, 0);
	OK(cuGraphCreate(&growing, 0));
	victim_take_turns(ROUNDS, take_turn, &turn);
	return victim_done();
}
