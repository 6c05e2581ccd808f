/*
 * Objects of every kind go on being what they were: contexts with their settings and on
 * threads' stacks, streams, events and the time between them, modules and libraries with
 * variables at their addresses, functions, kernels, attributes, what a library keeps with a
 * context. Some are destroyed before the checkpoint, so that nothing can be made again in the
 * old order of calls. An object that is no more is an error, and stays one.
 */
#include "stubs/cuda/launch_config.h"
#include "t/split/driver_victim.h"

#define INVALID_HANDLE  400
#define CAPTURE_RELAXED 2
#define THREADS         3

static void *primary, *own;
static void *streams[4], *stream_dead;
static uint64_t stream_number;
static void *first, *second, *later, *never, *untimed, *event_dead;
static float elapsed_before;
static void *modules[3], *module_dead, *functions[3], *library, *kernel, *kernel_function;
static void *function_dead;
static CUdeviceptr counter, large, in_library, kept;
static int storage_key;
static void *(*storage)[4];
static pthread_t threads[THREADS];
static pthread_barrier_t barrier;
static char image_on_heap[] = "sim module\n.global .b8 counter[4];\n.global .b8 large[5000];\n";

void victim_hurt(void)
{
	OK(cuStreamSetAttribute(streams[2], 3, (uint64_t[8]){99}));
}

/* ---- contexts and threads ---- */

static void make_contexts(void)
{
	void *popped;

	OK(cuDevicePrimaryCtxSetFlags_v2(0, 4));
	OK(cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cuCtxCreate_v4(&own, (uint64_t[3]){0}, 8, 0));
	OK(cuCtxSetLimit(1, 12345));
	OK(cuCtxSetLimit(1, 54321));
	OK(cuCtxSetCacheConfig(2));
	OK(cuCtxPopCurrent_v2(&popped));
	OK(cuCtxSetCurrent(primary));
	OK(cuCtxSetLimit(2, 777));
}

static void check_contexts(void)
{
	size_t limit = 0;
	unsigned flags = 0;
	void *popped = NULL;
	int cache = 0;

	OK(cuCtxGetLimit(&limit, 2));
	CHECK(limit == 777, "limit %zu", limit);
	OK(cuCtxGetFlags(&flags));
	CHECK(flags == 4, "flags %u", flags);
	OK(cuCtxPushCurrent_v2(own));
	OK(cuCtxGetLimit(&limit, 1));
	CHECK(limit == 54321, "limit %zu", limit);
	OK(cuCtxGetCacheConfig(&cache));
	CHECK(cache == 2, "cache configuration %d", cache);
	OK(cuCtxGetFlags(&flags));
	CHECK(flags == 8, "flags %u", flags);
	OK(cuCtxPopCurrent_v2(&popped));
	CHECK(popped == own, "popped %p", popped);
}

/* Each has another stack of contexts. */
static void *thread(void *argument)
{
	long number = (long)argument;
	void *on_top = number ? own : NULL, *current = NULL, *popped = NULL;
	int mode = CAPTURE_RELAXED;

	if (number) {
		OK(cuCtxSetCurrent(primary));
		OK(cuCtxPushCurrent_v2(own));
	}
	if (number == 2)
		OK(cuThreadExchangeStreamCaptureMode(&mode));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	OK(cuCtxGetCurrent(&current));
	CHECK(current == on_top, "thread %ld has %p, not %p", number, current, on_top);
	if (number) {
		OK(cuCtxPopCurrent_v2(&popped));
		OK(cuCtxGetCurrent(&current));
		CHECK(current == primary, "below it thread %ld has %p", number, current);
	}
	mode = 0;
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == (number == 2 ? CAPTURE_RELAXED : 0), "thread %ld has mode %d", number,
		mode);
	return NULL;
}

/* ---- streams ---- */

