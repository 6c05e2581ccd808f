/* one_kind_of_memory managed|mapped: memory of one kind and no other, held over checkpoints and restarts. */
#include "t/split/driver_victim.h"
#include "t/split/memory_kinds.h"

#define SIZE  (2 * MIB)
#define COUNT 3

static CUdeviceptr parts[COUNT];

void victim_hurt(void)
{
	cuMemsetD32_v2(parts[1], 0, 10);
}

static void make_managed(void)
{
	for (int i = 0; i < COUNT; i++)
		WORKS(cuMemAllocManaged(&parts[i], SIZE, 1));
}

/* As PyTorch does with expandable segments. */
static void make_mapped(void)
{
	CUdeviceptr base;
	uint64_t handle;

	WORKS(cuMemAddressReserve(&base, 10 * SIZE, 0, 0, 0));
	for (int i = 0; i < COUNT; i++) {
		parts[i] = base + 2 * i * SIZE;
		WORKS(cuMemCreate(&handle, SIZE, &on_device, 0));
		WORKS(cuMemMap(parts[i], SIZE, 0, handle, 0));
		WORKS(cuMemSetAccess(parts[i], SIZE, &reachable, 1));
		WORKS(cuMemRelease(handle));
	}
}

int main(int argc, char **argv)
{
	char *copy = malloc(SIZE);
	void *context;

	WORKS(cuInit(0));
	WORKS(cuDevicePrimaryCtxRetain(&context, 0));
	WORKS(cuCtxSetCurrent(context));
	if (argc > 1 && !strcmp(argv[1], "managed"))
		make_managed();
	else
		make_mapped();
	for (int i = 0; i < COUNT; i++) {
		victim_fill(copy, SIZE, i);
		WORKS(cuMemcpyHtoD_v2(parts[i], copy, SIZE));
	}
	victim_ready();
	victim_wait();
	for (int i = 0; i < COUNT; i++) {
		WORKS(cuMemcpyDtoH_v2(copy, parts[i], SIZE));
		SAME(copy, SIZE, i, "device memory");
		CHECK(!cuMemsetD32_v2(parts[i], 1, 10), "it cannot be used");
	}
	return victim_done();
}
