/*
 * Modules and libraries. An image is text: "sim module", then lines that say what variables
 * there are, ".global .b8 NAME[SIZE];"; or it is as a compiler would write it. Every module has
 * all kernels (kernels.c). Where variables come to lie depends on what came and went before
 * * (heap.h). Libraries are loaded when something in them is first needed, but for their
 * managed variables.
 */
#include "t/sim/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/sim/device.h"
#include "t/sim/heap.h"
#include "t/sim/memory.h"
#include "t/sim/object.h"
#include "t/sim/sim.h"

#define ATTRIBUTES   17
#define CACHE_CONFIG 16 /* none of the driver's that the tests use */

struct global {
	char name[32];
	uint64_t address, size;
	int managed; /* a library does not find it as what is the device's */
	struct global *next;
};

struct function {
	struct object object;
	struct module *module;
	char name[32]; /* of this process */
	int attributes[ATTRIBUTES];
	int loaded;
	struct function *next;
};

struct module {
	struct object object;
	void *context;
	int is_library; /* what one has in a context */
	struct module *next;
	struct global *globals;
	struct function *functions;
};

struct kernel {
	struct object object;
	struct library *library;
	char name[32]; /* of this process */
	int attributes[ATTRIBUTES];
	struct kernel *next;
};

/* Of a library, in one context: from when something of it is needed there. */
struct loaded {
	void *context;
	struct module *module;
	struct loaded *next;
};

struct library {
	struct object object;
	struct global *managed; /* the same in all contexts */
	char *image;
	struct loaded *loaded;
	struct kernel *kernels;
	struct library *next;
};

static struct library *libraries;
static struct module *modules;

SIM_EXPORT int cuModuleLoadData(void **module, const void *image);
SIM_EXPORT int cuModuleLoadDataEx(
	void **module, const void *image, unsigned count, const int *options, void **values);
SIM_EXPORT int cuModuleUnload(void *module);
SIM_EXPORT int cuModuleGetFunction(void **function, void *module, const char *name);
SIM_EXPORT int cuModuleGetFunctionCount(unsigned *count, void *module);
SIM_EXPORT int cuModuleEnumerateFunctions(void **functions, unsigned count, void *module);
SIM_EXPORT int cuModuleGetGlobal_v2(
	uint64_t *address, size_t *size, void *module, const char *name);
SIM_EXPORT int cuFuncGetAttribute(int *value, int attribute, void *function);
SIM_EXPORT int cuFuncSetAttribute(void *function, int attribute, int value);
SIM_EXPORT int cuFuncSetCacheConfig(void *function, int config);
SIM_EXPORT int cuFuncGetModule(void **module, void *function);
SIM_EXPORT int cuFuncGetName(const char **name, void *function);
SIM_EXPORT int cuFuncLoad(void *function);
SIM_EXPORT int cuLibraryLoadData(void **library, const void *image, const int *jit,
	void **jit_values, unsigned jit_count, const int *options, void **values,
	unsigned count);
SIM_EXPORT int cuLibraryUnload(void *library);
SIM_EXPORT int cuLibraryGetKernel(void **kernel, void *library, const char *name);
SIM_EXPORT int cuLibraryGetModule(void **module, void *library);
SIM_EXPORT int cuLibraryGetGlobal(
	uint64_t *address, size_t *size, void *library, const char *name);
SIM_EXPORT int cuLibraryGetManaged(
	uint64_t *address, size_t *size, void *library, const char *name);
SIM_EXPORT int cuKernelGetFunction(void **function, void *kernel);
SIM_EXPORT int cuKernelGetLibrary(void **library, void *kernel);
SIM_EXPORT int cuKernelGetName(const char **name, void *kernel);
SIM_EXPORT int cuKernelGetAttribute(int *value, int attribute, void *kernel, int device);
SIM_EXPORT int cuKernelSetAttribute(int attribute, int value, void *kernel, int device);

static struct global *global_of(struct global *g, const char *name, int managed)
{
	while (g && (g->managed != managed || strcmp(g->name, name)))
		g = g->next;
	return g;
}

/* What stands for the blocks that managed variables share: of a device's modules, and those of libraries are with the
 * first device's. */
static char managed_blocks[16];

/* @managed: a part of managed_blocks; NULL: it is not. */
static void add_global(struct global **list, const char *name, uint64_t size, void *managed)
{
	struct global *g = calloc(1, sizeof(*g));

	snprintf(g->name, sizeof(g->name), "%s", name);
	g->size = size;
	g->managed = managed != NULL;
	g->address = managed ? heap_take(HEAP_MANAGED_VARIABLES, managed, size)
			     : heap_take(HEAP_VARIABLES, current_context(), size);
	g->next = *list;
	*list = g;
	memory_adopt(g->address, size, managed ? MANAGED : ALLOCATED);
}

