/*
 * graph_memory ROUNDS: graphs that allocate memory and free it, built and captured, with their graph gone, and with
 * memory that they leave to the program. First what the driver does with such graphs (lines that begin with "fact"),
 * then, behind "ready", ROUNDS rounds of launches; at the end what is in memory.
 */
#include <cuda.h>
#include <initializer_list>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "t/gpu/gpu.h"

#define COUNT (1 << 16)
#define BYTES (4ul * COUNT)

static cudaStream_t stream;
static uint32_t *result, *left, *survivor;
static cudaGraph_t built;
static cudaGraphExec_t built_exec, captured_exec, left_exec;

__global__ void step(uint32_t *a, uint32_t by, uint32_t plus)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	a[i] = a[i] * by + plus + i;
}

__global__ void spin(long cycles)
{
	long start = clock64();

	while (clock64() - start < cycles)
		;
}

__global__ void add(uint32_t *to, const uint32_t *from)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	to[i] += from[i];
}

static void fact(const char *name, long value)
{
	cudaGetLastError();
	printf("fact %s %ld\n", name, value);
}

static cudaGraphNode_t allocate(cudaGraph_t graph, const cudaGraphNode_t *after, uint32_t **address)
{
	cudaMemAllocNodeParams p;
	cudaGraphNode_t node;

	memset(&p, 0, sizeof(p));
	p.poolProps.allocType = cudaMemAllocationTypePinned;
	p.poolProps.location.type = cudaMemLocationTypeDevice;
	p.bytesize = BYTES;
	OK(cudaGraphAddMemAllocNode(&node, graph, after, after != NULL, &p));
	*address = (uint32_t *)p.dptr;
	return node;
}

static cudaGraphNode_t set(cudaGraph_t graph, cudaGraphNode_t after, uint32_t *address, uint32_t value)
{
	cudaMemsetParams p;
	cudaGraphNode_t node;

	memset(&p, 0, sizeof(p));
	p.dst = address;
	p.value = value;
	p.elementSize = 4;
	p.width = COUNT;
	p.height = 1;
	OK(cudaGraphAddMemsetNode(&node, graph, &after, 1, &p));
	return node;
}

static cudaGraphNode_t sum(cudaGraph_t graph, cudaGraphNode_t after, uint32_t *to, uint32_t *from)
{
	void *arguments[] = {&to, &from};
	cudaKernelNodeParams p;
	cudaGraphNode_t node;

	memset(&p, 0, sizeof(p));
	p.func = (void *)add;
	p.gridDim = dim3(COUNT / 256);
	p.blockDim = dim3(256);
	p.kernelParams = arguments;
	OK(cudaGraphAddKernelNode(&node, graph, &after, 1, &p));
	return node;
}

static uint32_t word(const uint32_t *address)
{
	uint32_t value;

	OK(cudaMemcpy(&value, address, sizeof(value), cudaMemcpyDeviceToHost));
	return value;
}

static unsigned long attribute(cudaGraphMemAttributeType which)
{
	unsigned long value = 0;

	OK(cudaDeviceGetGraphMemAttribute(0, which, &value));
	return value;
}

/* Nodes, an address that is used again, and what cannot be had twice. */
static void build(void)
{
	uint32_t *first, *second;
	cudaGraphNode_t takes, frees, node;
	cudaMemAllocNodeParams p;
	cudaGraphNodeType type;
	cudaGraphExec_t exec;
	cudaGraph_t other;

	OK(cudaGraphCreate(&built, 0));
	takes = allocate(built, NULL, &first);
	node = set(built, takes, first, 3);
	node = sum(built, node, result, first);
	OK(cudaGraphAddMemFreeNode(&frees, built, &node, 1, first));
	takes = allocate(built, &frees, &second);
	node = set(built, takes, second, 4);
	node = sum(built, node, result, second);
	OK(cudaGraphAddMemFreeNode(&frees, built, &node, 1, second));
	OK(cudaGraphInstantiate(&built_exec, built, 0));
	fact("address-used-again", first == second);
	OK(cudaGraphNodeGetType(takes, &type));
	fact("type-of-allocation", type);
	OK(cudaGraphNodeGetType(frees, &type));
	fact("type-of-free", type);
	OK(cudaGraphMemAllocNodeGetParams(takes, &p));
	fact("parameters", p.dptr == second && p.bytesize == BYTES);
	fact("clone", cudaGraphClone(&other, built));
	fact("second-executable", cudaGraphInstantiate(&exec, built, 0));
	OK(cudaGraphCreate(&other, 0));
	fact("as-child", cudaGraphAddChildGraphNode(&node, other, NULL, 0, built));
	OK(cudaGraphDestroy(other));
}

