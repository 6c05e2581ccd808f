/* Modules and libraries out of files, and lists of what is in them: in terms of the calls that
 * leave records. */
#include "shared/cuda/calls.h"
#include "shared/raw.h"
#include "stubs/cuda/modules.h"
#include "stubs/cuda/objects.h"
#include "stubs/cuda/read_file.h"

#include "cuda.index.h"

int body_cuModuleLoad(void **module, const char *path)
{
	struct whole_file f = {0};
	int r = path ? read_file(path, &f) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = cuda_perform(INDEX_cuModuleLoadData, WORDS((uint64_t)module, (uint64_t)f.data));
	block_free(f.data, f.room);
	return r;
}

int body_cuLibraryLoadFromFile(void **library, const char *path, const int *jit_options,
	void **jit_values, unsigned jit_count, const int *options, void **values,
	unsigned count)
{
	struct whole_file f = {0};
	int r = path ? read_file(path, &f) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = cuda_perform(INDEX_cuLibraryLoadData,
		WORDS((uint64_t)library, (uint64_t)f.data, (uint64_t)jit_options,
			(uint64_t)jit_values, jit_count, (uint64_t)options, (uint64_t)values,
			count));
	/* An option may have promised the driver that the data stays. */
	if (!count)
		block_free(f.data, f.room);
	return r;
}

/* @handles has real ones of what belongs to @whole, and gets what the program may have: each by
 * its name (for which @name asks), as if it had asked for that. */
static int name_all(void **handles, unsigned count, void *whole, unsigned name, unsigned get)
{
	for (unsigned i = 0; i < count && handles[i]; i++) {
		const char *text;
		int r = cuda_call_down(name, WORDS((uint64_t)&text, (uint64_t)handles[i]));

		if (!r)
			r = cuda_perform(get,
				WORDS((uint64_t)&handles[i], (uint64_t)whole, (uint64_t)text));
		if (r)
			return r;
	}
	return 0;
}

typedef int enumerate(void **, unsigned, void *);

static int list_all(void **handles, unsigned count, void *whole, enumerate *real, unsigned name,
	unsigned get)
{
	int r;

	if (handles)
		raw_zero(handles, count * sizeof(*handles));
	r = real(handles, count, whole);
	return r ? r : name_all(handles, count, whole, name, get);
}

int body_cuModuleEnumerateFunctions(void **functions, unsigned count, void *module)
{
	return list_all(functions, count, module, real_cuModuleEnumerateFunctions,
		INDEX_cuFuncGetName, INDEX_cuModuleGetFunction);
}

int body_cuLibraryEnumerateKernels(void **kernels, unsigned count, void *library)
{
	return list_all(kernels, count, library, real_cuLibraryEnumerateKernels,
		INDEX_cuKernelGetName, INDEX_cuLibraryGetKernel);
}

/* ---- by the driver's function without a name ---- */

static module_functions *real_module_functions;

STUB_HIDDEN void *modules_stand_in(size_t i, void *function)
{
	real_module_functions = (module_functions *)function;
	return (void *)guarded_module_functions;
}

struct found {
	void **functions;
	unsigned count, room;
};

/* Called by the driver, on the lower half's thread-local storage. */
static void find_function(void *data, void *function)
{
	struct found *f = data;

	if (f->count < f->room)
		f->functions[f->count] = function;
	f->count++;
}

/* For the program: as if it had asked for @real by its name. Where that leads to another one,
 * it gets the driver's handle, and whatever it does with it is lost (function_lost()). */
static void *by_name(void *real, void *module)
{
	void *function = real;

	if (name_all(&function, 1, module, INDEX_cuFuncGetName, INDEX_cuModuleGetFunction))
		return real;
	return object_real(function) == real ? function : real;
}

STUB_HIDDEN int body_module_functions(
	void *context, void *module, take_function *take, void *data)
{
	void *real = object_real(module);
	struct found f = {0};
	int count;

	if (is_dead(real))
		return 0;
	real_module_functions(context, real, find_function, &f);
	f.room = f.count;
	f.functions = block_new(f.room * sizeof(*f.functions) + 1);
	if (!f.functions)
		return 0;
	f.count = 0;
	count = real_module_functions(context, real, find_function, &f);
	for (unsigned i = 0; i < f.count && i < f.room; i++)
		take(data, by_name(f.functions[i], module));
	block_free(f.functions, f.room * sizeof(*f.functions) + 1);
	return count;
}
