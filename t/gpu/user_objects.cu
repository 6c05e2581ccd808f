/*
 * user_objects facts: when the driver calls the destructors of user objects: how often it has. user_objects ROUNDS: rounds in which
 * objects of graphs, clones, children and executables live from one into the next; each says what has ended.
 */
#include <chrono>
#include <condition_variable>
#include <cuda.h>
#include <mutex>
#include <string.h>
#include <unistd.h>

#include "t/gpu/gpu.h"

static cudaStream_t stream;
static std::mutex lock;
static std::condition_variable changed;

struct ends {
	int count;
};

static void count_end(void *data)
{
	std::lock_guard<std::mutex> held(lock);

	((ends *)data)->count++;
	changed.notify_all();
}

static int is_ended(ends *e, int times)
{
	std::unique_lock<std::mutex> held(lock);

	return changed.wait_for(held, std::chrono::seconds(20), [=] { return e->count >= times; });
}

/* Destructors are called in their order. */
static int ended(ends *e)
{
	static ends fence;
	cudaUserObject_t object;
	std::unique_lock<std::mutex> held(lock);
	int before = fence.count;

	held.unlock();
	OK(cudaUserObjectCreate(&object, &fence, count_end, 1, cudaUserObjectNoDestructorSync));
	OK(cudaUserObjectRelease(object));
	if (!is_ended(&fence, before + 1))
		printf("no destructor is called\n");
	held.lock();
	return e->count;
}

static void fact(const char *name, long value)
{
	cudaGetLastError();
	printf("fact %s %ld\n", name, value);
}

static cudaUserObject_t object_of(ends *e, unsigned references)
{
	cudaUserObject_t object;

	e->count = 0;
	OK(cudaUserObjectCreate(&object, e, count_end, references, cudaUserObjectNoDestructorSync));
	return object;
}

__global__ void spin(long cycles)
{
	long start = clock64();

	while (clock64() - start < cycles)
		;
}

/* A graph with the only reference. */
static cudaGraph_t graph_with(ends *e, long cycles = 1)
{
	void *arguments[] = {&cycles};
	cudaKernelNodeParams p;
	cudaGraphNode_t node;
	cudaGraph_t graph;

	memset(&p, 0, sizeof(p));
	p.func = (void *)spin;
	p.gridDim = p.blockDim = dim3(1);
	p.kernelParams = arguments;
	OK(cudaGraphCreate(&graph, 0));
	OK(cudaGraphAddKernelNode(&node, graph, NULL, 0, &p));
	OK(cudaGraphRetainUserObject(graph, object_of(e, 1), 1, cudaGraphUserObjectMove));
	return graph;
}

static cudaGraph_t parent_of(cudaGraph_t child, cudaGraphNode_t *node)
{
	cudaGraph_t graph;

	OK(cudaGraphCreate(&graph, 0));
	OK(cudaGraphAddChildGraphNode(node, graph, NULL, 0, child));
	OK(cudaGraphDestroy(child));
	return graph;
}

static void clones_and_executables(void)
{
	cudaGraph_t graph, clone;
	cudaGraphExec_t exec;
	ends e;

	graph = graph_with(&e);
	OK(cudaGraphClone(&clone, graph));
	OK(cudaGraphDestroy(graph));
	fact("clone-keeps", ended(&e));
	OK(cudaGraphDestroy(clone));
	fact("clone-gone", ended(&e));

	graph = graph_with(&e, 1l << 28);
	OK(cudaGraphInstantiate(&exec, graph, 0));
	OK(cudaGraphDestroy(graph));
	fact("executable-keeps", ended(&e));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaGraphExecDestroy(exec));
	fact("launch-keeps", ended(&e));
	OK(cudaStreamSynchronize(stream));
	fact("launch-ended", is_ended(&e, 1));
}

static void updates(void)
{
	cudaGraphExecUpdateResultInfo info;
	ends before, after;
	cudaGraph_t graph = graph_with(&before);
	cudaGraphExec_t exec;

	OK(cudaGraphInstantiate(&exec, graph, 0));
	OK(cudaGraphDestroy(graph));
	graph = graph_with(&after);
	OK(cudaGraphExecUpdate(exec, graph, &info));
	OK(cudaGraphDestroy(graph));
	fact("updated-before", ended(&before));
	fact("updated-after", ended(&after));
	OK(cudaGraphExecDestroy(exec));
	fact("updated-gone", ended(&after));
}

static void children(void)
{
	ends e, other;
	cudaGraphNode_t node, found;
	cudaGraph_t parent = parent_of(graph_with(&e), &node), clone, inner, child;
	cudaUserObject_t object;
	cudaGraphExec_t exec;

	fact("child-keeps", ended(&e));
	OK(cudaGraphClone(&clone, parent));
	OK(cudaGraphDestroy(parent));
	fact("clone-of-parent-keeps", ended(&e));
	OK(cudaGraphDestroy(clone));
	fact("clone-of-parent-gone", ended(&e));

	/* What is asked of clones that only serve to make executables again. */
	object = object_of(&e, 1);
	OK(cudaGraphCreate(&child, 0));
	OK(cudaGraphRetainUserObject(child, object, 1, 0));
	parent = parent_of(child, &node);
	OK(cudaGraphClone(&clone, parent));
	OK(cudaGraphNodeFindInClone(&found, node, clone));
	OK(cudaGraphChildGraphNodeGetGraph(found, &inner));
	fact("release-of-a-clone's-child", cudaGraphReleaseUserObject(inner, object, 1));
	OK(cudaGraphDestroy(parent));
	fact("only-the-program's", ended(&e));
	OK(cudaUserObjectRelease(object));
	fact("released-by-the-program", ended(&e));
	OK(cudaGraphDestroy(clone));
	fact("clone-that-had-released-gone", ended(&e));

	parent = parent_of(graph_with(&e), &node);
	OK(cudaGraphInstantiate(&exec, parent, 0));
	child = graph_with(&other);
	OK(cudaGraphExecChildGraphNodeSetParams(exec, node, child));
	OK(cudaGraphDestroy(child));
	OK(cudaGraphDestroyNode(node));
	fact("child-exchanged-before", ended(&e));
	fact("child-exchanged-after", ended(&other));
	OK(cudaGraphExecDestroy(exec));
	fact("child-exchanged-gone", ended(&other));
	OK(cudaGraphDestroy(parent));
}

