/*
 * linker PTX ROUNDS: linker states in every stage while the program works, each from options with logs to code that
 * is loaded and run: created, with text, complete, loaded. Prints hashes, and what the driver has written for options,
 * which do not depend on when it is checkpointed. It also finds out what trecr relies on: that the driver writes logs
 * to where cuLinkCreate was told, and that code which cuLinkComplete has given can be asked for again.
 */
#include <stdint.h>
#include <string.h>

#include "t/gpu/driver_api.h"

#define N      65536
#define LOG    4096
#define VALUES 4
#define STATES 4

static const CUjit_option options[VALUES] = {CU_JIT_INFO_LOG_BUFFER,
	CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
	CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};

struct linking {
	CUlinkState state;
	void *values[VALUES];
	char info[LOG], errors[LOG];
	void *code;
	size_t size;
	CUmodule module;
	CUfunction mix;
};

static struct linking linkings[STATES];
static char *ptx;
static size_t ptx_size;
static CUdeviceptr memory;

static void read_ptx(const char *path)
{
	FILE *f = fopen(path, "rb");

	ptx = calloc(1, 1 << 20);
	ptx_size = f ? fread(ptx, 1, (1 << 20) - 1, f) : 0;
	if (!ptx_size) {
		perror(path);
		exit(1);
	}
	fclose(f);
}

static void create(struct linking *l)
{
	memset(l, 0, sizeof(*l));
	memset(l->info, '?', LOG);
	memset(l->errors, '?', LOG);
	l->values[0] = l->info;
	l->values[1] = (void *)(uintptr_t)LOG;
	l->values[2] = l->errors;
	l->values[3] = (void *)(uintptr_t)LOG;
	OK(cuLinkCreate(VALUES, (CUjit_option *)options, l->values, &l->state));
}

static void complete(struct linking *l)
{
	void *again = NULL;
	size_t size = 0;

	OK(cuLinkComplete(l->state, &l->code, &l->size));
	/* Not documented: told once, on standard error, as it may differ from driver to driver. */
	if (cuLinkComplete(l->state, &again, &size) || again != l->code || size != l->size)
		fprintf(stderr, "a second cuLinkComplete gives something else\n");
}

static void load(struct linking *l)
{
	OK(cuModuleLoadData(&l->module, l->code));
	OK(cuModuleGetFunction(&l->mix, l->module, "mix"));
	OK(cuFuncSetAttribute(l->mix, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
}

static void end(struct linking *l)
{
	printf("logs of %u and %u bytes, errors \"%.20s\"\n", (unsigned)(uintptr_t)l->values[1],
		(unsigned)(uintptr_t)l->values[3], l->errors);
	OK(cuLinkDestroy(l->state));
	OK(cuModuleUnload(l->module));
	l->mix = NULL;
}

/* Each linker state is one stage further, and there is always one in each. */
static void advance(unsigned turn)
{
	for (unsigned i = 0; i < STATES; i++) {
		struct linking *l = &linkings[i];

		if (turn < i)
			continue;
		switch ((turn - i) % STATES) {
		case 0:
			if (l->state)
				end(l);
			create(l);
			break;
		case 1:
			OK(cuLinkAddData(l->state, CU_JIT_INPUT_PTX, ptx, ptx_size + 1, "text",
				0, NULL, NULL));
			break;
		case 2:
			complete(l);
			break;
		case 3:
			load(l);
		}
	}
}

static void run(unsigned round)
{
	void *mix[] = {&memory, &round};

	for (unsigned i = 0; i < STATES; i++)
		if (linkings[i].mix)
			OK(cuLaunchKernel(linkings[i].mix, N / 256, 1, 1, 256, 1, 1, 90000,
				NULL, mix, NULL));
}

static uint32_t result(void)
{
	static uint32_t host[N];
	uint32_t h = 0;

	OK(cuMemcpyDtoH(host, memory, N * 4));
	for (int i = 0; i < N; i++)
		h = h * 31 + host[i];
	return h;
}

int main(int argc, char **argv)
{
	int rounds = atoi(argv[2]);
	CUcontext context;
	CUdevice device;

	read_ptx(argv[1]);
	OK(cuInit(0));
	OK(cuDeviceGet(&device, 0));
	OK(cuDevicePrimaryCtxRetain(&context, device));
	OK(cuCtxSetCurrent(context));
	OK(cuMemAlloc(&memory, N * 4));
	OK(cuMemsetD32(memory, 17, N));
	for (int round = 0; round < rounds; round++) {
		if (round % 500 == 0) {
			advance(round / 500);
			printf("round %d: %08x\n", round, result());
			fflush(stdout);
		}
		run(round);
	}
	printf("end: %08x\n", result());
	return 0;
}