/* To @list, all in @image that @format, with NAME and SIZE, fits. */
static void declare(struct global **list, const char *image, const char *format, void *managed)
{
	const char *line = image;
	char name[32];
	uint64_t size;

	while ((line = strchr(line, '\n')))
		if (sscanf(++line, format, name, &size) == 2)
			add_global(list, name, size, managed);
}

static void declare_managed(struct global **list, const char *image, int is_library)
{
	void *blocks = &managed_blocks[is_library ? 0 : current_device()];

	if (*list && (*list)->managed)
		return;
	declare(list, image, ".global .attribute(.managed) .b8 %31[^[][%lu]", blocks);
	declare(list, image, ".visible .global .attribute(.managed) .align 4 .b8 %31[^[][%lu]",
		blocks);
}

static int is_image(const char *image)
{
	return !strncmp(image, "sim module", 10) || !strncmp(image, ".version", 8);
}

/* Of @library, if it is one's. */
static struct module *load(const char *image, struct library *library)
{
	struct module *m;

	if (!is_image(image))
		return NULL;
	m = object_new(OBJECT_MODULE, sizeof(*m));
	m->context = current_context();
	m->is_library = !!library;
	m->next = modules;
	modules = m;
	declare(&m->globals, image, ".global .b8 %31[^[][%lu]", NULL);
	declare(&m->globals, image, ".visible .global .align 4 .b8 %31[^[][%lu]", NULL);
	declare_managed(library ? &library->managed : &m->globals, image, !!library);
	return m;
}

static void forget_globals(struct global *g)
{
	for (struct global *next; g; g = next) {
		next = g->next;
		memory_forget(g->address, g->managed ? MANAGED : ALLOCATED);
		heap_give(g->managed ? HEAP_MANAGED_VARIABLES : HEAP_VARIABLES, g->address,
			g->size);
		free(g);
	}
}

static void unload(struct module *m)
{
	struct module **at = &modules;
	struct function *f;

	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	forget_globals(m->globals);
	while ((f = m->functions)) {
		m->functions = f->next;
		object_free(f);
	}
	object_free(m);
}

int cuModuleLoadData(void **module, const void *image)
{
	int r;

	SIM_ENTER();
	r = sim_have_context();
	if (r)
		return r;
	*module = load(image, NULL);
	return *module ? 0 : SIM_INVALID_VALUE;
}

int cuModuleLoadDataEx(
	void **module, const void *image, unsigned count, const int *options, void **values)
{
	SIM_ENTER();
	for (unsigned i = 0; i < count; i++)
		if (options[i] == 3) /* CU_JIT_INFO_LOG_BUFFER */
			strcpy(values[i], "loaded");
	return cuModuleLoadData(module, image);
}

int cuModuleUnload(void *module)
{
	struct module *m;

	SIM_ENTER();
	m = object_get(OBJECT_MODULE, module, __func__);
	if (m)
		unload(m);
	return m ? 0 : SIM_INVALID_HANDLE;
}

static int get_function(void **function, struct module *m, const char *name)
{
	struct function *f = m->functions;

	if (!kernel_find(name))
		return SIM_NOT_FOUND;
	while (f && strcmp(f->name, name))
		f = f->next;
	if (!f) {
		f = object_new(OBJECT_FUNCTION, sizeof(*f));
		f->module = m;
		snprintf(f->name, sizeof(f->name), "%s", name);
		f->next = m->functions;
		m->functions = f;
	}
	*function = f;
	return 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
	struct module *m;

	SIM_ENTER();
	m = object_get(OBJECT_MODULE, module, __func__);
	return m ? get_function(function, m, name) : SIM_INVALID_HANDLE;
}

int cuModuleGetFunctionCount(unsigned *count, void *module)
{
	SIM_ENTER();
	for (*count = 0; kernel_name(*count);)
		++*count;
	return object_get(OBJECT_MODULE, module, __func__) ? 0 : SIM_INVALID_HANDLE;
}

int cuModuleEnumerateFunctions(void **functions, unsigned count, void *module)
{
	struct module *m;
	int r = 0;

	SIM_ENTER();
	m = object_get(OBJECT_MODULE, module, __func__);
	for (unsigned i = 0; m && i < count && kernel_name(i) && !r; i++)
		r = get_function(&functions[i], m, kernel_name(i));
	return m ? r : SIM_INVALID_HANDLE;
}

