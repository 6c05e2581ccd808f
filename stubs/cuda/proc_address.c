/*
 * cuGetProcAddress: the driver says whether there is such a function, for which version,
 * and what is wrong; which of our entry points stands for it, the API table says.
 */
#include "stubs/cuda/bodies.h"
#include "stubs/function_versions.h"

extern STUB_HIDDEN const struct function_version cuda_versions[];
extern STUB_HIDDEN const size_t cuda_version_count;

/* @function holds what the driver found. 0, or CUDA_ERROR_NOT_FOUND for a function that a
 * driver newer than the table has: it would go past us. */
static int replace_function(const char *name, void **function, int version, uint64_t flags)
{
	if (!function || !*function)
		return 0;
	*function = (void *)function_version_find(cuda_versions, cuda_version_count, name,
		version, !!(flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
	return *function ? 0 : CUDA_ERROR_NOT_FOUND;
}

int body_cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
	int r = real_cuGetProcAddress(name, function, version, flags);

	return r ? r : replace_function(name, function, version, flags);
}

int body_cuGetProcAddress_v2(
	const char *name, void **function, int version, uint64_t flags, int *status)
{
	int r = real_cuGetProcAddress_v2(name, function, version, flags, status);

	if (r)
		return r;
	r = replace_function(name, function, version, flags);
	if (r && status)
		*status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return r;
}