static void capture(void)
{
	cudaGraph_t graph;
	uint32_t *memory;

	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	fact("allocate-in-capture", cudaMallocAsync((void **)&memory, BYTES, stream));
	OK(cudaMemsetAsync(memory, 1, BYTES, stream));
	add<<<COUNT / 256, 256, 0, stream>>>(result, memory);
	fact("free-in-capture", cudaFreeAsync(memory, stream));
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphInstantiate(&captured_exec, graph, 0));
	OK(cudaGraphDestroy(graph));
}

/* What trecr does in place of the driver's nodes: an empty node in a capture, and memory that is mapped meanwhile. */
static void empty_in_capture(void)
{
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	CUmemAllocationProp p;
	CUmemAccessDesc access;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr address;
	CUstreamCaptureStatus status;
	const CUgraphNode *dependencies;
	cuuint64_t id;
	CUgraph graph;
	CUgraphNode node;
	size_t count = 0;

	memset(&p, 0, sizeof(p));
	p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.location = p.location;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	OK(cudaMemsetAsync(result, 0, BYTES, stream));
	OK(cudaThreadExchangeStreamCaptureMode(&mode));
	fact("reserve-in-capture", cuMemAddressReserve(&address, 32 << 20, 0, 0, 0));
	fact("create-in-capture", cuMemCreate(&handle, 2 << 20, &p, 0));
	fact("map-in-capture", cuMemMap(address, 2 << 20, 0, handle, 0));
	fact("access-in-capture", cuMemSetAccess(address, 2 << 20, &access, 1));
	OK(cudaThreadExchangeStreamCaptureMode(&mode));
#if CUDA_VERSION >= 13000
	{
		const CUgraphEdgeData *edges = NULL;

		fact("capture-info", cuStreamGetCaptureInfo(stream, &status, &id, &graph, &dependencies, &edges, &count));
	}
#else
	fact("capture-info", cuStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &dependencies, &count));
#endif
	fact("empty-node", cuGraphAddEmptyNode(&node, graph, dependencies, count));
