/*
 * settings [WHAT]: what belongs to no object, or to several, and numbers and names that come
 * from the driver, on two devices: settings of default streams, of contexts not made yet,
 * access between contexts, variables that a library has in each context. WHAT is something that
 * cannot be restored, held as well.
 */
#include "t/split/driver_victim.h"

#define LEGACY       ((void *)1)
#define PER_THREAD   ((void *)2)
#define PEER_ENABLED 704
#define CACHE_CONFIG 16 /* an attribute of t/sim/module.c's own */

static void *first, *second, *own;
static void *library, *kernel, *function, *event;
static CUdeviceptr variables[3]; /* of the library, in each context */
static const char *kernel_name, *function_name;
static uint64_t context_numbers[3], stream_numbers[3];
static void *streams[2];
static CUdeviceptr managed[3];
static CUdeviceptr far[3]; /* on the second device: small, large, from its pool */

void victim_hurt(void)
{
	uint32_t wrong = 9;

	OK(cuCtxSetCurrent(second));
	OK(cuMemcpyHtoD_v2(variables[1], &wrong, 4));
	OK(cuCtxSetCurrent(first));
}

static void *context(int i)
{
	return i == 0 ? first : i == 1 ? second : own;
}

/* A table that need not stay. */
static void load_library(void)
{
	static void *word;
	volatile uint64_t table[4] = {(uint64_t)&word, 8, (uint64_t)&word, 8};
	const int options[] = {1, 0};
	void *values[] = {(void *)1, (void *)table};

	OK(cuLibraryLoadData(&library,
		"sim module\n.global .b8 own[4];\n.global .attribute(.managed) .b8 both[4];\n",
		NULL, NULL, 0, options, values, 2));
	table[0] = table[2] = 0;
}

/* Some are made while another is current that is no more afterwards. */
static void make_contexts(void)
{
	void *gone;

	OK(cuDevicePrimaryCtxSetFlags_v2(0, 4));
	OK(cuDevicePrimaryCtxRetain(&first, 0));
	OK(cuCtxCreate_v2(&gone, 0, 1));
	OK(cuCtxCreate_v2(&own, 0, 0));
	OK(cuDevicePrimaryCtxRetain(&second, 1));
	OK(cuCtxSetCurrent(gone));
	load_library();
	OK(cuLibraryGetKernel(&kernel, library, "count"));
	OK(cuCtxDestroy_v2(gone));
	OK(cuDevicePrimaryCtxSetFlags_v2(2, 1));
	OK(cuCtxSetCurrent(first));
}

/* @first has access to @second already. At the end it has, but not the other way round. */
static void change_peers(void)
{
	OK(cuCtxDisablePeerAccess(second));
	OK(cuCtxEnablePeerAccess(second, 0));
	OK(cuCtxSetCurrent(second));
	OK(cuCtxEnablePeerAccess(first, 0));
	OK(cuCtxDisablePeerAccess(first));
	OK(cuCtxSetCurrent(first));
}

static void make_peers(void)
{
	OK(cuCtxEnablePeerAccess(second, 0));
	change_peers();
}

/* Found by what is in the module, not asked for. */
static void fill_variables(uint32_t seed)
{
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t value = seed + i;
		size_t size;

		OK(cuCtxSetCurrent(context(i)));
		OK(cuLibraryGetGlobal(&variables[i], &size, library, "own"));
		OK(cuMemcpyHtoD_v2(variables[i], &value, 4));
	}
	OK(cuCtxSetCurrent(first));
}

/* It is found by its name, and not asked for again. */
static void fill_managed_variable(uint32_t value)
{
	static CUdeviceptr variable;
	size_t size;

	if (!variable)
		OK(cuLibraryGetManaged(&variable, &size, library, "both"));
	else
		CHECK(*(uint32_t *)variable == value - 1, "it is %u", *(uint32_t *)variable);
	*(uint32_t *)variable = value;
}

static void check_variables(uint32_t seed)
{
	for (uint32_t i = 0; i < 3; i++) {
		CUdeviceptr now = 0;
		uint32_t value = 0;
		size_t size;

		OK(cuCtxSetCurrent(context(i)));
		OK(cuLibraryGetGlobal(&now, &size, library, "own"));
		OK(cuMemcpyDtoH_v2(&value, variables[i], 4));
		CHECK(now == variables[i], "%#lx, not %#lx", now, variables[i]);
		CHECK(value == seed + i, "in context %u it is %u", i, value);
	}
	OK(cuCtxSetCurrent(first));
}