static void make_streams(void)
{
	OK(cuStreamCreate(&streams[0], 0));
	OK(cuStreamCreate(&stream_dead, 1));
	OK(cuStreamCreateWithPriority(&streams[1], 1, -3));
	OK(cuStreamDestroy_v2(stream_dead));
	OK(cuStreamCreate(&streams[2], 1));
	OK(cuStreamSetAttribute(streams[2], 3, (uint64_t[8]){1}));
	OK(cuStreamSetAttribute(streams[2], 1, (uint64_t[8]){5, 6, 7}));
	OK(cuStreamSetAttribute(streams[2], 3, (uint64_t[8]){42}));
	OK(cuCtxPushCurrent_v2(own));
	OK(cuStreamCreate(&streams[3], 0));
	OK(cuCtxPopCurrent_v2(&(void *){NULL}));
	OK(cuStreamCopyAttributes(streams[3], streams[2]));
	OK(cuStreamGetId(streams[1], &stream_number));
}

static void check_streams(void)
{
	uint64_t value[8] = {0}, number = 0;
	unsigned flags = 9;
	int priority = 0;
	void *context = NULL;

	OK(cuStreamGetFlags(streams[0], &flags));
	CHECK(flags == 0, "flags %u", flags);
	OK(cuStreamGetFlags(streams[1], &flags));
	CHECK(flags == 1, "flags %u", flags);
	OK(cuStreamGetPriority(streams[1], &priority));
	CHECK(priority == -3, "priority %d", priority);
	for (int i = 2; i < 4; i++) {
		OK(cuStreamGetAttribute(streams[i], 3, value));
		CHECK(value[0] == 42, "attribute %lu of stream %d", value[0], i);
		OK(cuStreamGetAttribute(streams[i], 1, value));
		CHECK(value[0] == 5 && value[2] == 7, "attribute %lu", value[0]);
	}
	OK(cuStreamGetCtx(streams[3], &context));
	CHECK(context == own, "a stream is of %p, not %p", context, own);
	OK(cuStreamGetId(streams[1], &number));
	CHECK(number == stream_number, "stream %lu was %lu", number, stream_number);
	CHECK(cuStreamQuery(stream_dead) == INVALID_HANDLE, "%d", cuStreamQuery(stream_dead));
	CHECK(cuStreamDestroy_v2(stream_dead) == INVALID_HANDLE, "a stream is destroyed twice");
	CHECK(stream_dead != streams[2], "a handle is used again at once");
}

/* ---- events ---- */

/* Time that is to be seen between events. */
static void spend(long ms)
{
	nanosleep(&(struct timespec){0, ms * MSEC}, NULL);
}

static void make_events(void)
{
	OK(cuEventCreate(&first, 0));
	OK(cuEventCreate(&event_dead, 0));
	OK(cuEventCreate(&second, 0));
	OK(cuEventCreate(&later, 0));
	OK(cuEventCreate(&never, 0));
	OK(cuEventCreate(&untimed, 2));
	OK(cuEventDestroy_v2(event_dead));
	OK(cuEventRecord(first, streams[0]));
	spend(20);
	OK(cuEventRecord(second, streams[0]));
	OK(cuEventRecord(later, streams[0]));
	OK(cuEventRecord(untimed, streams[1]));
	OK(cuStreamSynchronize(streams[0]));
	OK(cuEventElapsedTime(&elapsed_before, first, second));
	CHECK(elapsed_before >= 20, "elapsed %f ms", elapsed_before);
}

static void check_events(void)
{
	float elapsed = 0;

	OK(cuEventQuery(first));
	OK(cuEventQuery(untimed));
	OK(cuEventQuery(never));
	OK(cuStreamWaitEvent(streams[1], second, 0));
	OK(cuEventSynchronize(second));
	OK(cuEventElapsedTime(&elapsed, first, second));
	CHECK(elapsed > elapsed_before - 0.1 && elapsed < elapsed_before + 0.1,
		"elapsed were %f ms, are %f ms", elapsed_before, elapsed);
	CHECK(cuEventElapsedTime(&elapsed, first, untimed) == INVALID_HANDLE,
		"time of no timer");
	CHECK(cuEventElapsedTime(&elapsed, first, never) == INVALID_HANDLE, "time of never");
	CHECK(cuEventQuery(event_dead) == INVALID_HANDLE, "an event lives");
	/* One of before and one of after: time has gone on. */
	spend(10);
	OK(cuEventRecord(later, streams[0]));
	OK(cuStreamSynchronize(streams[0]));
	OK(cuEventElapsedTime(&elapsed, first, later));
	CHECK(elapsed >= elapsed_before + 9, "%f ms went by", elapsed);
	OK(cuEventElapsedTime(&elapsed, later, first));
	CHECK(elapsed <= -elapsed_before - 9, "%f ms went by", elapsed);
}