static int get_global(uint64_t *address, size_t *size, const struct global *g)
{
	if (g && address)
		*address = g->address;
	if (g && size)
		*size = g->size;
	return g ? 0 : SIM_NOT_FOUND;
}

int cuModuleGetGlobal_v2(uint64_t *address, size_t *size, void *module, const char *name)
{
	const struct global *g;
	struct module *m;

	SIM_ENTER();
	m = object_get(OBJECT_MODULE, module, __func__);
	if (!m)
		return SIM_INVALID_HANDLE;
	g = global_of(m->globals, name, 0);
	return get_global(address, size, g ? g : global_of(m->globals, name, 1));
}

static int *attribute_of(int *attributes, int attribute)
{
	return attribute >= 0 && attribute < ATTRIBUTES ? &attributes[attribute] : NULL;
}

int cuFuncGetAttribute(int *value, int attribute, void *function)
{
	struct function *f;

	SIM_ENTER();
	f = object_get(OBJECT_FUNCTION, function, __func__);
	if (!f || !attribute_of(f->attributes, attribute))
		return f ? SIM_INVALID_VALUE : SIM_INVALID_HANDLE;
	*value = f->attributes[attribute];
	return 0;
}

int cuFuncSetAttribute(void *function, int attribute, int value)
{
	struct function *f;

	SIM_ENTER();
	f = object_get(OBJECT_FUNCTION, function, __func__);
	if (!f || !attribute_of(f->attributes, attribute))
		return f ? SIM_INVALID_VALUE : SIM_INVALID_HANDLE;
	f->attributes[attribute] = value;
	return 0;
}

/* No call of the driver tells which one it is; here an attribute of our own does. */
int cuFuncSetCacheConfig(void *function, int config)
{
	struct function *f;

	SIM_ENTER();
	f = object_get(OBJECT_FUNCTION, function, __func__);
	if (f)
		f->attributes[CACHE_CONFIG] = config;
	return f ? 0 : SIM_INVALID_HANDLE;
}

int cuFuncGetModule(void **module, void *function)
{
	struct function *f;

	SIM_ENTER();
	f = object_get(OBJECT_FUNCTION, function, __func__);
	if (f)
		*module = f->module;
	return f ? 0 : SIM_INVALID_HANDLE;
}

int cuFuncGetName(const char **name, void *function)
{
	struct function *f;

	SIM_ENTER();
	f = object_get(OBJECT_FUNCTION, function, __func__);
	if (f)
		*name = f->name;
	return f ? 0 : SIM_INVALID_HANDLE;
}

int cuFuncLoad(void *function)
{
	struct function *f;

	SIM_ENTER();
	f = object_get(OBJECT_FUNCTION, function, __func__);
	if (f)
		f->loaded = 1;
	return f ? 0 : SIM_INVALID_HANDLE;
}

/* ---- libraries ---- */

/* In the current context. */
static struct module *library_module(struct library *l)
{
	struct loaded *in = l->loaded;

	while (in && in->context != current_context())
		in = in->next;
	if (!in) {
		in = calloc(1, sizeof(*in));
		*in = (struct loaded){current_context(), load(l->image, l), l->loaded};
		l->loaded = in;
	}
	return in->module;
}

static void leave(struct loaded **at)
{
	struct loaded *in = *at;

	*at = in->next;
	unload(in->module);
	free(in);
}

void module_context_gone(void *context)
{
	for (struct module *m = modules, *next; m; m = next) {
		next = m->next;
		if (m->context == context && !m->is_library)
			unload(m);
	}
	for (struct library *l = libraries; l; l = l->next)
		for (struct loaded **at = &l->loaded; *at;) {
			if ((*at)->context == context)
				leave(at);
			else
				at = &(*at)->next;
		}
}

/* CUlibraryHostUniversalFunctionAndDataTable, both of one word. */
static int is_table(const void *value)
{
	const struct {
		void *functions;
		size_t functions_size;
		void *data;
		size_t data_size;
	} *t = value;

	return t && t->functions && t->data && t->functions_size == 8 && t->data_size == 8;
}

int cuLibraryLoadData(void **library, const void *image, const int *jit, void **jit_values,
	unsigned jit_count, const int *options, void **values, unsigned count)
{
	struct library *l;

	SIM_ENTER();
	for (unsigned i = 0; i < count; i++)
		if (options[i] == 0 && !is_table(values[i]))
			return SIM_INVALID_VALUE;
	if (!is_image(image))
		return SIM_INVALID_VALUE;
	l = object_new(OBJECT_LIBRARY, sizeof(*l));
	l->image = strdup(image);
	l->next = libraries;
	libraries = l;
	*library = l;
	if (current_context())
		declare_managed(&l->managed, l->image, 1);
	return 0;
}

