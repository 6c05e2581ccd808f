/*
 * graphs ROUNDS: graphs of all kinds of nodes that can be restored, in use the whole time while
 * they are checkpointed and restarted: built, captured on two streams with cuBLAS, cloned,
 * executable with their graph gone or changed since, updated node by node, as a whole and by
 * child; and with conditional nodes of all kinds, nested. Prints what is in memory, and what the
 * driver says of nodes by handles that were held from the beginning.
 */
#include <cublas_v2.h>
#include <cuda.h>
#include <stdint.h>
#include <string.h>

#include "t/gpu/gpu.h"

#define DRIVER(call)                                                                           \
	do {                                                                                   \
		CUresult result_ = (call);                                                     \
		if (result_) {                                                                 \
			printf("%s:%d: %s: error %d\n", __FILE__, __LINE__, #call, result_);   \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

#define COUNT (1 << 12)
#define SIDE  64 /* of matrices: COUNT elements */

__global__ void step(uint32_t *a, uint32_t by, uint32_t plus)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	a[i] = a[i] * by + plus + i;
}

__global__ void fold(const float *from, float *to, int count)
{
	float sum = 0;

	for (int i = threadIdx.x; i < count; i += blockDim.x)
		sum += from[i];
	atomicAdd(to, sum); /* one block of one warp: in one order */
}

static cudaStream_t streams[2];
static cudaEvent_t forked, joined, recorded;
static uint32_t *words, *others, *pinned;
static float *matrices[3], *total;
static cublasHandle_t blas;
static unsigned long long calls;

static void CUDART_CB call(void *argument)
{
	calls += *(unsigned *)argument;
}

static unsigned one = 1, ten = 10;

static uint32_t checksum(void)
{
	static uint32_t host[COUNT];
	uint32_t sum = 0;

	OK(cudaMemcpy(host, words, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++)
		sum = sum * 31 + host[i];
	OK(cudaMemcpy(host, others, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++)
		sum = sum * 31 + host[i];
	OK(cudaMemcpy(host, matrices[2], sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++)
		sum = sum * 31 + host[i];
	return sum * 31 + pinned[7];
}

static cudaKernelNodeParams kernel_params(void **arguments)
{
	cudaKernelNodeParams k = {0};

	k.func = (void *)step;
	k.gridDim = dim3(COUNT / 256);
	k.blockDim = dim3(256);
	k.kernelParams = arguments;
	return k;
}

static cudaGraphNode_t add_step(
	cudaGraph_t graph, cudaGraphNode_t after, uint32_t *a, uint32_t by, uint32_t plus)
{
	void *arguments[] = {&a, &by, &plus};
	const cudaKernelNodeParams k = kernel_params(arguments);
	cudaGraphNode_t node;

	OK(cudaGraphAddKernelNode(&node, graph, after ? &after : NULL, after != NULL, &k));
	return node;
}

/* ---- by hand ---- */

static cudaGraph_t built, copy, child, parent, changed;
static cudaGraphExec_t built_exec, copy_exec, parent_exec, changed_exec;
static cudaGraphNode_t set_node, step_node, copy_node, child_node, changed_node, inner_node;

static void build(void)
{
	cudaMemsetParams m = {0};
	cudaHostNodeParams h = {call, &one};
	cudaGraphNode_t host, start, record, both[2];

	m.dst = others;
	m.value = 5;
	m.elementSize = 4;
	m.width = COUNT / 2;
	m.height = 1;
	OK(cudaGraphCreate(&built, 0));
	OK(cudaGraphAddEmptyNode(&start, built, NULL, 0));
	OK(cudaGraphAddMemsetNode(&set_node, built, &start, 1, &m));
	step_node = add_step(built, set_node, words, 3, 1);
	OK(cudaGraphAddMemcpyNode1D(&copy_node, built, &step_node, 1, others + COUNT / 2, words,
		COUNT * 2, cudaMemcpyDeviceToDevice));
	OK(cudaGraphAddHostNode(&host, built, &start, 1, &h));
	both[0] = host;
	both[1] = copy_node;
	OK(cudaGraphAddEventRecordNode(&record, built, both, 2, recorded));
	OK(cudaGraphInstantiate(&built_exec, built, 0));
	OK(cudaGraphClone(&copy, built));
	OK(cudaGraphInstantiate(&copy_exec, copy, 0));
}

static void build_parent(void)
{
	cudaGraph_t inner;
	cudaGraphNode_t first;
	size_t n = 1;

	OK(cudaGraphCreate(&child, 0));
	first = add_step(child, NULL, others, 7, 3);
	add_step(child, first, others, 1, 1);
	OK(cudaGraphCreate(&parent, 0));
	first = add_step(parent, NULL, words, 5, 2);
	OK(cudaGraphAddChildGraphNode(&child_node, parent, &first, 1, child));
	OK(cudaGraphChildGraphNodeGetGraph(child_node, &inner));
	OK(cudaGraphGetRootNodes(inner, &inner_node, &n));
	OK(cudaGraphInstantiate(&parent_exec, parent, 0));
	OK(cudaGraphDestroy(child));
	OK(cudaGraphCreate(&changed, 0));
	changed_node = add_step(changed, NULL, words, 9, 9);
	OK(cudaGraphInstantiate(&changed_exec, changed, 0));
	add_step(changed, changed_node, words, 100, 100);
}

/* ---- captured ---- */

static cudaGraphExec_t captured_exec, updated_exec;

static cudaGraph_t capture(uint32_t by)
{
	const float alpha = 1.0f / SIDE, beta = 0.5f;
	cudaGraph_t graph;

	OK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal));
	step<<<COUNT / 256, 256, 0, streams[0]>>>(words, by, 1);
	OK(cudaEventRecord(forked, streams[0]));
	OK(cudaStreamWaitEvent(streams[1], forked, 0));
	OK(cudaMemsetAsync(total, 0, 4, streams[1]));
	fold<<<1, 32, 0, streams[1]>>>(matrices[0], total, COUNT);
	if (cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, SIDE, SIDE, SIDE, &alpha, matrices[0],
		    SIDE, matrices[1], SIDE, &beta, matrices[2], SIDE))
		exit(2);
	OK(cudaEventRecord(joined, streams[1]));
	OK(cudaStreamWaitEvent(streams[0], joined, 0));
	OK(cudaMemcpyAsync(pinned, words, COUNT * 4, cudaMemcpyDeviceToHost, streams[0]));
	OK(cudaLaunchHostFunc(streams[0], call, &ten));
	OK(cudaStreamEndCapture(streams[0], &graph));
	return graph;
}

static void make_captured(void)
{
	cudaGraph_t graph = capture(11);

	OK(cudaGraphInstantiate(&captured_exec, graph, 0));
	OK(cudaGraphInstantiate(&updated_exec, graph, 0));
	OK(cudaGraphDestroy(graph));
}

/* ---- conditional nodes ---- */

/* A loop, in which one of two is chosen, and then one of three. */
struct conditional {
	cudaGraph_t graph, body;
	cudaGraphNode_t inside; /* a step in the body of the loop */
	cudaGraphExec_t exec;
};

static struct conditional held, gone, renewed;
static uint32_t *control; /* rounds, which of two */

__global__ void count_down(cudaGraphConditionalHandle loop, uint32_t *rounds)
{
	cudaGraphSetConditional(loop, --*rounds);
}

__global__ void begin(cudaGraphConditionalHandle which, uint32_t *control)
{
	control[0] = 2 + control[1] % 3;
	cudaGraphSetConditional(which, control[1]++ % 2);
}

/* Its value is whatever it was unless it is set, as there is no default: set for each round. */
__global__ void choose(cudaGraphConditionalHandle which, uint32_t *control)
{
	cudaGraphSetConditional(which, control[0] % 2);
}

template <typename... T>
static cudaGraphNode_t add_single(
	cudaGraph_t graph, cudaGraphNode_t after, void (*kernel)(T...), T... given)
{
	void *arguments[] = {&given...};
	cudaKernelNodeParams k = {0};
	cudaGraphNode_t node;

	k.func = (void *)kernel;
	k.gridDim = k.blockDim = dim3(1);
	k.kernelParams = arguments;
	OK(cudaGraphAddKernelNode(&node, graph, after ? &after : NULL, after != NULL, &k));
	return node;
}

static CUgraph *add_conditional(CUgraph graph, CUgraphNode *node,
	CUgraphConditionalHandle handle, CUgraphConditionalNodeType type, unsigned bodies)
{
	CUgraphNode after = *node;
	CUgraphNodeParams p;

	memset(&p, 0, sizeof(p));
	p.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
	p.conditional.handle = handle;
	p.conditional.type = type;
	p.conditional.size = bodies;
	DRIVER(cuCtxGetCurrent(&p.conditional.ctx));
	DRIVER(cuGraphAddNode(node, graph, &after, NULL, 1, &p));
	return p.conditional.phGraph_out;
}

static void fill_branches(CUgraph *branches)
{
	cudaGraph_t inner;
	cudaGraphNode_t node;

	add_step(branches[0], NULL, others, 3, 1);
	OK(cudaGraphCreate(&inner, 0));
	add_step(inner, NULL, words, 7, 7);
	OK(cudaGraphAddChildGraphNode(&node, branches[1], NULL, 0, inner));
	OK(cudaGraphDestroy(inner));
	OK(cudaStreamBeginCaptureToGraph(
		streams[0], branches[1], &node, NULL, 1, cudaStreamCaptureModeThreadLocal));
	OK(cudaMemsetAsync(others, 6, 64, streams[0]));
	step<<<COUNT / 256, 256, 0, streams[0]>>>(others, 5, 2);
	OK(cudaStreamEndCapture(streams[0], &inner));
}

static void fill_loop(
	struct conditional *c, cudaGraphConditionalHandle loop, cudaGraphConditionalHandle which)
{
	cudaGraphNode_t node;

	c->inside = add_step(c->body, NULL, words, 3, 2);
	node = add_single(c->body, c->inside, choose, which, control);
	fill_branches(add_conditional(c->body, &node, which, CU_GRAPH_COND_TYPE_IF, 2));
	add_single(c->body, node, count_down, loop, control);
}

static void build_conditional(struct conditional *c, uint32_t standard)
{
	cudaGraphConditionalHandle loop, two, three;
	cudaGraphNode_t node;
	CUgraph *cases;

	OK(cudaGraphCreate(&c->graph, 0));
	OK(cudaGraphConditionalHandleCreate(&loop, c->graph, 1, cudaGraphCondAssignDefault));
	OK(cudaGraphConditionalHandleCreate(&two, c->graph));
	OK(cudaGraphConditionalHandleCreate(
		&three, c->graph, standard, cudaGraphCondAssignDefault));
	node = add_single(c->graph, NULL, begin, two, control);
	c->body = add_conditional(c->graph, &node, loop, CU_GRAPH_COND_TYPE_WHILE, 1)[0];
	fill_loop(c, loop, two);
	cases = add_conditional(c->graph, &node, three, CU_GRAPH_COND_TYPE_SWITCH, 3);
	for (uint32_t i = 0; i < 3; i++)
		add_step(cases[i], NULL, others, 1, i + 100);
}

static void make_conditional(void)
{
	OK(cudaMalloc(&control, 8));
	OK(cudaMemset(control, 0, 8));
	for (struct conditional *c : {&held, &gone, &renewed}) {
		build_conditional(c, 1);
		OK(cudaGraphInstantiate(&c->exec, c->graph, 0));
	}
	OK(cudaGraphDestroy(gone.graph));
}

static void change_conditional(uint32_t i)
{
	uint32_t by = 3 + i % 4, plus = i;
	void *arguments[] = {&words, &by, &plus};
	const cudaKernelNodeParams k = kernel_params(arguments);
	cudaGraphExecUpdateResultInfo result;
	struct conditional c;

	OK(cudaGraphExecKernelNodeSetParams(held.exec, held.inside, &k));
	OK(cudaGraphNodeSetEnabled(held.exec, held.inside, i % 5 != 0));
	if (i % 2)
		return;
	build_conditional(&c, i / 2 % 4);
	OK(cudaGraphExecUpdate(renewed.exec, c.graph, &result));
	OK(cudaGraphDestroy(c.graph));
	OK(cudaGraphExecKernelNodeSetParams(renewed.exec, renewed.inside, &k));
}

/* ---- a round ---- */

static void change(uint32_t i)
{
	uint32_t by = 3 + i % 5, plus = i;
	void *arguments[] = {&words, &by, &plus};
	const cudaKernelNodeParams k = kernel_params(arguments);
	cudaGraphExecUpdateResultInfo result;
	cudaGraphNode_t found, first;
	cudaGraph_t graph;

	OK(cudaGraphExecKernelNodeSetParams(built_exec, step_node, &k));
	OK(cudaGraphExecKernelNodeSetParams(changed_exec, changed_node, &k));
	OK(cudaGraphNodeSetEnabled(built_exec, copy_node, i % 3 != 0));
	OK(cudaGraphNodeFindInClone(&found, step_node, copy));
	OK(cudaGraphExecKernelNodeSetParams(copy_exec, found, &k));
	OK(cudaGraphKernelNodeSetParams(found, &k));
	OK(cudaGraphCreate(&graph, 0));
	first = add_step(graph, NULL, others, 7, 3 + i);
	add_step(graph, first, others, 1, 1);
	OK(cudaGraphExecChildGraphNodeSetParams(parent_exec, child_node, graph));
	OK(cudaGraphDestroy(graph));
	graph = capture(11 + i % 7);
	OK(cudaGraphExecUpdate(updated_exec, graph, &result));
	OK(cudaGraphDestroy(graph));
}

static void show(uint32_t i)
{
	cudaGraphNode_t nodes[16];
	enum cudaGraphNodeType type;
	cudaKernelNodeParams k;
	size_t n = 16;
	int known = 0;

	OK(cudaGraphGetNodes(built, nodes, &n));
	for (size_t j = 0; j < n; j++)
		known += nodes[j] == set_node || nodes[j] == step_node || nodes[j] == copy_node;
	n = 16;
	OK(cudaGraphGetNodes(held.body, nodes, &n));
	known += n == 4 && nodes[0] == held.inside;
	OK(cudaGraphNodeGetType(inner_node, &type));
	OK(cudaGraphKernelNodeGetParams(step_node, &k));
	printf("%u %08x %zu %d %d %u %llu\n", i, checksum(), n, known, type,
		*(uint32_t *)k.kernelParams[1], calls);
	fflush(stdout);
}

static void run(cudaGraphExec_t executable)
{
	OK(cudaGraphLaunch(executable, streams[0]));
	OK(cudaStreamSynchronize(streams[0]));
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	static float host[COUNT];

	OK(cudaStreamCreate(&streams[0]));
	OK(cudaStreamCreate(&streams[1]));
	OK(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
	OK(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
	OK(cudaEventCreate(&recorded));
	OK(cudaMalloc(&words, COUNT * 4));
	OK(cudaMalloc(&others, COUNT * 4));
	OK(cudaMalloc(&total, 4));
	OK(cudaMallocHost(&pinned, COUNT * 4));
	OK(cudaMemset(words, 1, COUNT * 4));
	OK(cudaMemset(others, 2, COUNT * 4));
	for (int i = 0; i < COUNT; i++)
		host[i] = (i * 37 % 101) / 101.0f;
	for (int i = 0; i < 3; i++) {
		OK(cudaMalloc(&matrices[i], sizeof(host)));
		OK(cudaMemcpy(matrices[i], host, sizeof(host), cudaMemcpyHostToDevice));
	}
	if (cublasCreate(&blas) || cublasSetStream(blas, streams[1]))
		return 2;
	build();
	build_parent();
	make_captured();
	make_conditional();
	for (unsigned i = 0; i < rounds; i++) {
		run(built_exec);
		run(captured_exec);
		run(changed_exec);
		run(parent_exec);
		run(copy_exec);
		run(updated_exec);
		run(held.exec);
		run(gone.exec);
		run(renewed.exec);
		change(i);
		change_conditional(i);
		if (i % (rounds / 20 ? rounds / 20 : 1) == 0)
			show(i);
	}
	show(rounds);
	return 0;
}