/* ---- modules ---- */

static void load_from_file(void)
{
	static const char text[] = "sim module\n.global .b8 in_file[300];\n";
	char path[] = "/tmp/trecr-objects-XXXXXX";
	int fd = mkstemp(path);

	MUST(fd >= 0 && write(fd, text, sizeof(text)) == sizeof(text));
	close(fd);
	OK(cuModuleLoad(&modules[2], path));
	unlink(path); /* what counts is what was in it */
}

static void make_modules(void)
{
	char log[100] = "", *image = strdup(image_on_heap);
	const int options[] = {3, 0, 4};
	void *values[] = {log, (void *)32, (void *)sizeof(log)}, *module = NULL, *all[2] = {0};
	size_t size;

	OK(cuModuleLoadDataEx(&modules[0], image, 3, options, values));
	CHECK(!strcmp(log, "loaded"), "log \"%s\"", log);
	memset(image, 'x', strlen(image));
	free(image);
	OK(cuModuleLoadData(&module_dead, "sim module\n.global .b8 first[600];\n"));
	OK(cuModuleGetFunction(&function_dead, module_dead, "count"));
	OK(cuModuleUnload(module_dead));
	OK(cuModuleLoadData(&modules[1], "sim module\n.global .b8 kept[600];\n"));
	load_from_file();
	OK(cuModuleGetGlobal_v2(&counter, &size, modules[0], "counter"));
	OK(cuModuleGetGlobal_v2(&large, &size, modules[0], "large"));
	CHECK(size == 5000, "size %zu", size);
	OK(cuModuleGetGlobal_v2(&kept, NULL, modules[1], "kept"));
	for (int i = 0; i < 3; i++)
		OK(cuModuleGetFunction(&functions[i], modules[i], "scale"));
	OK(cuFuncSetAttribute(functions[0], 8, 1000));
	OK(cuFuncSetAttribute(functions[0], 8, 2000));
	OK(cuFuncSetAttribute(functions[0], 9, 3));
	OK(cuFuncGetModule(&module, functions[1]));
	CHECK(module == modules[1], "a function is of %p, not %p", module, modules[1]);
	OK(cuModuleEnumerateFunctions(all, 2, modules[1]));
	CHECK(all[0] == functions[1] || all[1] == functions[1], "%p and %p are not %p", all[0],
		all[1], functions[1]);
}

static void make_library(void)
{
	size_t size;
	void *same = NULL;

	OK(cuLibraryLoadData(&library,
		"sim module\n.global .b8 lazy[64];\n.global .b8 eager[64];\n", NULL, NULL, 0,
		NULL, NULL, 0));
	OK(cuLibraryGetKernel(&kernel, library, "count"));
	OK(cuLibraryGetKernel(&same, library, "count"));
	CHECK(same == kernel, "a kernel is %p and %p", kernel, same);
	OK(cuKernelSetAttribute(8, 4096, kernel, 0));
	OK(cuLibraryGetGlobal(&in_library, &size, library, "eager"));
	OK(cuKernelGetFunction(&kernel_function, kernel));
	OK(cuKernelGetLibrary(&same, kernel));
	CHECK(same == library, "a kernel is of %p, not %p", same, library);
}

