/*
 * User objects, whose destructor is called once, when the last reference goes: references of the program, of a graph, of a clone,
 * of graphs that are nodes, and of executables, updated ones too. All are held at a checkpoint. After each SIGUSR1 the references go
 * one by one, and all is made anew.
 */
#include <sched.h>
#include <semaphore.h>
#include <time.h>

#include "shared/cuda/graph_params.h"
#include "t/split/driver_victim.h"

#define ROUNDS 3
#define MOVE   1

enum {
	OWN,
	GRAPH,
	CLONE,
	CHILD,
	NESTED,
	EXECUTABLE,
	BEFORE,
	AFTER,
	MOVED,
	REMOVED,
	IN_FLIGHT,
	CAPTURED,
	COUNT
};

static const char *const names[COUNT] = {"own", "of a graph", "of a clone", "of a child",
	"of a child's child", "of an executable", "before an update", "after an update",
	"of a graph that was moved", "of one that was moved and removed",
	"of an executable in flight", "of a capture"};

static void *context, *stream;
static void *objects[COUNT], *graph, *cloned, *parent, *whole, *executable, *nested, *updated,
	*emptied, *in_flight, *captured;
static atomic_uint ended[COUNT];
static unsigned turn;

void victim_hurt(void)
{
	ended[CLONE]++;
}

/* ---- destructors ---- */

static void count_end(void *data)
{
	++*(atomic_uint *)data;
}

static sem_t passed;

static void pass(void *data)
{
	sem_post(data);
}

/* They are called in their order: all that were to be have been. */
static void wait_for_destructors(void)
{
	struct timespec end;
	void *object;

	sem_init(&passed, 0, 0);
	OK(cuUserObjectCreate(&object, &passed, pass, 1, 1));
	OK(cuUserObjectRelease(object, 1));
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 30;
	CHECK(!sem_timedwait(&passed, &end), "turn %u: no destructor is called", turn);
}

static void expect(int which, unsigned times)
{
	wait_for_destructors();
	CHECK(ended[which] == times, "turn %u, %s: the destructor was called %u times, not %u",
		turn, names[which], ended[which], times);
}

/* ---- all that is held ---- */

static void *new_object(int which, unsigned references)
{
	ended[which] = 0;
	OK(cuUserObjectCreate(&objects[which], &ended[which], count_end, references, 1));
	return objects[which];
}

/* A graph with one reference, that was the program's. */
static void *graph_with(int which)
{
	void *made, *node;

	OK(cuGraphCreate(&made, 0));
	OK(cuGraphAddEmptyNode(&node, made, NULL, 0));
	OK(cuGraphRetainUserObject(made, new_object(which, 1), 1, MOVE));
	return made;
}

static void *executable_of(void *from)
{
	void *made;

	OK(cuGraphInstantiateWithFlags(&made, from, 0));
	OK(cuGraphDestroy(from));
	return made;
}

/* The clone has two. */
static void make_clone(void)
{
	void *original = graph_with(CLONE);

	OK(cuGraphRetainUserObject(original, objects[CLONE], 1, 0));
	OK(cuGraphClone(&cloned, original));
	OK(cuGraphDestroy(original));
	expect(CLONE, 0);
}

/* Of two graphs inside each other, and of an executable. */
static void make_parent(void)
{
	void *child = graph_with(CHILD), *inner = graph_with(NESTED), *node;

	OK(cuGraphAddChildGraphNode(&node, child, NULL, 0, inner));
	OK(cuGraphDestroy(inner));
	OK(cuGraphCreate(&parent, 0));
	OK(cuGraphAddChildGraphNode(&node, parent, NULL, 0, child));
	OK(cuGraphDestroy(child));
	OK(cuGraphInstantiateWithFlags(&nested, parent, 0));
	expect(CHILD, 0);
	expect(NESTED, 0);
}

static void make_updated(void)
{
	void *from;
	uint64_t info[8];

	updated = executable_of(graph_with(BEFORE));
	from = graph_with(AFTER);
	expect(BEFORE, 0);
	OK(cuGraphExecUpdate_v2(updated, from, info));
	OK(cuGraphDestroy(from));
	expect(BEFORE, 1);
	expect(AFTER, 0);
}

/* CUgraphNodeParams of a graph */
static struct {
	int type, reserved[3];
	void *graph;
	int ownership;
	char rest[224];
} moved = {.type = GRAPH_CHILD, .ownership = 1};

static void make_moved(void)
{
	void *node;

	OK(cuGraphCreate(&whole, 0));
	moved.graph = graph_with(MOVED);
	OK(cuGraphAddNode_v2(&node, whole, NULL, NULL, 0, &moved));
}