int cuLibraryUnload(void *library)
{
	struct library *l, **at = &libraries;
	struct kernel *k;

	SIM_ENTER();
	l = object_get(OBJECT_LIBRARY, library, __func__);
	if (!l)
		return SIM_INVALID_HANDLE;
	while (l->loaded)
		leave(&l->loaded);
	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	while ((k = l->kernels)) {
		l->kernels = k->next;
		object_free(k);
	}
	forget_globals(l->managed);
	free(l->image);
	object_free(l);
	return 0;
}

int cuLibraryGetKernel(void **kernel, void *library, const char *name)
{
	struct library *l;
	struct kernel *k;

	SIM_ENTER();
	l = object_get(OBJECT_LIBRARY, library, __func__);
	if (!l || !kernel_find(name))
		return l ? SIM_NOT_FOUND : SIM_INVALID_HANDLE;
	for (k = l->kernels; k && strcmp(k->name, name);)
		k = k->next;
	if (!k) {
		k = object_new(OBJECT_KERNEL, sizeof(*k));
		k->library = l;
		snprintf(k->name, sizeof(k->name), "%s", name);
		k->next = l->kernels;
		l->kernels = k;
	}
	*kernel = k;
	return 0;
}

int cuLibraryGetModule(void **module, void *library)
{
	struct library *l;

	SIM_ENTER();
	l = object_get(OBJECT_LIBRARY, library, __func__);
	if (!l || sim_have_context())
		return l ? SIM_INVALID_CONTEXT : SIM_INVALID_HANDLE;
	*module = library_module(l);
	return 0;
}

int cuLibraryGetGlobal(uint64_t *address, size_t *size, void *library, const char *name)
{
	struct library *l;

	SIM_ENTER();
	l = object_get(OBJECT_LIBRARY, library, __func__);
	if (!l || sim_have_context())
		return l ? SIM_INVALID_CONTEXT : SIM_INVALID_HANDLE;
	return get_global(address, size, global_of(library_module(l)->globals, name, 0));
}

int cuLibraryGetManaged(uint64_t *address, size_t *size, void *library, const char *name)
{
	struct library *l;

	SIM_ENTER();
	l = object_get(OBJECT_LIBRARY, library, __func__);
	if (!l)
		return SIM_INVALID_HANDLE;
	declare_managed(&l->managed, l->image, 1);
	return get_global(address, size, global_of(l->managed, name, 1));
}

int cuKernelGetFunction(void **function, void *kernel)
{
	struct kernel *k;

	SIM_ENTER();
	k = object_get(OBJECT_KERNEL, kernel, __func__);
	if (!k || sim_have_context())
		return k ? SIM_INVALID_CONTEXT : SIM_INVALID_HANDLE;
	return get_function(function, library_module(k->library), k->name);
}

int cuKernelGetLibrary(void **library, void *kernel)
{
	struct kernel *k;

	SIM_ENTER();
	k = object_get(OBJECT_KERNEL, kernel, __func__);
	if (k)
		*library = k->library;
	return k ? 0 : SIM_INVALID_HANDLE;
}

int cuKernelGetName(const char **name, void *kernel)
{
	struct kernel *k;

	SIM_ENTER();
	k = object_get(OBJECT_KERNEL, kernel, __func__);
	if (k)
		*name = k->name;
	return k ? 0 : SIM_INVALID_HANDLE;
}

int cuKernelGetAttribute(int *value, int attribute, void *kernel, int device)
{
	struct kernel *k;

	SIM_ENTER();
	k = object_get(OBJECT_KERNEL, kernel, __func__);
	if (!k || !attribute_of(k->attributes, attribute))
		return k ? SIM_INVALID_VALUE : SIM_INVALID_HANDLE;
	*value = k->attributes[attribute];
	return 0;
}

int cuKernelSetAttribute(int attribute, int value, void *kernel, int device)
{
	struct kernel *k;

	SIM_ENTER();
	k = object_get(OBJECT_KERNEL, kernel, __func__);
	if (!k || !attribute_of(k->attributes, attribute))
		return k ? SIM_INVALID_VALUE : SIM_INVALID_HANDLE;
	k->attributes[attribute] = value;
	return 0;
}

kernel_function *function_to_run(void *handle, const char *function)
{
	device_runs();
	struct kernel *k = object_get(OBJECT_KERNEL, handle, function);
	struct function *f;

	if (k) {
		library_module(k->library);
		return kernel_find(k->name);
	}
	f = object_get(OBJECT_FUNCTION, handle, function);
	if (!f)
		return NULL;
	f->loaded = 1;
	return kernel_find(f->name);
}
