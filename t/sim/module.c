/*
 * Modules and kernels. An image is the text "sim module"; every module has the kernels of the
 * table below, functions that run on a stream's thread, and copies run there too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>

#include "t/sim/device.h"
#include "t/sim/memory.h"
#include "t/sim/object.h"
#include "t/sim/sim.h"
#include "t/sim/stream.h"

struct kernel_call {
	uint64_t threads;
	uint64_t a, b, c; /* parameters */
};

struct kernel {
	const char *name;
	void (*run)(const struct kernel_call *k);
};

struct module {
	struct object object;
};

struct function {
	struct object object;
	const struct kernel *kernel;
};

SIM_EXPORT int cuModuleLoadData(void **module, const void *image);
SIM_EXPORT int cuModuleUnload(void *module);
SIM_EXPORT int cuModuleGetFunction(void **function, void *module, const char *name);
SIM_EXPORT int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz,
	unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **parameters,
	void **extra);
SIM_EXPORT int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, void *function,
	size_t (*shared)(int block), size_t bytes, int limit);
SIM_EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size);
SIM_EXPORT int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size);
SIM_EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream);
SIM_EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream);
SIM_EXPORT int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t size);
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

/* takes a microseconds, in whole milliseconds */
static void run_sleep(const struct kernel_call *k)
{
	poll(NULL, 0, k->a / 1000);
}

/* Device printf: as with the driver, it comes out when the host waits for the device. */
static uint64_t said[16];
static unsigned said_count;

static void run_print(const struct kernel_call *k)
{
	unsigned i = __atomic_fetch_add(&said_count, 1, __ATOMIC_ACQ_REL);

	said[i % 16] = k->a;
}

void module_print(void)
{
	unsigned count = __atomic_exchange_n(&said_count, 0, __ATOMIC_ACQ_REL);

	for (unsigned i = 0; i < count; i++)
		printf("kernel says %lu\n", said[i % 16]);
}

static const struct kernel kernels[] = {
	{"count", run_count},
	{"scale", run_scale},
	{"sleep", run_sleep},
	{"print", run_print},
};

int cuModuleLoadData(void **module, const void *image)
{
	int r;

	SIM_ENTER();
	r = sim_have_context();
	if (r || strcmp(image, "sim module"))
		return r ? r : SIM_INVALID_VALUE;
	*module = object_new(OBJECT_MODULE, sizeof(struct module));
	return 0;
}

int cuModuleUnload(void *module)
{
	void *m;

	SIM_ENTER();
	m = object_get(OBJECT_MODULE, module, __func__);
	if (m)
		object_free(m);
	return m ? 0 : SIM_INVALID_HANDLE;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
	SIM_ENTER();
	if (!object_get(OBJECT_MODULE, module, __func__))
		return SIM_INVALID_HANDLE;
	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
		struct function *f;

		if (strcmp(kernels[i].name, name))
			continue;
		f = object_new(OBJECT_FUNCTION, sizeof(*f));
		f->kernel = &kernels[i];
		*function = f;
		return 0;
	}
	return SIM_NOT_FOUND;
}

struct launch {
	const struct kernel *kernel;
	struct kernel_call call;
};

static void run_launch(void *data)
{
	struct launch *l = data;

	l->kernel->run(&l->call);
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, void *stream, void **parameters,
	void **extra)
{
	struct launch l = {0};
	struct function *f;

	SIM_ENTER();
	f = object_get(OBJECT_FUNCTION, function, __func__);
	if (!f || sim_have_context())
		return f ? SIM_INVALID_CONTEXT : SIM_INVALID_HANDLE;
	if (extra || !parameters)
		return SIM_INVALID_VALUE;
	l.kernel = f->kernel;
	l.call.threads = (uint64_t)gx * gy * gz * bx * by * bz;
	l.call.a = *(uint64_t *)parameters[0];
	l.call.b = *(uint64_t *)parameters[1];
	l.call.c = *(uint64_t *)parameters[2];
	return stream_queue(stream, run_launch, stream_data(&l, sizeof(l)), __func__);
}

int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, void *function,
	size_t (*shared)(int block), size_t bytes, int limit)
{
	SIM_ENTER();
	if (!object_get(OBJECT_FUNCTION, function, __func__))
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

static int queue_copy(
	void *to, const void *from, size_t size, void *stream, const char *function)
{
	struct copy c = {to, from, size};

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

int cuMemsetD32_v2(uint64_t to, unsigned value, size_t count)
{
	SIM_ENTER();
	memory_check(to, count * 4, __func__);
	stream_wait_all();
	for (size_t i = 0; i < count; i++)
		((uint32_t *)to)[i] = value;
	return 0;
}
