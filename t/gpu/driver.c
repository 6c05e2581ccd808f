/*
 * driver PTX ROUNDS: a program on the driver API, with a module that is compiled when it is
 * loaded, a context of its own beside the primary one, and variables by name. Prints hashes
 * that do not depend on when it is checkpointed.
 */
#include <stdint.h>

#include "t/gpu/driver_api.h"

#define N 65536

static char *read_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *text = calloc(1, 1 << 20);

	if (!f || !fread(text, 1, (1 << 20) - 1, f)) {
		perror(path);
		exit(1);
	}
	fclose(f);
	return text;
}

struct side {
	CUcontext context;
	CUmodule module;
	CUfunction mix, count;
	CUstream stream;
	CUdeviceptr memory, counter;
	size_t size;
};

static void set_up(struct side *s, const char *ptx)
{
	int priority;

	OK(cuCtxGetStreamPriorityRange(NULL, &priority));
	OK(cuStreamCreateWithPriority(&s->stream, CU_STREAM_NON_BLOCKING, priority));
	OK(cuModuleLoadData(&s->module, ptx));
	OK(cuModuleGetFunction(&s->mix, s->module, "mix"));
	OK(cuModuleGetFunction(&s->count, s->module, "count"));
	OK(cuModuleGetGlobal(&s->counter, &s->size, s->module, "counter"));
	OK(cuFuncSetAttribute(s->mix, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
	OK(cuMemAlloc(&s->memory, N * 4));
	OK(cuMemsetD32(s->memory, 17, N));
	/* The stream does not wait for that by itself. */
	OK(cuCtxSynchronize());
}

static void run(struct side *s, unsigned round)
{
	void *mix[] = {&s->memory, &round}, *count[] = {&s->memory};

	OK(cuLaunchKernel(s->mix, N / 256, 1, 1, 256, 1, 1, 90000, s->stream, mix, NULL));
	OK(cuLaunchKernel(s->count, 1, 1, 1, 1, 1, 1, 0, s->stream, count, NULL));
}

static uint32_t result(struct side *s)
{
	static uint32_t host[N];
	uint32_t h = 0, counter;

	OK(cuStreamSynchronize(s->stream));
	OK(cuMemcpyDtoH(host, s->memory, N * 4));
	OK(cuMemcpyDtoH(&counter, s->counter, 4));
	for (int i = 0; i < N; i++)
		h = h * 31 + host[i];
	return h + counter;
}

int main(int argc, char **argv)
{
	int rounds = atoi(argv[2]), priority;
	char *ptx = read_file(argv[1]);
	struct side primary = {0}, own = {0};
	CUcontext popped;
	CUdevice device;
	unsigned flags;

	OK(cuInit(0));
	OK(cuDeviceGet(&device, 0));
	OK(cuDevicePrimaryCtxRetain(&primary.context, device));
	OK(cuCtxSetCurrent(primary.context));
	set_up(&primary, ptx);
	OK(cuCtxCreate(&own.context, NULL, CU_CTX_SCHED_YIELD, device));
	set_up(&own, ptx);
	free(ptx);
	for (int round = 0; round < rounds; round++) {
		run(&own, round);
		OK(cuCtxPushCurrent(primary.context));
		run(&primary, round * 3);
		if (round % (rounds / 8 + 1) == 0) {
			printf("round %d: %08x", round, result(&primary));
			OK(cuCtxPopCurrent(&popped));
			printf(" %08x\n", result(&own));
			fflush(stdout);
		} else {
			OK(cuCtxPopCurrent(&popped));
		}
	}
	OK(cuCtxGetFlags(&flags));
	OK(cuStreamGetPriority(own.stream, &priority));
	printf("end: %08x, flags %x, priority %d\n", result(&own), flags, priority);
	OK(cuCtxPushCurrent(primary.context));
	printf("%08x\n", result(&primary));
	return 0;
}
