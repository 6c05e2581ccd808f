/*
 * places SEED [all|large|contexts]: variables of modules and libraries, managed memory and reservations that come
 * and go at random, in up to three contexts, between streams and kernels that need memory for
 * local variables: over restarts, all that is left is where it was, with its contents. With
 * `all` also device, pinned, pooled and mapped memory, and one of the contexts on a second GPU where
 * there is one; with `large` most variables are of a size that modules have few of, so that one
 * has several places among whole blocks and ranges; with `contexts` as `all`, and contexts come and
 * go, too, some with what is in them. Also for a real GPU.
 */
#include <string.h>

#include "t/split/driver_victim.h"

#define ITEMS     60
#define CONTEXTS  3
#define VARIABLES 6
#define STEPS     150

enum kind {
	NONE,
	MODULE,
	LIBRARY,
	MEMORY,
	RESERVATION,
	STREAM,
	DEVICE, /* from here on with `all` */
	PINNED,
	POOLED,
	MAPPED,
	KINDS
};

static unsigned kinds = DEVICE;
static bool large, contexts_go;

static struct item {
	enum kind kind;
	void *handle, *context;
	unsigned count, seed;
	struct {
		CUdeviceptr address;
		size_t size;
	} variables[VARIABLES];
} items[ITEMS];

static void *contexts[CONTEXTS];
static uint64_t state;
static char text[4096], *copy;

void victim_hurt(void)
{
	cuMemsetD8_v2(items[0].variables[0].address, 1, 1);
}

static unsigned any(unsigned n)
{
	state = state * 6364136223846793005 + 1442695040888963407;
	return (state >> 33) % n;
}

/* Half a block and more, for the most part. */
static size_t any_large_size(void)
{
	switch (any(8)) {
	case 0:
	case 1:
		return 4 + any(600000);
	case 2:
	case 3:
		return MIB + any(MIB);
	case 4:
		return any(4) ? 2 * MIB : 33 * MIB;
	}
	return (1 + any(4)) * 2 * MIB - any(MIB);
}

/* Most are small, some are larger than a block, or than a range. */
static size_t any_size(void)
{
	if (large)
		return any_large_size();
	switch (any(16)) {
	case 0:
		return MIB + any(5 * MIB);
	case 1:
		return any(8) ? MIB : 33 * MIB;
	case 2:
	case 3:
		return 4 + any(900000);
	case 4:
	case 5:
	case 6:
		return 4 + any(20000);
	}
	return 4 + any(600);
}

static void write_text(struct item *i)
{
	size_t local = 1024ul << any(4);
	char *at = text;

	at += sprintf(at, ".version 7.0\n.target sm_52\n.address_size 64\n");
	for (unsigned v = 0; v < i->count; v++) {
		i->variables[v].size = any_size();
		at += sprintf(at, ".visible .global %s.align 4 .b8 v%u[%zu];\n",
			any(8) ? "" : ".attribute(.managed) ", v, i->variables[v].size);
	}
	sprintf(at,
		".visible .entry sleep\n(.param .u64 a, .param .u64 b, .param .u64 c)\n"
		"{\n\t.local .align 4 .b8 local[%zu];\n\t.reg .b64 %%rd<3>;\n"
		"\tld.param.u64 %%rd0, [a];\n\tmov.u64 %%rd1, local;\n"
		"\tcvta.local.u64 %%rd1, %%rd1;\n\tadd.s64 %%rd2, %%rd1, %%rd0;\n"
		"\tst.volatile.u64 [%%rd2], %%rd0;\n"
		"\tret;\n}\n",
		local);
}

static int find(const struct item *i, unsigned v, CUdeviceptr *address, size_t *size)
{
	char name[8];
	int r;

	sprintf(name, "v%u", v);
	if (i->kind == MODULE)
		return cuModuleGetGlobal_v2(address, size, i->handle, name);
	r = cuLibraryGetGlobal(address, size, i->handle, name);
	return r ? cuLibraryGetManaged(address, size, i->handle, name) : 0;
}

