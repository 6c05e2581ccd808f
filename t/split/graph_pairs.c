/*
 * An executable graph goes by the nodes of its graph. When one goes that has a graph inside, a child or the body of a conditional
 * node, new nodes may take the places of those inside: the executable does not know them, also after a restart. All is made before
 * a checkpoint, and looked at after SIGUSR1.
 */
#include "shared/cuda/graph_params.h"
#include "t/split/conditional_params.h"
#include "t/split/graph_values.h"

#define COUNT  64
#define INSIDE 32 /* nodes */
#define MORE   64
#define ROUNDS 3

static void *context, *stream;
static CUdeviceptr words[2];

static struct held {
	void *graph, *outer, *executable;
} child, conditional;

void victim_hurt(void)
{
	OK(cuGraphDestroyNode(child.outer)); /* there is nothing to be destroyed then */
}

static struct graph_memset set_to(CUdeviceptr address, uint32_t value)
{
	return (struct graph_memset){
		.address = address, .value = value, .element = 4, .width = COUNT, .height = 1};
}

static void fill(void *graph, CUdeviceptr address)
{
	const struct graph_memset m = set_to(address, 1);
	void *node = NULL;

	for (int i = 0; i < INSIDE; i++)
		OK(cuGraphAddMemsetNode(&node, graph, &node, i > 0, &m, context));
}

static void make_child(void)
{
	void *inner;

	OK(cuGraphCreate(&inner, 0));
	fill(inner, words[0]);
	OK(cuGraphCreate(&child.graph, 0));
	OK(cuGraphAddChildGraphNode(&child.outer, child.graph, NULL, 0, inner));
	OK(cuGraphDestroy(inner));
	OK(cuGraphInstantiateWithFlags(&child.executable, child.graph, 0));
}

static void make_conditional(void)
{
	struct conditional_params p = {
		.node_type = GRAPH_CONDITIONAL, .count = 1, .context = context};

	OK(cuGraphCreate(&conditional.graph, 0));
	OK(cuGraphConditionalHandleCreate(&p.handle, conditional.graph, context, 1, 1));
	OK(cuGraphAddNode_v2(&conditional.outer, conditional.graph, NULL, NULL, 0, &p));
	fill(p.graphs[0], words[1]);
	OK(cuGraphInstantiateWithFlags(&conditional.executable, conditional.graph, 0));
}

static void check(const char *what, struct held *h, CUdeviceptr address)
{
	const struct graph_memset m = set_to(address, 2);
	void *node;

	OK(cuGraphDestroyNode(h->outer));
	for (int i = 0; i < MORE; i++) {
		int r;

		OK(cuGraphAddMemsetNode(&node, h->graph, NULL, 0, &m, context));
		r = cuGraphExecMemsetNodeSetParams(h->executable, node, &m, context);
		CHECK(r == INVALID_VALUE, "turn %u, %s: a new node is one of the executable's",
			turn, what);
	}
	OK(cuMemsetD32_v2(address, 0, COUNT));
	OK(cuGraphLaunch(h->executable, stream));
	OK(cuStreamSynchronize(stream));
	compare_words(what, address, COUNT, 1);
	OK(cuGraphDestroy(h->graph));
	OK(cuGraphExecDestroy(h->executable));
}

static void take_turn(void)
{
	check("a child", &child, words[0]);
	check("a conditional node", &conditional, words[1]);
	make_child();
	make_conditional();
	turn++;
}

int main(void)
{
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&stream, 1));
	for (int i = 0; i < 2; i++)
		OK(cuMemAlloc_v2(&words[i], 4 * COUNT));
	make_child();
	make_conditional();
	victim_take_turns(ROUNDS, take_turn, &turn);
	return victim_done();
}