/* With a node that is destroyed goes the graph that was moved into it, and another one that had been moved into that. */
static void make_emptied(void)
{
	void *node, *inner, *outer;

	OK(cuGraphCreate(&inner, 0));
	OK(cuGraphAddEmptyNode(&node, inner, NULL, 0));
	outer = graph_with(REMOVED);
	moved.graph = inner;
	OK(cuGraphAddNode_v2(&node, outer, NULL, NULL, 0, &moved));
	OK(cuGraphCreate(&emptied, 0));
	moved.graph = outer;
	OK(cuGraphAddNode_v2(&node, emptied, NULL, NULL, 0, &moved));
	expect(REMOVED, 0);
	OK(cuGraphDestroyNode(node));
	expect(REMOVED, 1);
	OK(cuGraphAddEmptyNode(&node, emptied, NULL, 0));
}

int cuStreamGetCaptureInfo_v2(void *, int *, uint64_t *, void **, void ***, size_t *);

/* The graph is asked for while it is captured. */
static void make_captured(void)
{
	int status;
	uint64_t id;
	void *capture;

	OK(cuStreamBeginCapture_v2(stream, 2));
	OK(cuStreamGetCaptureInfo_v2(stream, &status, &id, &capture, NULL, NULL));
	OK(cuGraphRetainUserObject(capture, new_object(CAPTURED, 1), 1, MOVE));
	OK(cuStreamEndCapture(stream, &captured));
}

static void make_all(void)
{
	new_object(OWN, 2);
	OK(cuUserObjectRetain(objects[OWN], 1));
	graph = graph_with(GRAPH);
	make_clone();
	make_parent();
	executable = executable_of(graph_with(EXECUTABLE));
	make_updated();
	make_moved();
	make_emptied();
	in_flight = executable_of(graph_with(IN_FLIGHT));
	make_captured();
}

/* ---- their ends ---- */

static atomic_int released;

static void wait_for_program(void *data)
{
	time_t end = time(NULL) + 20;

	(void)data;
	while (!released && time(NULL) < end)
		sched_yield();
}

/* What is under way keeps it. */
static void end_in_flight(void)
{
	void *blocker, *node, *made;
	const struct graph_host h = {(void *)wait_for_program, NULL};

	released = 0;
	OK(cuGraphCreate(&blocker, 0));
	OK(cuGraphAddHostNode(&node, blocker, NULL, 0, &h));
	made = executable_of(blocker);
	OK(cuGraphLaunch(made, stream));
	OK(cuGraphLaunch(in_flight, stream));
	OK(cuGraphExecDestroy(in_flight));
	CHECK(!ended[IN_FLIGHT], "turn %u: an object ends before what uses it", turn);
	released = 1;
	OK(cuStreamSynchronize(stream));
	expect(IN_FLIGHT, 1);
	OK(cuGraphExecDestroy(made));
}

static void end_clones(void)
{
	void *again;

	OK(cuGraphReleaseUserObject(cloned, objects[CLONE], 1));
	OK(cuGraphClone(&again, cloned));
	OK(cuGraphDestroy(cloned));
	expect(CLONE, 0);
	OK(cuGraphDestroy(again));
	expect(CLONE, 1);
}

static void end_own(void)
{
	OK(cuUserObjectRetain(objects[OWN], 1));
	OK(cuUserObjectRelease(objects[OWN], 3));
	expect(OWN, 0);
	OK(cuUserObjectRelease(objects[OWN], 1));
	expect(OWN, 1);
}

static void end_parent(void)
{
	void *copy, *node;
	size_t count = 1;

	OK(cuGraphClone(&copy, parent));
	OK(cuGraphDestroy(parent));
	OK(cuGraphExecDestroy(nested));
	expect(CHILD, 0);
	OK(cuGraphGetNodes(copy, &node, &count));
	OK(cuGraphDestroyNode(node));
	expect(CHILD, 1);
	expect(NESTED, 1);
	OK(cuGraphDestroy(copy));
}

static void end_all(void)
{
	for (int i = 0; i < COUNT; i++)
		expect(i, i == BEFORE || i == REMOVED);
	end_in_flight();
	end_own();
	OK(cuGraphDestroy(graph));
	expect(GRAPH, 1);
	end_clones();
	end_parent();
	OK(cuGraphLaunch(executable, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuGraphExecDestroy(executable));
	expect(EXECUTABLE, 1);
	OK(cuGraphExecDestroy(updated));
	expect(AFTER, 1);
	OK(cuGraphDestroy(whole));
	expect(MOVED, 1);
	OK(cuGraphDestroy(emptied));
	OK(cuGraphDestroy(captured));
	expect(CAPTURED, 1);
	for (int i = 0; i < COUNT; i++)
		expect(i, 1);
}

int main(void)
{
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&stream, 1));
	make_all();
	end_all();
	make_all();
	turn++;
	victim_ready();
	for (int i = 0; i < ROUNDS; i++) {
		victim_wait();
		end_all();
		make_all();
		turn++;
		victim_say("turn %u", turn);
	}
	return victim_done();
}
