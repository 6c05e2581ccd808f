/* unfinished_kernels: kernels that have not run yet at a checkpoint: their results are in the image. */
#include "t/split/driver_victim.h"

#define COUNT 4096

static CUdeviceptr memory;

static void *load(const char *name)
{
	void *module = NULL, *function = NULL;

	OK(cuModuleLoadData(&module, "sim module"));
	OK(cuModuleGetFunction(&function, module, name));
	return function;
}

static void launch(void *function, uint64_t a, uint64_t b, uint64_t c)
{
	void *parameters[] = {&a, &b, &c};

	OK(cuLaunchKernel(function, COUNT / 32, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
}

void victim_hurt(void)
{
	OK(cuMemsetD32_v2(memory, 1, COUNT));
}

int main(void)
{
	static uint32_t words[COUNT];
	void *context = NULL, *sleep, *count;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuMemAlloc_v2(&memory, sizeof(words)));
	OK(cuMemsetD32_v2(memory, 0, COUNT));
	sleep = load("sleep");
	count = load("count");
	launch(sleep, 400000, 0, 0);
	launch(count, memory, 7, 0);
	victim_ready();
	victim_wait();
	OK(cuMemcpyDtoH_v2(words, memory, sizeof(words)));
	for (uint32_t i = 0; i < COUNT && !victim_failures; i++)
		CHECK(words[i] == i + 7, "word %u is %u", i, words[i]);
	return victim_done();
}