static void make_names(void)
{
	OK(cuKernelGetFunction(&function, kernel));
	OK(cuKernelGetName(&kernel_name, kernel));
	OK(cuFuncGetName(&function_name, function));
	for (int i = 0; i < 2; i++)
		OK(cuStreamCreate(&streams[i], 0));
	for (int i = 0; i < 3; i++)
		OK(cuCtxGetId(context(i), &context_numbers[i]));
	OK(cuStreamGetId(NULL, &stream_numbers[0]));
	OK(cuStreamGetId(streams[0], &stream_numbers[1]));
	OK(cuStreamGetId(streams[1], &stream_numbers[2]));
}

static int is_among(uint64_t number, const uint64_t *numbers)
{
	return number == numbers[0] || number == numbers[1] || number == numbers[2];
}

static void check_names(void)
{
	uint64_t number = 0;
	void *new_stream, *new_context;

	CHECK(!strcmp(kernel_name, "count"), "a kernel's name is \"%s\"", kernel_name);
	CHECK(!strcmp(function_name, "count"), "a function's name is \"%s\"", function_name);
	for (int i = 0; i < 3; i++) {
		OK(cuCtxGetId(context(i), &number));
		CHECK(number == context_numbers[i], "context %d is %lu", i, number);
		OK(cuStreamGetId(i ? streams[i - 1] : LEGACY, &number));
		CHECK(number == stream_numbers[i], "stream %d is %lu", i, number);
	}
	for (int i = 0; i < 300; i++) {
		OK(cuStreamCreate(&new_stream, 0));
		OK(cuStreamGetId(new_stream, &number));
		CHECK(!is_among(number, stream_numbers), "a new stream has an old number");
		OK(cuStreamDestroy_v2(new_stream));
		OK(cuCtxCreate_v2(&new_context, 0, 0));
		OK(cuCtxGetId(new_context, &number));
		CHECK(!is_among(number, context_numbers), "a new context has an old number");
		OK(cuCtxDestroy_v2(new_context));
	}
}

static void make_settings(void)
{
	void *graph, *node;

	OK(cuStreamSetAttribute(NULL, 1, (uint64_t[8]){1, 2}));
	OK(cuStreamSetAttribute(LEGACY, 3, (uint64_t[8]){3}));
	OK(cuKernelSetAttribute(8, 1234, kernel, 0));
	/* An event that was put into a graph which is no more. */
	OK(cuEventCreate(&event, 0));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddEventRecordNode(&node, graph, NULL, 0, event));
	OK(cuGraphEventRecordNodeSetEvent(node, event));
	OK(cuGraphDestroy(graph));
}

static void check_settings(void)
{
	uint64_t value[8] = {0};
	unsigned flags = 0;
	int number = 0;

	OK(cuStreamGetAttribute(NULL, 1, value));
	CHECK(value[0] == 1 && value[1] == 2, "%lu %lu", value[0], value[1]);
	OK(cuStreamGetAttribute(NULL, 3, value));
	CHECK(value[0] == 3, "%lu", value[0]);
	OK(cuKernelGetAttribute(&number, 8, kernel, 0));
	CHECK(number == 1234, "attribute %d", number);
	OK(cuDevicePrimaryCtxGetState(2, &flags, &number));
	CHECK(flags == 1 && !number, "flags %u", flags);
	OK(cuDevicePrimaryCtxGetState(0, &flags, &number));
	CHECK(flags == 4 && number, "flags %u", flags);
	for (int i = 1; i >= 0; i--) { /* it stays the first's */
		OK(cuCtxGetDevice(&number));
		CHECK(number == 0, "device %d", number);
		OK(cuCtxSetCurrent(i ? second : first));
		OK(cuCtxGetDevice(&number));
		CHECK(number == i, "device %d, not %d", number, i);
		OK(cuCtxSetCurrent(first));
	}
	OK(cuEventRecord(event, NULL));
	CHECK(cuCtxEnablePeerAccess(second, 0) == PEER_ENABLED, "no access to the peer");
	change_peers();
}

#define FAR_SIZE (3 * MIB)

static void make_far(void)
{
	char *copy = malloc(FAR_SIZE);

	OK(cuCtxSetCurrent(second));
	OK(cuMemAlloc_v2(&far[0], 1000));
	OK(cuMemAlloc_v2(&far[1], FAR_SIZE));
	OK(cuMemAllocAsync(&far[2], 1000, NULL));
	for (int i = 0; i < 3; i++) {
		uint64_t size = i == 1 ? FAR_SIZE : 1000;

		victim_fill(copy, size, i);
		OK(cuMemcpyHtoD_v2(far[i], copy, size));
	}
	OK(cuCtxSetCurrent(first));
	free(copy);
}

