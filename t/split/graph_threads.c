/*
 * Threads that make and destroy graphs of their own, with graphs and user objects inside: the driver gives the handles of what one has
 * destroyed to another at once. Each destructor is called once.
 */
#include <sched.h>

#include "t/split/driver_victim.h"

#define THREADS 6
#define ROUNDS  1000

static void *context;
static atomic_ulong ended;

void victim_hurt(void)
{
	ended++;
}

static void count_end(void *data)
{
	CHECK(!*(atomic_uint *)data, "a destructor is called twice");
	*(atomic_uint *)data = 1;
	ended++;
}

static void make_and_destroy(atomic_uint *is_ended)
{
	void *object, *graph, *clone, *executable, *node, *parent;

	OK(cuUserObjectCreate(&object, is_ended, count_end, 1, 1));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddEmptyNode(&node, graph, NULL, 0));
	OK(cuGraphRetainUserObject(graph, object, 1, 1));
	OK(cuGraphClone(&clone, graph));
	OK(cuGraphInstantiateWithFlags(&executable, clone, 0));
	OK(cuGraphCreate(&parent, 0));
	OK(cuGraphAddChildGraphNode(&node, parent, NULL, 0, graph));
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(clone));
	OK(cuGraphDestroyNode(node));
	OK(cuGraphDestroy(parent));
	OK(cuGraphExecDestroy(executable));
}

static void *work(void *arg)
{
	atomic_uint *is_ended = arg;

	OK(cuCtxSetCurrent(context));
	for (int i = 0; i < ROUNDS && !victim_failures; i++)
		make_and_destroy(&is_ended[i]);
	return NULL;
}

int main(void)
{
	static atomic_uint is_ended[THREADS][ROUNDS];
	uint64_t limit = victim_limit();
	pthread_t threads[THREADS];

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	for (int i = 0; i < THREADS; i++)
		threads[i] = victim_thread(work, is_ended[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	while (ended < THREADS * ROUNDS && victim_now() < limit)
		sched_yield();
	CHECK(ended == THREADS * ROUNDS, "%lu destructors were called, not %d", ended,
		THREADS * ROUNDS);
	victim_ready();
	victim_wait();
	return victim_done();
}