static void fill(struct item *i)
{
	for (unsigned v = 0; v < i->count; v++) {
		victim_fill(copy, i->variables[v].size, i->seed + v);
		if (i->kind == PINNED)
			memcpy((void *)i->variables[v].address, copy, i->variables[v].size);
		else
			WORKS(cuMemcpyHtoD_v2(
				i->variables[v].address, copy, i->variables[v].size));
	}
}

static void find_all(struct item *i)
{
	size_t size;

	for (unsigned v = 0; v < i->count; v++)
		MUST(!find(i, v, &i->variables[v].address, &size) &&
			size == i->variables[v].size);
	fill(i);
}

static void check_item(const struct item *i)
{
	for (unsigned v = 0; v < i->count; v++) {
		CUdeviceptr address = 0;
		size_t size;

		if (i->kind == MODULE || i->kind == LIBRARY) {
			OK(find(i, v, &address, &size));
			CHECK(address == i->variables[v].address, "it is at %#lx, not %#lx",
				address, i->variables[v].address);
		}
		if (i->kind == PINNED)
			memcpy(copy, (void *)i->variables[v].address, i->variables[v].size);
		else
			OK(cuMemcpyDtoH_v2(
				copy, i->variables[v].address, i->variables[v].size));
		SAME(copy, i->variables[v].size, i->seed + v, "a variable");
	}
}

/* What it has lies in the context it was made in. */
static void enter(const struct item *i)
{
	WORKS(cuCtxSetCurrent(i->context));
}