static void check_far(void)
{
	char *copy = malloc(FAR_SIZE);

	for (int i = 0; i < 3; i++) {
		uint64_t size = i == 1 ? FAR_SIZE : 1000;
		int device = -1;

		OK(cuPointerGetAttribute(&device, 9, far[i]));
		CHECK(device == 1, "it is on device %d", device);
		OK(cuMemcpyDtoH_v2(copy, far[i], size));
		SAME(copy, size, i, "memory of the second device");
	}
	OK(cuCtxSetCurrent(second));
	for (int i = 0; i < 3; i++)
		OK(cuMemFree_v2(far[i]));
	OK(cuCtxSetCurrent(first));
	free(copy);
}

#define ON_DEVICE(n) (1 | (uint64_t)(n) << 32) /* CUmemLocation */

static void make_managed(void)
{
	void *gone;

	for (int i = 0; i < 3; i++)
		OK(cuMemAllocManaged(&managed[i], 100000, 1));
	OK(cuMemAdvise_v2(managed[0], 100000, 1, ON_DEVICE(0)));
	OK(cuMemAdvise_v2(managed[0], 50000, 3, ON_DEVICE(1)));
	OK(cuMemAdvise(managed[1] + 10, 1000, 1, 0));
	OK(cuMemAdvise(managed[1] + 10, 1000, 2, 0));
	OK(cuMemAdvise(managed[2], 100000, 2, 0));
	OK(cuMemAdvise(managed[2], 100000, 1, 0));
	OK(cuMemAdvise(managed[2], 100000, 2, 0));
	OK(cuMemAdvise(managed[2], 100000, 1, 0));
	OK(cuStreamAttachMemAsync(streams[1], managed[0], 0, 4));
	OK(cuStreamAttachMemAsync(NULL, managed[1], 0, 2));
	OK(cuStreamCreate(&gone, 0));
	OK(cuStreamAttachMemAsync(gone, managed[2], 0, 4));
	OK(cuStreamDestroy_v2(gone));
}

static int range_attribute(int attribute, CUdeviceptr address)
{
	int value = -1;

	OK(cuMemRangeGetAttribute(&value, 4, attribute, address, 100));
	return value;
}

static void check_managed(void)
{
	static const int read_mostly[] = {1, 0, 1}, preferred[] = {1, -1, -1},
			 attached[] = {4 + 8, 2, 0};

	for (int i = 0; i < 3; i++) {
		int is_read = range_attribute(1, managed[i]);
		int where = range_attribute(2, managed[i]);
		int to = range_attribute(900, managed[i]);

		CHECK(is_read == read_mostly[i], "%d: read mostly: %d", i, is_read);
		CHECK(where == preferred[i], "%d: on device %d", i, where);
		CHECK(i == 2 || to == attached[i], "%d: attached %d", i, to);
	}
}

/* Functions of a module as libcufft finds them, by a function without a name: they are the same
 * as by name. */
static struct {
	void *module;
	CUdeviceptr variable;
	void *functions[16];
	unsigned count;
} found;

static void take_function(void *data, void *one)
{
	found.functions[found.count++ % 16] = one;
	CHECK(data == &found, "the callback is given something else");
}

static unsigned find_functions(void)
{
	unsigned char id[16] = {0x6e, 0x16, 0x3f, 0xbe};
	int (**table)(void *, void *, void (*)(void *, void *), void *);

	OK(cuGetExportTable((const void **)&table, id));
	return table[7](first, found.module, take_function, &found);
}

static void count_with(void *one, uint32_t wanted)
{
	uint64_t n = wanted;
	uint32_t value = 0;

	OK(cuLaunchKernel(
		one, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&found.variable, &n, &n}, NULL));
	OK(cuMemcpyDtoH_v2(&value, found.variable, 4));
	CHECK(value == wanted, "the kernel has written %u", value);
}

static void *found_by_name(const char *wanted)
{
	const char *name = "";
	unsigned i = 0;

	while (i < found.count && i < 16 && strcmp(name, wanted))
		OK(cuFuncGetName(&name, found.functions[i++]));
	MUST(!strcmp(name, wanted));
	return found.functions[i - 1];
}

static void make_found(void)
{
	void *named = NULL;
	unsigned count;

	OK(cuModuleLoadData(&found.module, "sim module\n"));
	OK(cuMemAlloc_v2(&found.variable, 4));
	OK(cuModuleGetFunctionCount(&count, found.module));
	CHECK(find_functions() == count && found.count == count, "%u functions of %u",
		found.count, count);
	OK(cuModuleGetFunction(&named, found.module, "count"));
	CHECK(named == found_by_name("count"), "it is not the one of that name");
	OK(cuFuncSetAttribute(found_by_name("count"), 8, 4321));
	OK(cuFuncSetCacheConfig(found_by_name("count"), 2));
	count_with(named, 11);
}

