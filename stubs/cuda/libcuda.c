/* libcuda.so.1 of the upper half: the library's record, and calls that are refused. */
#include <stdlib.h>
#include <string.h>

#include "stubs/cuda/memory.h"
#include "stubs/cuda/objects.h"

#include "cuda.index.h"

/* CUDA C++ Programming Guide, "Formatted Output": the buffer is flushed by calls that wait. */
static int cuda_flushes(unsigned index)
{
	static const unsigned char flushes[CALL_COUNT] = {
#define CALL(name, class, how, registers, stack, floats)
#define FLUSHES(name) [INDEX_##name] = 1,
#include "cuda.calls.h"
#undef FLUSHES
#undef CALL
	};

	return flushes[index];
}

STUB_LIBRARY(cuda, "libcuda.so.1", CALL_COUNT, CUDA_ERROR_NOT_INITIALIZED,
	CUDA_ERROR_NOT_SUPPORTED,
	/* Tables of functions are handed out at their real addresses. */
	.lower.huge_code = 1, .lower.keeps_functions = 1, .fixed = 1,
	.another_place = export_tables_avoid, .restarted = export_tables_restarted,
	.flushes = cuda_flushes);

int cuda_refused(unsigned index)
{
	static unsigned char told[CALL_COUNT];
	const char *name = cuda_names;

	for (unsigned i = 0; i < index; i++)
		name += strlen(name) + 1;
	if (!told[index]++)
		crossing_complain(name, "not supported, as it could not be restored");
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* The driver registers a handler for exit in cuInit: its functions give this error from then on, and
 * what the program has is left to the kernel. Handlers that run later rely on it, and threads that go
 * on reading pinned memory. (Driver 580.159.04, seen by calls from handlers registered before and
 * after cuInit.) */
static void end_driver(void)
{
	/* What is being saved stays until it is: the kernel takes it away. */
	snapshot_wait();
	crossing_end(&cuda_library, CUDA_ERROR_DEINITIALIZED);
}

static void end_driver_at_exit(void)
{
	static int registered;

	if (!__atomic_exchange_n(&registered, 1, __ATOMIC_ACQ_REL) && atexit(end_driver))
		crossing_complain("cuInit", "no memory for a handler at exit");
}

int body_cuInit(unsigned flags)
{
	int r;

	crossing_used();
	/* Programs choose devices by a variable after they have asked for the version. */
	if (!state_usable())
		crossing_environment();
	r = real_cuInit(flags);
	if (!r)
		r = cuda_state_open();
	if (!r)
		end_driver_at_exit();
	return r;
}