static void launch(const struct item *i)
{
	uint64_t zero = 0;
	void *function, *parameters[] = {&zero, &zero, &zero};

	WORKS(cuModuleGetFunction(&function, i->handle, "sleep"));
	WORKS(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
	WORKS(cuCtxSynchronize());
}

static void map(CUdeviceptr *address, size_t size)
{
	struct {
		int type, handles, location, id;
		uint64_t rest[9];
	} where = {.type = 1, .location = 1};
	struct {
		int location, id, flags;
	} access = {.location = 1, .flags = 3};
	uint64_t handle;

	WORKS(cuCtxGetDevice(&where.id));
	access.id = where.id;
	WORKS(cuMemAddressReserve(address, size, 0, 0, 0));
	WORKS(cuMemCreate(&handle, size, &where, 0));
	WORKS(cuMemMap(*address, size, 0, handle, 0));
	WORKS(cuMemSetAccess(*address, size, &access, 1));
	WORKS(cuMemRelease(handle));
}

static void make_memory(struct item *i)
{
	CUdeviceptr *address = &i->variables[0].address;

	i->variables[0].size = i->kind == MAPPED ? (1 + any(16)) * 2 * MIB : any_size() / 4 * 4;
	if (i->kind == DEVICE)
		WORKS(cuMemAlloc_v2(address, i->variables[0].size));
	else if (i->kind == PINNED)
		WORKS(cuMemHostAlloc((void **)address, i->variables[0].size, 0));
	else if (i->kind == POOLED)
		WORKS(cuMemAllocAsync(address, i->variables[0].size, NULL));
	else
		map(address, i->variables[0].size);
	fill(i);
}

static void free_memory(const struct item *i)
{
	CUdeviceptr address = i->variables[0].address;
	size_t size = i->variables[0].size;

	if (i->kind == DEVICE) {
		WORKS(cuMemFree_v2(address));
	} else if (i->kind == PINNED) {
		WORKS(cuMemFreeHost((void *)address));
	} else if (i->kind == POOLED) {
		WORKS(cuMemFreeAsync(address, NULL));
	} else {
		WORKS(cuMemUnmap(address, size));
		WORKS(cuMemAddressFree(address, size));
	}
}

static void make_item(struct item *i)
{
	i->kind = 1 + any(kinds - 1);
	i->context = contexts[any(CONTEXTS)];
	i->seed = any(1000000);
	i->count = i->kind <= LIBRARY ? any(VARIABLES + 1)
				      : i->kind == MEMORY || i->kind >= DEVICE;
	enter(i);
	switch (i->kind) {
	case MODULE:
		write_text(i);
		WORKS(cuModuleLoadData(&i->handle, text));
		find_all(i);
		break;
	case LIBRARY:
		write_text(i);
		WORKS(cuLibraryLoadData(&i->handle, text, NULL, NULL, 0, NULL, NULL, 0));
		find_all(i);
		break;
	case MEMORY:
		i->variables[0].size = any_size();
		WORKS(cuMemAllocManaged(&i->variables[0].address, i->variables[0].size, 1));
		fill(i);
		break;
	case RESERVATION:
		i->variables[0].size = (1 + any(40)) * 2 * MIB;
		WORKS(cuMemAddressReserve(
			&i->variables[0].address, i->variables[0].size, 0, 0, 0));
		break;
	case STREAM:
		WORKS(cuStreamCreate(&i->handle, 0));
		break;
	default:
		make_memory(i);
	}
}

static void end(struct item *i)
{
	enter(i);
	check_item(i);
	switch (i->kind) {
	case MODULE:
		WORKS(cuModuleUnload(i->handle));
		break;
	case LIBRARY:
		WORKS(cuLibraryUnload(i->handle));
		break;
	case MEMORY:
		WORKS(cuMemFree_v2(i->variables[0].address));
		break;
	case RESERVATION:
		WORKS(cuMemAddressFree(i->variables[0].address, i->variables[0].size));
		break;
	case STREAM:
		WORKS(cuStreamDestroy_v2(i->handle));
		break;
	default:
		free_memory(i);
	}
	i->kind = NONE;
}

static bool goes_with_context(enum kind kind)
{
	return kind == MODULE || kind == MEMORY || kind == STREAM || kind == DEVICE ||
	       kind == PINNED;
}

static void make_context(int n)
{
	int devices;

	WORKS(cuDeviceGetCount(&devices));
	WORKS(cuCtxCreate_v2(
		&contexts[n], 0, n == CONTEXTS - 1 && kinds == KINDS && devices > 1));
}

/* Another takes its place. */
static void end_context(int n)
{
	for (struct item *i = items; i < items + ITEMS; i++) {
		if (i->kind == NONE || i->context != contexts[n])
			continue;
		if (any(2) || !goes_with_context(i->kind))
			end(i);
		i->kind = NONE;
	}
	WORKS(cuCtxDestroy_v2(contexts[n]));
	make_context(n);
}

static void play(unsigned steps)
{
	while (steps--) {
		struct item *i = &items[any(ITEMS)];

		if (contexts_go && !any(15))
			end_context(1 + any(CONTEXTS - 1));
		if (i->kind == NONE) {
			make_item(i);
		} else if (i->kind == MODULE && !any(4)) {
			enter(i);
			launch(i);
		} else if (any(2)) {
			end(i);
		}
	}
}

static void check_all(void)
{
	for (struct item *i = items; i < items + ITEMS; i++) {
		if (i->kind == NONE)
			continue;
		enter(i);
		check_item(i);
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[2] : "";

	state = strtoul(argv[1], NULL, 10);
	large = !strcmp(how, "large");
	contexts_go = !strcmp(how, "contexts");
	copy = malloc(34 * MIB);
	WORKS(cuInit(0));
	WORKS(cuDevicePrimaryCtxRetain(&contexts[0], 0));
	kinds = contexts_go || !strcmp(how, "all") ? KINDS : DEVICE;
	for (int i = 1; i < CONTEXTS; i++)
		make_context(i);
	play(STEPS);
	check_all();
	victim_ready();
	victim_wait();
	check_all();
	play(STEPS);
	check_all();
	return victim_done();
}
