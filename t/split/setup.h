/* setup.h - a context on the first device for the calling thread. */
#ifndef T_SPLIT_SETUP_H
#define T_SPLIT_SETUP_H

#include "t/split/check.h"
#include "t/split/cuda_api.h"

static void *context;

static inline void set_up(void)
{
	int device;

	OK(cuInit(0));
	OK(cuDeviceGet(&device, 0));
	OK(cuDevicePrimaryCtxRetain(&context, device));
	OK(cuCtxSetCurrent(context));
}

/* The kernel @name of a module of its own. */
static inline void *kernel(const char *name)
{
	void *module, *function = NULL;

	OK(cuModuleLoadData(&module, "sim module"));
	OK(cuModuleGetFunction(&function, module, name));
	return function;
}

static inline int launch(
	void *function, unsigned threads, uint64_t a, uint64_t b, uint64_t c, void *stream)
{
	void *parameters[] = {&a, &b, &c};

	return cuLaunchKernel(
		function, threads / 32, 1, 1, 32, 1, 1, 0, stream, parameters, NULL);
}

#endif
