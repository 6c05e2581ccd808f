/*
 * green: what doc/split-process.md would have to rely on for green contexts to be saved. Run by hand, natively:
 *
 *	gcc -I. -O1 -o green t/gpu/green.c -lcuda && ./green
 *
 * It says whether the driver splits a GPU in the same way each time and in each process, by the numbers of the
 * multiprocessors that kernels see; whether what it writes to a CUdevResource is the same in each process; and whether one of
 * another process can be used. A second process, which it starts itself, is given the bytes of the first one's as an argument,
 * which is internal.
 */
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t/gpu/driver_api.h"

#define MULTIPROCESSORS 1024
#define GROUPS          16
#define LEAST           16 /* multiprocessors in a group */
#define BLOCKS          20000
#define SHARED          40000 /* bytes, so that few blocks run side by side */

/* Adds one to word %smid of what `seen` leads to. */
static const char who[] = ".version 6.4\n.target sm_52\n.address_size 64\n"
			  ".visible .entry who(.param .u64 seen)\n{\n"
			  "	.reg .u32 %n<3>;\n	.reg .u64 %a<4>;\n"
			  "	ld.param.u64 %a1, [seen];\n"
			  "	cvta.to.global.u64 %a1, %a1;\n"
			  "	mov.u32 %n1, %smid;\n"
			  "	mul.wide.u32 %a2, %n1, 4;\n"
			  "	add.u64 %a3, %a1, %a2;\n"
			  "	red.global.add.u32 [%a3], 1;\n"
			  "	ret;\n}\n";

/* The whole device, the first two parts, and the rest. */
enum { WHOLE, FIRST, SECOND, REST, RESOURCES };
static const char *const names[RESOURCES] = {"the device", "part 0", "part 1", "the rest"};

struct seen {
	uint8_t by[MULTIPROCESSORS];
};

static CUdevice device;

static void split(CUdevResource *out)
{
	CUdevResource parts[GROUPS];
	unsigned groups = GROUPS;

	memset(out, 0, RESOURCES * sizeof(*out));
	memset(parts, 0, sizeof(parts));
	OK(cuDeviceGetDevResource(device, &out[WHOLE], CU_DEV_RESOURCE_TYPE_SM));
	OK(cuDevSmResourceSplitByCount(parts, &groups, &out[WHOLE], &out[REST], 0, LEAST));
	if (groups < 2) {
		printf("this GPU is too small: %u group\n", groups);
		exit(1);
	}
	out[FIRST] = parts[0];
	out[SECOND] = parts[1];
}

static void launch(CUdeviceptr counts)
{
	CUmodule module;
	CUfunction function;
	void *arguments[] = {&counts};

	OK(cuModuleLoadData(&module, who));
	OK(cuModuleGetFunction(&function, module, "who"));
	OK(cuLaunchKernel(function, BLOCKS, 1, 1, 32, 1, 1, SHARED, NULL, arguments, NULL));
	OK(cuCtxSynchronize());
	OK(cuModuleUnload(module));
}

/* Where kernels of a green context with @resource run. 0, or the driver's error for the resource. */
static int look(CUdevResource *resource, struct seen *s, CUcontext *address)
{
	static uint32_t counts[MULTIPROCESSORS];
	CUdevResourceDesc description;
	CUgreenCtx green;
	CUcontext popped;
	CUdeviceptr memory;
	int r = cuDevResourceGenerateDesc(&description, resource, 1);

	if (!r)
		r = cuGreenCtxCreate(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM);
	if (r)
		return r;
	OK(cuCtxFromGreenCtx(address, green));
	OK(cuCtxPushCurrent(*address));
	OK(cuMemAlloc(&memory, sizeof(counts)));
	OK(cuMemsetD32(memory, 0, MULTIPROCESSORS));
	launch(memory);
	OK(cuMemcpyDtoH(counts, memory, sizeof(counts)));
	OK(cuMemFree(memory));
	OK(cuCtxPopCurrent(&popped));
	OK(cuGreenCtxDestroy(green));
	for (int i = 0; i < MULTIPROCESSORS; i++)
		s->by[i] = counts[i] != 0;
	return 0;
}

