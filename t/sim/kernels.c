/* Kernels: functions that run on a stream's thread, and copies run there too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <pthread.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "stubs/cuda/launch_config.h"
#include "t/sim/arrays.h"
#include "t/sim/device.h"
#include "t/sim/graph.h"
#include "t/sim/memory.h"
#include "t/sim/module.h"
#include "t/sim/object.h"
#include "t/sim/sim.h"
#include "t/sim/stream.h"

int cuKernelGetFunction(void **function, void *kernel);

struct kernel {
	const char *name;
	kernel_function *run;
};

SIM_EXPORT int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz,
	unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **parameters,
	void **extra);
SIM_EXPORT int cuLaunchKernelEx(
	const struct launch_config *config, void *function, void **parameters, void **extra);
SIM_EXPORT int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, void *function,
	size_t (*shared)(int block), size_t bytes, int limit);
SIM_EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size);
SIM_EXPORT int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size);
SIM_EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream);
SIM_EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream);
SIM_EXPORT int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t size);
SIM_EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream);
SIM_EXPORT int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream);
SIM_EXPORT int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t count);
SIM_EXPORT int cuMemsetD32_v2(uint64_t to, unsigned value, size_t count);

/* a[i] = b + i */
static void run_count(const struct kernel_call *k)
{
	memory_check(k->a, k->threads * 4, "count");
	for (uint64_t i = 0; i < k->threads; i++)
		((uint32_t *)k->a)[i] = k->b + i;
}

/* a[i] = a[i] * b + c */
static void run_scale(const struct kernel_call *k)
{
	memory_check(k->a, k->threads * 4, "scale");
	for (uint64_t i = 0; i < k->threads; i++)
		((uint32_t *)k->a)[i] = ((uint32_t *)k->a)[i] * k->b + k->c;
}

/* a[i] = what texture b shows at i, plus c */
static void run_sample(const struct kernel_call *k)
{
	const uint32_t *shown = texture_data(k->context, k->b, k->threads * 4);

	memory_check(k->a, k->threads * 4, "sample");
	for (uint64_t i = 0; i < k->threads; i++)
		((uint32_t *)k->a)[i] = shown[i] + k->c;
}

/* surface a at i = b * i + c */
static void run_paint(const struct kernel_call *k)
{
	uint32_t *shown = texture_data(k->context, k->a, k->threads * 4);

	for (uint64_t i = 0; i < k->threads; i++)
		shown[i] = k->b * i + k->c;
}

/* The condition of a is what is at b, which is c less from then on. */
static void run_choose(const struct kernel_call *k)
{
	uint32_t *word = (uint32_t *)k->b;

	memory_check(k->b, sizeof(*word), "choose");
	*word -= k->c;
	graph_set_condition(k->graph, k->a, *word);
}

/* takes a microseconds, in whole milliseconds */
static void run_sleep(const struct kernel_call *k)
{
	poll(NULL, 0, k->a / 1000);
}

/* waits until the host says b at a, which is host memory */
static void run_await(const struct kernel_call *k)
{
	while (__atomic_load_n((uint64_t *)k->a, __ATOMIC_ACQUIRE) < k->b)
		poll(NULL, 0, 1);
}

/* Device printf: as with the driver, it comes out when the host waits for the device. */
static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t said[16];
static unsigned said_count;

static void run_print(const struct kernel_call *k)
{
	pthread_mutex_lock(&said_lock);
	if (said_count < sizeof(said) / sizeof(said[0]))
		said[said_count++] = k->a;
	pthread_mutex_unlock(&said_lock);
}

/* A thread that finds nothing left returns when all is out. */
void module_print(void)
{
	pthread_mutex_lock(&said_lock);
	for (unsigned i = 0; i < said_count; i++)
		printf("kernel says %lu\n", said[i]);
	said_count = 0;
	pthread_mutex_unlock(&said_lock);
}

/* The hashes of b blocks of 4 KiB at a, to c, which is host memory: lower/cuda/hash_kernel.cu. */
static void run_hash_blocks(const struct kernel_call *k)
{
	memory_check(k->a, k->b * 4096, "trecr_hash_blocks");
	if (k->a % 4096 || !k->b || k->threads % 128)
		sim_hostile("blocks that cannot be hashed", "trecr_hash_blocks");
	for (uint64_t i = 0; i < k->b; i++)
		XXH128_canonicalFromHash((XXH128_canonical_t *)(k->c + 16 * i),
			XXH3_128bits((void *)(k->a + 4096 * i), 4096));
}

static const struct kernel kernels[] = {
	{"count", run_count},
	{"scale", run_scale},
	{"sleep", run_sleep},
	{"print", run_print},
	{"await", run_await},
	{"sample", run_sample},
	{"paint", run_paint},
	{"choose", run_choose},
};

kernel_function *kernel_find(const char *name)
{
	if (!strcmp(name, "trecr_hash_blocks"))
		return run_hash_blocks;
	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
		if (!strcmp(kernels[i].name, name))
			return kernels[i].run;
	return NULL;
}

const char *kernel_name(unsigned index)
{
	return index < sizeof(kernels) / sizeof(kernels[0]) ? kernels[index].name : NULL;
}

struct launch {
	kernel_function *run;
	struct kernel_call call;
};

static void run_launch(void *data)
{
	struct launch *l = data;

	l->run(&l->call);
}