static void check_modules(void)
{
	CUdeviceptr address = 0;
	void *same = NULL;
	size_t size = 0;
	int value = 0;

	OK(cuModuleGetGlobal_v2(&address, &size, modules[0], "large"));
	CHECK(address == large && size == 5000, "%#lx, not %#lx", address, large);
	OK(cuModuleGetGlobal_v2(&address, &size, modules[0], "counter"));
	CHECK(address == counter, "%#lx, not %#lx", address, counter);
	OK(cuModuleGetGlobal_v2(&address, &size, modules[1], "kept"));
	CHECK(address == kept, "%#lx, not %#lx", address, kept);
	OK(cuModuleGetGlobal_v2(&address, &size, modules[2], "in_file"));
	OK(cuLibraryGetGlobal(&address, &size, library, "eager"));
	CHECK(address == in_library, "%#lx, not %#lx", address, in_library);
	OK(cuFuncGetAttribute(&value, 8, functions[0]));
	CHECK(value == 2000, "attribute %d", value);
	OK(cuFuncGetAttribute(&value, 9, functions[0]));
	CHECK(value == 3, "attribute %d", value);
	OK(cuKernelGetAttribute(&value, 8, kernel, 0));
	CHECK(value == 4096, "attribute %d", value);
	OK(cuModuleGetFunction(&same, modules[2], "scale"));
	CHECK(same == functions[2], "a function is %p, was %p", same, functions[2]);
	OK(cuKernelGetFunction(&same, kernel));
	CHECK(same == kernel_function, "a function is %p, was %p", same, kernel_function);
	CHECK(cuModuleGetFunction(&same, module_dead, "count") == INVALID_HANDLE, "it lives");
	CHECK(cuFuncGetAttribute(&value, 8, function_dead) == INVALID_HANDLE, "it lives");
}

/* Kernels run: on a variable of a module, by function, by kernel, by configuration. */
static void launch_all(uint32_t seed)
{
	struct launch_attribute attribute = {
		.id = PROGRAMMATIC_EVENT, .words = {(uint64_t)first}};
	struct launch_config config = {.grid = {1, 1, 1},
		.block = {1, 1, 1},
		.stream = streams[1],
		.attributes = &attribute,
		.attribute_count = 1};
	uint64_t a = counter, b = seed, c = 0, d = 3, e = 5;
	uint32_t result = 0;

	OK(cuLaunchKernel(
		kernel, 1, 1, 1, 1, 1, 1, 0, streams[1], (void *[]){&a, &b, &c}, NULL));
	OK(cuLaunchKernel(
		functions[1], 1, 1, 1, 1, 1, 1, 0, streams[1], (void *[]){&a, &d, &e}, NULL));
	OK(cuLaunchKernelEx(&config, functions[2], (void *[]){&a, &d, &e}, NULL));
	OK(cuMemcpyDtoHAsync_v2(&result, counter, 4, streams[1]));
	OK(cuStreamSynchronize(streams[1]));
	CHECK(result == (seed * 3 + 5) * 3 + 5, "%u comes of %u", result, seed);
}

/* ---- what a library keeps with a context ---- */

static int destroy_stored(void *context, void *key, void *value)
{
	return 0;
}

static void make_stored(void)
{
	static const unsigned char id[16] = {0xc6, 0x93, 0x33, 0x6e, 0x11};

	OK(cuGetExportTable((const void **)&storage, id));
	OK(((int (*)(void *, void *, void *, void *))(*storage)[0])(
		own, &storage_key, (void *)1, destroy_stored));
	OK(((int (*)(void *, void *, void *, void *))(*storage)[0])(
		NULL, &storage_key, (void *)7, destroy_stored));
	OK(((int (*)(void *, void *))(*storage)[1])(own, &storage_key));
}

static void check_stored(void)
{
	int (*get)(void **, void *, void *) = (int (*)(void **, void *, void *))(*storage)[2];
	void *value = NULL;

	OK(get(&value, primary, &storage_key));
	CHECK(value == (void *)7, "%p is kept", value);
	CHECK(get(&value, own, &storage_key), "%p is kept of what was deleted", value);
}

int main(void)
{
	WORKS(cuInit(0));
	make_contexts();
	make_streams();
	make_events();
	make_modules();
	make_library();
	make_stored();
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (long i = 0; i < THREADS; i++)
		MUST(!pthread_create(&threads[i], NULL, thread, (void *)i));
	pthread_barrier_wait(&barrier);
	launch_all(1);
	victim_ready();
	victim_wait();
	check_contexts();
	check_streams();
	check_events();
	check_modules();
	check_stored();
	launch_all(2);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	OK(cuModuleUnload(modules[0]));
	OK(cuLibraryUnload(library));
	OK(cuStreamDestroy_v2(streams[0]));
	OK(cuCtxDestroy_v2(own));
	return victim_done();
}