static int look_or_say(
	const char *name, CUdevResource *resource, struct seen *s, CUcontext *address)
{
	const char *text = "?";
	int r = look(resource, s, address);

	if (r) {
		cuGetErrorString(r, &text);
		printf("%s: no green context can be made with it: %s\n", name, text);
	}
	return r;
}

static void print_seen(const char *name, const struct seen *s)
{
	printf("%s: multiprocessors", name);
	for (int i = 0; i < MULTIPROCESSORS; i++)
		if (s->by[i])
			printf(" %d", i);
	printf("\n");
}

/* Which bytes of two resources differ, and what the first has there. */
static void print_difference(const char *name, const char *which, const void *a, const void *b)
{
	const unsigned char *x = a, *y = b;
	unsigned differ = 0;

	for (size_t i = 0; i < sizeof(CUdevResource); i++)
		differ += x[i] != y[i];
	printf("%s, %s: %u bytes differ:", name, which, differ);
	for (size_t i = 0; i < sizeof(CUdevResource); i++)
		if (x[i] != y[i])
			printf(" [%zu] %02x/%02x", i, x[i], y[i]);
	printf("\n");
}

static void print_bytes(const char *name, const CUdevResource *resource)
{
	const unsigned char *x = (const unsigned char *)resource;

	printf("%s: %u multiprocessors, bytes", name, resource->sm.smCount);
	for (size_t i = 0; i < sizeof(*resource); i++)
		printf("%s%02x", i % 8 ? "" : " ", x[i]);
	printf("\n");
}

/* @given: of another process; NULL: none. Results are in @mine and @s. */
static void compare(CUdevResource *mine, struct seen *s, CUdevResource *given)
{
	CUdevResource again[RESOURCES];
	CUcontext context = NULL;

	split(mine);
	split(again);
	for (int i = 0; i < RESOURCES; i++) {
		struct seen other = {{0}};

		print_bytes(names[i], &mine[i]);
		print_difference(names[i], "split twice", &mine[i], &again[i]);
		if (given)
			print_difference(names[i], "in two processes", &mine[i], &given[i]);
		/* The rest may be empty, or too small. */
		if (look_or_say(names[i], &mine[i], &s[i], &context))
			continue;
		print_seen(names[i], &s[i]);
		printf("%s: its context was at %p\n", names[i], (void *)context);
		if (!look_or_say(names[i], &again[i], &other, &context))
			printf("%s: split again, it has %s multiprocessors\n", names[i],
				memcmp(&s[i], &other, sizeof(other)) ? "OTHER" : "the same");
		if (!given)
			continue;
		memset(&other, 0, sizeof(other));
		printf("%s: the other process's gives error %d", names[i],
			look(&given[i], &other, &context));
		printf(", and has %s multiprocessors\n",
			memcmp(&s[i], &other, sizeof(other)) ? "OTHER" : "the same");
	}
}

static void read_bytes(void *to, size_t size, const char *text)
{
	unsigned char *bytes = to;

	for (size_t i = 0; i < size && sscanf(text + 2 * i, "%2hhx", &bytes[i]) == 1; i++)
		;
}

/* With what this process has as an argument, in hexadecimal. */
static void start_other(char *self, const void *resources, size_t size)
{
	const unsigned char *bytes = resources;
	char *text = calloc(2, size + 1);
	pid_t child;

	for (size_t i = 0; i < size; i++)
		sprintf(text + 2 * i, "%02x", bytes[i]);
	fflush(stdout);
	child = fork();
	if (!child) {
		execl(self, self, text, (char *)NULL);
		_exit(127);
	}
	waitpid(child, NULL, 0);
	free(text);
}

int main(int argc, char **argv)
{
	static CUdevResource mine[RESOURCES], given[RESOURCES];
	static struct seen seen[RESOURCES];
	CUcontext context;

	OK(cuInit(0));
	OK(cuDeviceGet(&device, 0));
	OK(cuDevicePrimaryCtxRetain(&context, device));
	OK(cuCtxSetCurrent(context));
	if (argc > 1) {
		printf("---- another process ----\n");
		read_bytes(given, sizeof(given), argv[1]);
		compare(mine, seen, given);
		return 0;
	}
	compare(mine, seen, NULL);
	start_other(argv[0], mine, sizeof(mine));
	return 0;
}