static void check_found(void)
{
	void *one = found_by_name("count");
	int value = 0;

	OK(cuFuncGetAttribute(&value, 8, one));
	CHECK(value == 4321, "attribute %d", value);
	OK(cuFuncGetAttribute(&value, CACHE_CONFIG, one));
	CHECK(value == 2, "cache configuration %d", value);
	count_with(one, 12);
	found.count = 0;
	find_functions();
	CHECK(one == found_by_name("count"), "it is another one now");
}

static const char on_page[4096] __attribute__((aligned(4096))) = "sim module\n";

/* A function out of other tables without names is no object of ours. */
static void use_hidden_function(const char *how)
{
	static const unsigned char id[16] = {0x6b, 0xd5, 0xfb, 0x6c};
	struct {
		unsigned grid[3], block[3], shared;
		void *stream, *attributes;
		unsigned attribute_count;
	} config = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
	int (**table)(void **, void *, const char *);
	void *hidden = NULL, *parameters[] = {&found.variable, &(uint64_t){1}, &(uint64_t){1}};
	int value;

	OK(cuGetExportTable((const void **)&table, id));
	OK(table[6](&hidden, found.module, "count"));
	if (!strcmp(how, "set"))
		OK(cuFuncSetAttribute(hidden, 8, 4321));
	if (!strcmp(how, "cache"))
		OK(cuFuncSetCacheConfig(hidden, 2));
	if (!strcmp(how, "ask"))
		OK(cuFuncGetAttribute(&value, 8, hidden));
	if (!strcmp(how, "launch"))
		OK(cuLaunchKernel(hidden, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	if (!strcmp(how, "launch-ex"))
		OK(cuLaunchKernelEx(&config, hidden, parameters, NULL));
}

/* Nobody knows what is behind it. */
static void call_unknown(void)
{
	int (**table)(int, int);
	unsigned char id[16];

	memset(id, 0x99, sizeof(id));
	OK(cuGetExportTable((const void **)&table, id));
	CHECK(table[1](5, 6) == 30, "a function without a name gives something else");
}

static void hold(const char *what)
{
	void *graph, *executable;
	uint64_t seed = 100;
	unsigned groups = 1;
	char parts[200];

	if (!strcmp(what, "thread-stream"))
		OK(cuStreamSetAttribute(PER_THREAD, 5, (uint64_t[8]){7}));
	if (!strcmp(what, "list"))
		OK(cuModuleLoadDataEx(&graph, "sim module\n", 1, (int[]){17}, &executable));
	if (!strcmp(what, "gone")) {
		OK(cuModuleLoadData(&graph, on_page));
		munmap((void *)on_page, sizeof(on_page));
	}
	if (!strcmp(what, "memory"))
		OK(cuPointerSetAttribute(&groups, 6, managed[0]));
	if (!strcmp(what, "unknown"))
		call_unknown();
	if (!strncmp(what, "function-", 9))
		use_hidden_function(what + 9);
	if (!strcmp(what, "parts"))
		OK(cuDevSmResourceSplitByCount(parts, &groups, parts, parts, 0, 8));
	if (!strcmp(what, "heap")) {
		OK(cuModuleLoadData(&graph, "sim module\n.visible .entry count(\n)\n{\n\tcall "
					    "(r), malloc, (n);\n}\n"));
		OK(cuModuleGetFunction(&executable, graph, "count"));
		OK(cuLaunchKernel(executable, 1, 1, 1, 1, 1, 1, 0, NULL,
			(void *[]){&variables[0], &seed, &seed}, NULL));
	}
	if (!strcmp(what, "graph-memory")) {
		OK(cuGraphCreate(&graph, 0));
		OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
		OK(cuGraphExecDestroy(executable));
		OK(cuGraphDestroy(graph));
	}
}

/* Of more, after the driver has been asked something. */
static void choose_devices(void)
{
	int version = 0;

	OK(cuDriverGetVersion(&version));
	MUST(!setenv("CUDA_VISIBLE_DEVICES", "0,1,2", 1));
}

static void check_devices(void)
{
	int count = 0;

	OK(cuDeviceGetCount(&count));
	CHECK(count == 3, "%d devices", count);
}

int main(int argc, char **argv)
{
	choose_devices();
	WORKS(cuInit(0));
	make_contexts();
	make_peers();
	make_names();
	make_settings();
	make_managed();
	make_far();
	make_found();
	fill_variables(100);
	fill_managed_variable(7);
	if (argc > 1)
		hold(argv[1]);
	victim_ready();
	victim_wait();
	check_devices();
	check_variables(100);
	check_names();
	check_settings();
	check_managed();
	check_far();
	check_found();
	fill_variables(200);
	fill_managed_variable(8);
	check_variables(200);
	OK(cuLibraryUnload(library));
	return victim_done();
}