/* What the node has is a function, also of a kernel. */
static int capture_launch(void *function, const unsigned *grid, const unsigned *block,
	void *stream, void **parameters, int *r)
{
	union graph_params node = {.kernel = {.function = function, .params = parameters}};

	if (!capture_is_active(stream))
		return 0;
	memcpy(node.kernel.grid, grid, sizeof(node.kernel.grid));
	memcpy(node.kernel.block, block, sizeof(node.kernel.block));
	if (object_get(OBJECT_KERNEL, function, __func__))
		cuKernelGetFunction(&node.kernel.function, function);
	return capture_work(stream, GRAPH_KERNEL, &node, r);
}

static int launch(void *function, const unsigned *grid, const unsigned *block, void *stream,
	void **parameters, const char *name)
{
	struct launch l = {.run = function_to_run(function, name)};
	int r;

	if (l.run && parameters &&
		capture_launch(function, grid, block, stream, parameters, &r))
		return r;
	if (!l.run || sim_have_context())
		return l.run ? SIM_INVALID_CONTEXT : SIM_INVALID_HANDLE;
	if (!parameters)
		return SIM_INVALID_VALUE;
	l.call.threads = (uint64_t)grid[0] * grid[1] * grid[2] * block[0] * block[1] * block[2];
	l.call.a = *(uint64_t *)parameters[0];
	l.call.b = *(uint64_t *)parameters[1];
	l.call.c = *(uint64_t *)parameters[2];
	l.call.context = current_context();
	return stream_queue(stream, run_launch, stream_data(&l, sizeof(l)), name);
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, void *stream, void **parameters,
	void **extra)
{
	SIM_ENTER();
	return launch(function, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, stream,
		parameters, __func__);
}

int cuLaunchKernelEx(
	const struct launch_config *config, void *function, void **parameters, void **extra)
{
	SIM_ENTER();
	for (unsigned i = 0; i < config->attribute_count; i++)
		if (config->attributes[i].id == PROGRAMMATIC_EVENT &&
			!object_get(
				OBJECT_EVENT, (void *)config->attributes[i].words[0], __func__))
			return SIM_INVALID_HANDLE;
	return launch(
		function, config->grid, config->block, config->stream, parameters, __func__);
}

int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, void *function,
	size_t (*shared)(int block), size_t bytes, int limit)
{
	SIM_ENTER();
	if (!function_to_run(function, __func__))
		return SIM_INVALID_HANDLE;
	*block = 1024;
	while (shared && *block > 32 && shared(*block) > 49152)
		*block /= 2;
	*grid = 132;
	return 0;
}

/* ---- copies ---- */

struct copy {
	void *to;
	const void *from;
	size_t size;
};

static void run_copy(void *data)
{
	struct copy *c = data;

	memcpy(c->to, c->from, c->size);
}

static int is_on_host(const void *address)
{
	int is;

	ranges_lock();
	is = !range_memory((uint64_t)address);
	ranges_unlock();
	return is;
}

static int queue_copy(
	void *to, const void *from, size_t size, void *stream, const char *function)
{
	struct copy c = {to, from, size};
	const int is_host[2] = {is_on_host(from), is_on_host(to)};
	const union graph_params node = {.copy = {.from = {.type = is_host[0] ? 1 : 2,
							  .host = (uint64_t)from,
							  .device = (uint64_t)from},
						 .to = {.type = is_host[1] ? 1 : 2,
							 .host = (uint64_t)to,
							 .device = (uint64_t)to},
						 .width = size,
						 .height = 1,
						 .depth = 1}};
	int r;

	if (capture_work(stream, GRAPH_MEMCPY, &node, &r))
		return r;
	return stream_queue(stream, run_copy, stream_data(&c, sizeof(c)), function);
}

/* A copy without stream waits for all that runs, and for itself. */
static int copy_now(void *to, const void *from, size_t size)
{
	stream_wait_all();
	memcpy(to, from, size);
	return 0;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size)
{
	SIM_ENTER();
	memory_check(to, size, __func__);
	return copy_now((void *)to, from, size);
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size)
{
	SIM_ENTER();
	memory_check(from, size, __func__);
	return copy_now(to, (void *)from, size);
}

int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t size)
{
	SIM_ENTER();
	memory_check(from, size, __func__);
	memory_check(to, size, __func__);
	return copy_now((void *)to, (void *)from, size);
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream)
{
	SIM_ENTER();
	memory_check(to, size, __func__);
	return queue_copy((void *)to, from, size, stream, __func__);
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream)
{
	SIM_ENTER();
	memory_check(from, size, __func__);
	return queue_copy(to, (void *)from, size, stream, __func__);
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream)
{
	SIM_ENTER();
	memory_check(from, size, __func__);
	memory_check(to, size, __func__);
	return queue_copy((void *)to, (void *)from, size, stream, __func__);
}

struct set {
	uint32_t *to, value;
	size_t count;
};

static void run_set(void *data)
{
	const struct set *s = data;

	for (size_t i = 0; i < s->count; i++)
		s->to[i] = s->value;
}

int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream)
{
	const struct set s = {(uint32_t *)to, value, count};
	const union graph_params node = {.set = {to, 0, value, 4, count, 1}};
	int r;

	SIM_ENTER();
	memory_check(to, count * 4, __func__);
	if (capture_work(stream, GRAPH_MEMSET, &node, &r))
		return r;
	return stream_queue(stream, run_set, stream_data(&s, sizeof(s)), __func__);
}

int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t count)
{
	SIM_ENTER();
	memory_check(to, count, __func__);
	stream_wait_all();
	memset((void *)to, value, count);
	return 0;
}

int cuMemsetD32_v2(uint64_t to, unsigned value, size_t count)
{
	SIM_ENTER();
	memory_check(to, count * 4, __func__);
	stream_wait_all();
	for (size_t i = 0; i < count; i++)
		((uint32_t *)to)[i] = value;
	return 0;
}
