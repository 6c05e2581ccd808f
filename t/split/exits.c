/*
 * The driver shuts down at exit, in a handler that it has registered in cuInit(): handlers that were
 * registered later may still use it, earlier handlers get an error, and a thread may go on reading
 * pinned memory until the process ends.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "t/split/setup.h"

#define SIZE 65536

static CUdeviceptr memory;
static volatile unsigned char *pinned;
static atomic_int rounds;

static void *read_pinned(void *argument)
{
	(void)argument;
	for (;;) {
		unsigned sum = 0;

		for (int i = 0; i < SIZE; i++)
			sum += pinned[i];
		CHECK(sum == SIZE * 7u);
		rounds++;
	}
	return NULL;
}

static void await_rounds(void)
{
	int now = rounds;

	while (rounds < now + 3)
		sched_yield();
}

/* Of each way of a call into the driver: as it is, with a handle, with a record, with a body. */
static void use_before_shutdown(void)
{
	void *stream;
	unsigned value = 0;

	OK(cuStreamCreate(&stream, 0));
	OK(cuMemcpyDtoH_v2(&value, memory, sizeof(value)));
	OK(cuStreamSynchronize(stream));
	OK(cuStreamDestroy_v2(stream));
}

static void use_after_shutdown(void)
{
	void *stream, *retained;
	unsigned value = 0;
	size_t free_size, total;

	CHECK_RESULT(cuInit(0), 4);
	CHECK_RESULT(cuMemGetInfo_v2(&free_size, &total), 4);
	CHECK_RESULT(cuStreamCreate(&stream, 0), 4);
	CHECK_RESULT(cuMemcpyDtoH_v2(&value, memory, sizeof(value)), 4);
	CHECK_RESULT(cuMemFreeHost((void *)pinned), 4);
	CHECK_RESULT(cuDevicePrimaryCtxRetain(&retained, 0), 4);
	CHECK_RESULT(cuDevicePrimaryCtxRelease_v2(0), 4);
	await_rounds();
	puts("done");
}

int main(void)
{
	pthread_t thread;
	void *host;

	atexit(use_after_shutdown);
	set_up();
	atexit(use_before_shutdown);
	OK(cuMemAlloc_v2(&memory, SIZE));
	OK(cuMemAllocHost_v2(&host, SIZE));
	memset(host, 7, SIZE);
	pinned = host;
	CHECK(!pthread_create(&thread, NULL, read_pinned, NULL));
	await_rounds();
	return 0;
}
