/*
 * gone [primary]: contexts that have been destroyed are still on the stacks of threads, below others and on top, and
 * an error to use; with `primary`, a device's context, which is the same again when it is retained. Also for a real
 * GPU.
 */
#include "t/split/driver_victim.h"

#define CONTEXT_IS_DESTROYED 709

static void *primary, *below, *gone;
static pthread_barrier_t barrier;

void victim_hurt(void)
{
	OK(cuCtxPopCurrent_v2(&gone));
}

/* As it is current, it is @wanted. */
static void check_current(void *wanted, int result)
{
	CUdeviceptr address = 0;
	void *current = NULL;
	int device = -1, got;

	OK(cuCtxGetCurrent(&current));
	CHECK(current == wanted, "%p is current, not %p", current, wanted);
	OK(cuCtxGetDevice(&device));
	got = cuMemAlloc_v2(&address, 8);
	CHECK(got == result, "an allocation gives %d", got);
	if (!result)
		OK(cuMemFree_v2(address));
}

static void check_popped(void *wanted)
{
	void *popped = NULL;

	OK(cuCtxPopCurrent_v2(&popped));
	CHECK(popped == wanted, "%p was current, not %p", popped, wanted);
}

static void *thread(void *unused)
{
	OK(cuCtxSetCurrent(gone));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	check_current(gone, CONTEXT_IS_DESTROYED);
	OK(cuCtxSetCurrent(below));
	check_current(below, 0);
	return NULL;
}

static int on_stacks(void)
{
	pthread_t other;
	void *next;

	WORKS(cuCtxSetCurrent(primary));
	WORKS(cuCtxCreate_v2(&below, 0, 0));
	WORKS(cuCtxCreate_v2(&gone, 0, 0));
	WORKS(cuCtxPushCurrent_v2(primary));
	MUST(!pthread_barrier_init(&barrier, NULL, 2));
	MUST(!pthread_create(&other, NULL, thread, NULL));
	pthread_barrier_wait(&barrier);
	WORKS(cuCtxDestroy_v2(gone));
	victim_ready();
	victim_wait();
	pthread_barrier_wait(&barrier);
	pthread_join(other, NULL);
	check_current(primary, 0);
	check_popped(primary);
	check_current(gone, CONTEXT_IS_DESTROYED);
	check_popped(gone);
	check_current(below, 0);
	OK(cuCtxCreate_v2(&next, 0, 0));
	check_current(next, 0);
	check_popped(next);
	check_popped(below);
	check_popped(primary);
	return victim_done();
}

static int of_device(void)
{
	void *again = NULL;

	WORKS(cuCtxSetCurrent(primary));
	WORKS(cuDevicePrimaryCtxRelease_v2(0));
	victim_ready();
	victim_wait();
	check_current(primary, CONTEXT_IS_DESTROYED);
	OK(cuDevicePrimaryCtxRetain(&again, 0));
	CHECK(again == primary, "it is %p now, and was %p", again, primary);
	check_current(primary, 0);
	return victim_done();
}

int main(int argc, char **argv)
{
	WORKS(cuInit(0));
	WORKS(cuDevicePrimaryCtxRetain(&primary, 0));
	return argc > 1 ? of_device() : on_stacks();
}