/* A graph in a conditional node. */
static void bodies(void)
{
	cudaGraphConditionalHandle handle;
	CUgraphNodeParams p;
	CUgraphNode node;
	cudaGraphExec_t exec;
	CUcontext context;
	cudaGraph_t graph;
	CUresult r;
	ends e;

	OK(cudaGraphCreate(&graph, 0));
	OK(cudaGraphConditionalHandleCreate(&handle, graph, 0, cudaGraphCondAssignDefault));
	cuCtxGetCurrent(&context);
	memset(&p, 0, sizeof(p));
	p.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
	p.conditional.handle = handle;
	p.conditional.type = CU_GRAPH_COND_TYPE_IF;
	p.conditional.size = 1;
	p.conditional.ctx = context;
#if CUDA_VERSION >= 13000
	r = cuGraphAddNode(&node, graph, NULL, NULL, 0, &p);
#else
	r = cuGraphAddNode(&node, graph, NULL, 0, &p);
#endif
	fact("conditional", r);
	if (r)
		return;
	fact("body-retains", cudaGraphRetainUserObject(p.conditional.phGraph_out[0], object_of(&e, 1), 1,
				     cudaGraphUserObjectMove));
	OK(cudaGraphInstantiate(&exec, graph, 0));
	OK(cudaGraphDestroy(graph));
	fact("body-in-executable", ended(&e));
	OK(cudaGraphExecDestroy(exec));
	fact("body-gone", ended(&e));
}

/* Held from round to round: a graph, a clone, an executable, one that was updated, and one with a child. */
static struct {
	ends own, graph, clone, exec, updated, child;
	cudaUserObject_t object;
	cudaGraph_t graph_made, clone_made;
	cudaGraphExec_t exec_made, updated_made, child_made;
} held;

static void make_all(void)
{
	cudaGraphExecUpdateResultInfo info;
	cudaGraphNode_t node;
	cudaGraph_t graph;
	ends before;

	held.object = object_of(&held.own, 2);
	held.graph_made = graph_with(&held.graph);
	graph = graph_with(&held.clone);
	OK(cudaGraphClone(&held.clone_made, graph));
	OK(cudaGraphDestroy(graph));
	graph = graph_with(&held.exec);
	OK(cudaGraphInstantiate(&held.exec_made, graph, 0));
	OK(cudaGraphDestroy(graph));
	graph = graph_with(&before);
	OK(cudaGraphInstantiate(&held.updated_made, graph, 0));
	OK(cudaGraphDestroy(graph));
	graph = graph_with(&held.updated);
	OK(cudaGraphExecUpdate(held.updated_made, graph, &info));
	OK(cudaGraphDestroy(graph));
	if (!is_ended(&before, 1))
		printf("what an update has replaced is not released\n");
	graph = parent_of(graph_with(&held.child), &node);
	OK(cudaGraphInstantiate(&held.child_made, graph, 0));
	OK(cudaGraphDestroy(graph));
}

static int all_ended(void)
{
	return ended(&held.own) + ended(&held.graph) + ended(&held.clone) + ended(&held.exec) +
	       ended(&held.updated) + ended(&held.child);
}

static void end_all(unsigned round)
{
	printf("%u %d", round, all_ended());
	OK(cudaUserObjectRelease(held.object));
	printf(" %d", ended(&held.own));
	OK(cudaUserObjectRelease(held.object));
	printf(" %d", ended(&held.own));
	OK(cudaGraphDestroy(held.graph_made));
	printf(" %d", ended(&held.graph));
	OK(cudaGraphDestroy(held.clone_made));
	printf(" %d", ended(&held.clone));
	for (cudaGraphExec_t exec : {held.exec_made, held.updated_made, held.child_made}) {
		OK(cudaGraphLaunch(exec, stream));
		OK(cudaStreamSynchronize(stream));
		OK(cudaGraphExecDestroy(exec));
	}
	printf(" %d %d %d", is_ended(&held.exec, 1), is_ended(&held.updated, 1), is_ended(&held.child, 1));
	printf(" %d\n", all_ended());
	fflush(stdout);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;

	OK(cudaStreamCreate(&stream));
	if (argc > 1 && !strcmp(argv[1], "facts")) {
		clones_and_executables();
		updates();
		children();
		bodies();
		return 0;
	}
	make_all();
	for (unsigned i = 0; i < rounds; i++) {
		usleep(1000);
		end_all(i);
		make_all();
	}
	return 0;
}