#if CUDA_VERSION >= 13000
	fact("set-dependencies",
		cuStreamUpdateCaptureDependencies(stream, &node, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
#else
	fact("set-dependencies",
		cuStreamUpdateCaptureDependencies(stream, &node, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
#endif
	OK(cudaMemsetAsync(result, 0, BYTES, stream));
	fact("end-of-capture", cuStreamEndCapture(stream, &graph));
	fact("nodes", (cuGraphGetNodes(graph, NULL, &count), count));
	OK(cudaGraphDestroy(graph));
	cuMemUnmap(address, 2 << 20);
	cuMemRelease(handle);
	cuMemAddressFree(address, 32 << 20);
}

static void leave(void)
{
	unsigned long before = attribute(cudaGraphMemAttrUsedMemCurrent);
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	uint32_t *memory;
	cudaGraph_t graph;

	OK(cudaGraphCreate(&graph, 0));
	node = allocate(graph, NULL, &left);
	set(graph, node, left, 5);
	OK(cudaGraphInstantiate(&left_exec, graph, 0));
	OK(cudaGraphDestroy(graph));
	OK(cudaGraphLaunch(left_exec, stream));
	OK(cudaStreamSynchronize(stream));
	fact("in-use-rises", attribute(cudaGraphMemAttrUsedMemCurrent) > before);
	fact("launched-twice", cudaGraphLaunch(left_exec, stream));
	fact("freed", cudaFree(left));
	fact("freed-twice", cudaFree(left));
	OK(cudaGraphLaunch(left_exec, stream));
	fact("freed-in-stream", cudaFreeAsync(left, stream));
	OK(cudaGraphLaunch(left_exec, stream));

	OK(cudaGraphCreate(&graph, 0));
	node = allocate(graph, NULL, &memory);
	set(graph, node, memory, 6);
	OK(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
	OK(cudaGraphLaunch(exec, stream));
	fact("freed-on-launch", cudaGraphLaunch(exec, stream));
	OK(cudaGraphDestroy(graph));

	OK(cudaGraphCreate(&graph, 0));
	node = allocate(graph, NULL, &survivor);
	set(graph, node, survivor, 11);
	OK(cudaGraphInstantiate(&exec, graph, 0));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	fact("survives", word(survivor) == 11);
}

static cudaGraph_t allocating(uint32_t value, int frees, uint32_t **address)
{
	cudaGraphNode_t node;
	cudaGraph_t graph;

	OK(cudaGraphCreate(&graph, 0));
	node = allocate(graph, NULL, address);
	node = set(graph, node, *address, value);
	if (frees)
		OK(cudaGraphAddMemFreeNode(&node, graph, &node, 1, *address));
	return graph;
}

/* A graph whose memory only kernels use. */
static cudaGraph_t with_kernel(uint32_t **address)
{
	cudaGraphNode_t node;
	cudaGraph_t graph;

	OK(cudaGraphCreate(&graph, 0));
	node = allocate(graph, NULL, address);
	node = sum(graph, node, *address, *address);
	OK(cudaGraphAddMemFreeNode(&node, graph, &node, 1, *address));
	return graph;
}

/* Is it the memset that stands against an update? */
static void update_of_kernels(void)
{
	cudaGraphExecUpdateResultInfo info;
	uint32_t *one, *two;
	cudaGraph_t before = with_kernel(&one), after = with_kernel(&two);
	cudaGraphExec_t exec;

	memset(&info, 0, sizeof(info));
	OK(cudaGraphInstantiate(&exec, before, 0));
	fact("update-of-kernels", cudaGraphExecUpdate(exec, after, &info));
	fact("update-of-kernels-result", info.result);
	OK(cudaGraphDestroy(before));
	fact("update-of-kernels-without-graph", cudaGraphExecUpdate(exec, after, &info));
	fact("update-of-kernels-without-graph-result", info.result);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(after));
}

static int remove_edge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to)
{
#if CUDART_VERSION >= 13000
	return cudaGraphRemoveDependencies(graph, &from, &to, NULL, 1);
#else
	return cudaGraphRemoveDependencies(graph, &from, &to, 1);
#endif
}

/* Updates, and nodes that are removed. */
static void change(void)
{
	cudaGraphExecUpdateResultInfo info;
	uint32_t *one, *two, *three;
	cudaGraph_t before = allocating(1, 1, &one), after = allocating(2, 1, &two), other;
	cudaGraphNode_t node, nodes[3];
	cudaGraphExec_t exec, second;
	size_t count = 3;

	memset(&info, 0, sizeof(info));
	OK(cudaGraphInstantiate(&exec, before, 0));
	fact("update", cudaGraphExecUpdate(exec, after, &info));
	fact("update-result", info.result);
	fact("update-of-itself", cudaGraphExecUpdate(exec, before, &info));
	fact("launch-after-updates", cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cudaGraphDestroy(before));
	OK(cudaGraphInstantiate(&second, after, 0));
	fact("update-from-instantiated", cudaGraphExecUpdate(exec, after, &info));
	fact("update-from-instantiated-result", info.result);
	OK(cudaGraphExecDestroy(second));
	fact("update-without-graph", cudaGraphExecUpdate(exec, after, &info));
	fact("update-without-graph-result", info.result);
	second = NULL;
	fact("executable-after-update", cudaGraphInstantiate(&second, after, 0));
	fact("launch-after-that", cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	if (second)
		OK(cudaGraphExecDestroy(second));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(after));
	update_of_kernels();

	other = allocating(3, 1, &three);
	fact("free-node-twice", cudaGraphAddMemFreeNode(&node, other, NULL, 0, three));
	OK(cudaGraphGetNodes(other, nodes, &count));
	fact("remove-edge", remove_edge(other, nodes[1], nodes[2]));
	fact("destroy-node-beside", cudaGraphDestroyNode(nodes[1]));
	fact("destroy-free-node", cudaGraphDestroyNode(nodes[2]));
	OK(cudaGraphDestroy(other));

	OK(cudaGraphCreate(&other, 0));
	node = allocate(other, NULL, &three);
	fact("destroy-allocation-node", cudaGraphDestroyNode(node));
	OK(cudaGraphDestroy(other));
}

/* Memory that one graph allocates and another one frees; of the second, what it allocates then. */
static void hand_over(void)
{
	uint32_t *memory, *own;
	cudaGraph_t graph = allocating(1, 0, &memory), other;
	cudaGraphNode_t frees, node;
	cudaGraphExec_t exec, other_exec;

	OK(cudaGraphInstantiate(&exec, graph, 0));
	OK(cudaGraphCreate(&other, 0));
	fact("free-of-another's", cudaGraphAddMemFreeNode(&frees, other, NULL, 0, memory));
	node = allocate(other, &frees, &own);
	fact("another's-used-again", own == memory);
	node = set(other, node, own, 2);
	OK(cudaGraphAddMemFreeNode(&node, other, &node, 1, own));
	OK(cudaGraphInstantiate(&other_exec, other, 0));
	for (int i = 0; i < 2; i++) {
		OK(cudaGraphLaunch(exec, stream));
		fact(i ? "free-then-allocate-again" : "free-then-allocate", cudaGraphLaunch(other_exec, stream));
		OK(cudaStreamSynchronize(stream));
	}
	OK(cudaGraphExecDestroy(other_exec));
	OK(cudaGraphDestroy(other));

	/* What is left outlives its graph. */
	cudaGraphLaunch(exec, stream);
	OK(cudaStreamSynchronize(stream));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	OK(cudaGraphCreate(&other, 0));
	fact("free-node-of-survivor", cudaGraphAddMemFreeNode(&node, other, NULL, 0, memory));
	OK(cudaGraphInstantiate(&exec, other, 0));
	fact("free-survivor", cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	fact("survivor-freed-twice", cudaFree(memory));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(other));
}

/* What waits, and what a capture does not allow. */
static void wait_and_capture(void)
{
	uint32_t *memory, *pooled;
	cudaGraph_t graph = allocating(1, 0, &memory), captured = NULL;
	cudaGraphExec_t exec;
	cudaStream_t busy;
	void *nothing = stream;

	OK(cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking));
	OK(cudaGraphInstantiate(&exec, graph, 0));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	spin<<<1, 1, 0, busy>>>(1l << 28);
	fact("free-beside-busy-stream", cudaFree(memory));
	fact("busy-stream-after-free", cudaStreamQuery(busy));
	OK(cudaStreamSynchronize(busy));
	OK(cudaMallocAsync((void **)&pooled, BYTES, stream));
	OK(cudaStreamSynchronize(stream));
	spin<<<1, 1, 0, busy>>>(1l << 28);
	fact("free-of-pool-beside-busy-stream", cudaFree(pooled));
	fact("busy-stream-after-free-of-pool", cudaStreamQuery(busy));
	OK(cudaStreamSynchronize(busy));
	OK(cudaGraphLaunch(exec, stream));
	fact("freed-before-the-end", cudaFree(memory));
	OK(cudaGraphLaunch(exec, busy));
	OK(cudaFreeAsync(memory, busy));
	OK(cudaStreamSynchronize(busy));

	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	fact("destroy-executable-in-capture", cudaGraphExecDestroy(exec));
	fact("end-of-that-capture", cudaStreamEndCapture(stream, &captured));
	if (captured)
		OK(cudaGraphDestroy(captured));
	OK(cudaGraphDestroy(graph));

	captured = NULL;
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	fact("0-bytes-in-capture", cudaMallocAsync(&nothing, 0, stream));
	fact("0-bytes-at-0", nothing == NULL);
	fact("end-with-0-bytes", cudaStreamEndCapture(stream, &captured));
	if (captured) {
		size_t count = 0;

		OK(cudaGraphGetNodes(captured, NULL, &count));
		fact("nodes-with-0-bytes", count);
		OK(cudaGraphDestroy(captured));
	}
	OK(cudaStreamDestroy(busy));
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 100;
	uint32_t *words = (uint32_t *)malloc(BYTES);

	OK(cudaStreamCreate(&stream));
	OK(cudaMalloc((void **)&result, BYTES));
	OK(cudaMemset(result, 0, BYTES));
	build();
	capture();
	empty_in_capture();
	leave();
	change();
	hand_over();
	wait_and_capture();
	OK(cudaDeviceGraphMemTrim(0));
	printf("ready\n");
	fflush(stdout);
	for (int i = 0; i < rounds; i++) {
		OK(cudaGraphLaunch(built_exec, stream));
		OK(cudaGraphLaunch(captured_exec, stream));
		step<<<COUNT / 256, 256, 0, stream>>>(left, 3, i);
		add<<<COUNT / 256, 256, 0, stream>>>(result, left);
		step<<<COUNT / 256, 256, 0, stream>>>(survivor, 5, i);
		OK(cudaStreamSynchronize(stream));
		if (i % 100 == 99) {
			OK(cudaFreeAsync(left, stream));
			OK(cudaGraphLaunch(left_exec, stream));
		}
		usleep(2000);
	}
	for (const uint32_t *from : {result, left, survivor}) {
		uint64_t hash = 0;

		OK(cudaMemcpy(words, from, BYTES, cudaMemcpyDeviceToHost));
		for (int i = 0; i < COUNT; i++)
			hash = hash * 1099511628211ul + words[i];
		printf("%016lx\n", (unsigned long)hash);
	}
	return 0;
}
