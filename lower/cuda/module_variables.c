/*
 * Variables of modules, also such as the program never asked for: the names are in the module's
 * image, the driver tells where they are. Contents go into the records, and back after a
 * restart; a variable that lies elsewhere cannot be used, as device memory may point to
 * it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lower/cuda/cuda.h"
#include "lower/cuda/symbols.h"
#include "lower/cuda/placement.h"
#include "lower/records_alloc.h"
#include "shared/cuda/calls.h"
#include "shared/cuda/memory_state.h"

extern const struct call_info cuda_info[];

struct scan {
	struct object *owner;
	void *context;
	int again; /* it was scanned there before */
};

#define VARIABLE_STEP 256ul /* each begins at a multiple of this */

static uint64_t power_of_two(uint64_t size)
{
	uint64_t n = 64;

	while (n < size)
		n *= 2;
	return n;
}

/* What the driver says of what is no variable: a name of shared memory, or of code; or of all
 * in a program that is not for the context's device. */
static int is_none(int r)
{
	static const int none[] = {CUDA_MISSING, 1 /* INVALID_VALUE */, 200 /* INVALID_IMAGE */,
		209 /* NO_BINARY_FOR_GPU */, 218 /* INVALID_PTX */,
		222 /* UNSUPPORTED_PTX_VERSION */, 223 /* JIT_COMPILATION_DISABLED */,
		400 /* INVALID_HANDLE */};

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		if (r == none[i])
			return 1;
	return 0;
}

static int get_global(
	const struct object *owner, uint64_t *address, size_t *size, const char *name)
{
	int r;

	if (owner->kind == CUDA_MODULE)
		return CUDA(cuModuleGetGlobal_v2, (uint64_t *, size_t *, void *, const char *))(
			address, size, owner->real, name);
	r = CUDA(cuLibraryGetGlobal, (uint64_t *, size_t *, void *, const char *))(
		address, size, owner->real, name);
	if (!is_none(r))
		return r;
	return CUDA(cuLibraryGetManaged, (uint64_t *, size_t *, void *, const char *))(
		address, size, owner->real, name);
}

static int is_known(const struct scan *scan, const char *name)
{
	for (const struct cuda_global *g = scan->owner->globals; g; g = g->next)
		if (g->context == scan->context && !strcmp(g->name, name))
			return 1;
	return 0;
}

static struct cuda_global *new_global(const struct scan *scan, const char *name)
{
	uint64_t length = strlen(name) + 1;
	uint64_t bytes = power_of_two(sizeof(struct cuda_global) + length);
	struct cuda_global *g = records_alloc(bytes);

	if (!g) {
		agent_fail("no memory for variables of CUDA modules");
		return NULL;
	}
	g->size_of_this = bytes;
	g->context = scan->context;
	memcpy(g->name, name, length);
	return g;
}

static void add_variable(struct scan *scan, struct cuda_global *g)
{
	g->next = scan->owner->globals;
	scan->owner->globals = g;
}

static int is_managed(uint64_t address)
{
	unsigned managed = 0;
	int r = CUDA(cuPointerGetAttribute, (void *, int, uint64_t))(
		&managed, POINTER_IS_MANAGED, address);

	return !r && managed;
}

static int found_variable(const char *name, uint64_t offset, uint64_t together, void *argument)
{
	struct scan *scan = argument;
	uint64_t address = 0;
	size_t size = 0;
	struct cuda_global *g;
	int r;

	if (is_known(scan, name))
		return 0;
	r = get_global(scan->owner, &address, &size, name);
	if (r && !is_none(r))
		return cuda_failed("looking for a variable of a CUDA module", r);
	if (r || !address || !size)
		return 0;
	g = new_global(scan, name);
	if (!g)
		return -1;
	g->data_size = power_of_two(size);
	g->data = records_alloc(g->data_size);
	if (!g->data)
		return agent_fail("no memory for variables of CUDA modules");
	g->address = address;
	g->size = size;
	g->allocation = address - offset;
	g->allocation_size = together ? together : size;
	g->managed = is_managed(address);
	add_variable(scan, g);
	return 0;
}

static int found_allocating(const char *name, void *argument)
{
	struct scan *scan = argument;
	struct cuda_global *g = new_global(scan, name);

	if (!g)
		return -1;
	g->allocates = CUDA_GLOBAL_ALLOCATES;
	add_variable(scan, g);
	return 0;
}

/* Of names that compilers give to strings, which nobody writes to. */
#define STRING_PREFIX '$'

static int found_hidden(const char *name, uint64_t offset, uint64_t size, void *argument)
{
	struct scan *scan = argument;
	struct cuda_global *g;

	if (scan->again)
		return 0;
	if (*name != STRING_PREFIX)
		return agent_fail(
			"a CUDA module has two variables called %s, of which the driver "
			"shows one only: they cannot be saved",
			name);
	g = new_global(scan, name);
	if (!g)
		return -1;
	g->allocates = CUDA_GLOBAL_HIDDEN;
	g->size = g->allocation_size = size;
	add_variable(scan, g);
	return 0;
}

static uint64_t end_of(const struct cuda_global *g)
{
	return (g->allocation + g->allocation_size + VARIABLE_STEP - 1) & ~(VARIABLE_STEP - 1);
}

/* Variables that are hidden between @last and the next before it in the list: they lie between the
 * two, if there is just as much room as they take. */
static void place_hidden(const struct cuda_global *last)
{
	struct cuda_global *first = last->next, *g;
	uint64_t room = 0;

	for (g = first; g && g->allocates == CUDA_GLOBAL_HIDDEN; g = g->next)
		room += (g->size + VARIABLE_STEP - 1) & ~(VARIABLE_STEP - 1);
	if (!g || !room || g->allocates || g->context != last->context || last->managed ||
		g->managed || last->allocation != end_of(g) + room)
		return;
	for (room = last->allocation; first != g; first = first->next) {
		room -= (first->size + VARIABLE_STEP - 1) & ~(VARIABLE_STEP - 1);
		first->address = first->allocation = room;
	}
}

/* What the module or library was loaded from; NULL: it is part of something else. */
static const void *image_of(const struct object *o)
{
	const struct call_info *info;

	if (!o->made || (o->kind != CUDA_MODULE && o->kind != CUDA_LIBRARY))
		return NULL;
	info = &cuda_info[o->made->index];
	for (unsigned i = 0; i < info->param_count; i++)
		if (info->params[i].length_kind == API_IMAGE)
			return (const void *)o->made->arguments[info->params[i].word];
	return NULL;
}

static int is_part(const struct object *o, const struct object *whole)
{
	while (o && o != whole)
		o = o->parent;
	return o != NULL;
}

/* A library is loaded into a context when something of it is first needed there. NULL: it is
 * not loaded anywhere. */
static void *loaded_in(const struct cuda_state *s, const struct object *library)
{
	for (const struct object *o = library->next; o; o = o->next) {
		if (!is_part(o, library))
			continue;
		if (o->kind != CUDA_KERNEL || o->used)
			return cuda_context_of(s, o);
	}
	return NULL;
}

void *cuda_context_of(const struct cuda_state *s, const struct object *o)
{
	const struct object *c = s->objects;

	if (o->context)
		return o->context;
	while (c && c->kind != CUDA_CONTEXT)
		c = c->next;
	return c ? c->real : NULL;
}

static int is_scanned(const struct object *o, const void *context)
{
	const struct cuda_global *g = o->globals;

	while (g && g->context != context)
		g = g->next;
	return g != NULL;
}

static int scan_module(struct object *o, void *context)
{
	struct scan scan = {o, context, is_scanned(o, context)};
	const struct names_visitor visitor = {
		found_variable, found_hidden, found_allocating, &scan};
	int major = 0, minor = 0, device, r;
	void *popped;

	r = CUDA(cuCtxPushCurrent_v2, (void *))(context);
	if (r)
		return cuda_failed("cuCtxPushCurrent", r);
	r = CUDA(cuCtxGetDevice, (int *))(&device);
	if (!r)
		r = CUDA(cuDeviceGetAttribute, (int *, int, int))(&major, 75, device);
	if (!r)
		r = CUDA(cuDeviceGetAttribute, (int *, int, int))(&minor, 76, device);
	if (r)
		cuda_failed("cuDeviceGetAttribute", r);
	else
		r = names_find(image_of(o), major, minor, &visitor);
	CUDA(cuCtxPopCurrent_v2, (void **))(&popped); /* what was pushed is there */
	if (r && !table->order.failure[0])
		agent_fail("cannot tell what variables a CUDA module has");
	for (const struct cuda_global *g = r ? NULL : o->globals; g; g = g->next)
		if (!g->allocates)
			place_hidden(g);
	return r;
}

static uint64_t newest_context(const struct cuda_state *s)
{
	uint64_t newest = 0;

	for (const struct object *o = s->objects; o; o = o->next)
		if (o->kind == CUDA_CONTEXT)
			newest = o->sequence;
	return newest;
}

/* What lies in a file that the program has loaded is not copied (stubs/cuda/device_program.c);
 * the file may have been unloaded. A wrapper leads to more. */
static int is_there(const void *image)
{
	const struct {
		uint32_t magic, version;
		const void *data;
	} *wrapper = image;
	uint32_t magic;
	struct iovec to = {&magic, sizeof(magic)}, from = {(void *)image, sizeof(magic)};

	if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != sizeof(magic))
		return 0;
	return magic != FATBIN_WRAPPER || is_there(wrapper->data);
}

/* A module is of one context. A library has variables of its own in each context that something
 * of it has been used in, which the driver does not tell: so in all there are. */
static int scan_all(const struct cuda_state *s, struct object *o)
{
	void *first = o->kind == CUDA_MODULE    ? o->context
		      : o->kind == CUDA_LIBRARY ? loaded_in(s, o)
						: NULL;
	uint64_t newest = newest_context(s);
	int r;

	if (image_of(o) && !is_there(image_of(o)))
		return agent_fail(
			"a CUDA module was loaded from memory that no longer exists, which "
			"cannot be restored");
	if (!first || !image_of(o) || o->scanned >= newest ||
		(o->kind == CUDA_MODULE && o->scanned))
		return 0;
	r = scan_module(o, first);
	for (const struct object *c = s->objects; c && !r && o->kind == CUDA_LIBRARY;
		c = c->next)
		if (c->kind == CUDA_CONTEXT && c->real != first)
			r = scan_module(o, c->real);
	if (!r)
		o->scanned = newest;
	return r;
}

static int variable_failed(const char *doing, const struct cuda_global *g, int r)
{
	char what[200];

	snprintf(what, sizeof(what), "%s variable %s", doing, g->name);
	return cuda_failed(what, r);
}

typedef int on_global(struct cuda_global *g);

static int each_global(struct cuda_state *s, on_global *act)
{
	int r = 0;

	for (struct object *o = s->objects; o && !r; o = o->next)
		for (struct cuda_global *g = o->globals; g && !r; g = g->next) {
			if (g->allocates)
				continue;
			r = CUDA(cuCtxSetCurrent, (void *))(g->context);
			if (!r)
				r = act(g);
			if (r)
				variable_failed("copying", g, r);
		}
	CUDA(cuCtxSetCurrent, (void *))(NULL); /* this thread has none of its own */
	return r ? -1 : 0;
}

static int save_variable(struct cuda_global *g)
{
	return CUDA(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))(g->data, g->address, g->size);
}

static int load_variable(struct cuda_global *g)
{
	return CUDA(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t))(
		g->address, g->data, g->size);
}

/* ---- the heap of device code ---- */

/* The name by which the program asked for a kernel, or for the kernel that a function is of. */
static const char *name_of(const struct object *o)
{
	for (; o && o->made; o = o->parent) {
		const struct call_info *info = &cuda_info[o->made->index];

		for (unsigned i = 0; i < info->param_count; i++)
			if (info->params[i].direction == API_STRING)
				return (const char *)o->made->arguments[info->params[i].word];
	}
	return "";
}

static int may_have_allocated(const struct object *owner, const char *kernel)
{
	for (const struct cuda_global *g = owner->globals; g; g = g->next)
		if (g->allocates == CUDA_GLOBAL_ALLOCATES &&
			(!*g->name || !strcmp(g->name, kernel)))
			return 1;
	return 0;
}

/* The driver has no way to look at the heap that malloc in device code takes from; nobody knows
 * whether all has been freed. */
static int refuse_allocating(const struct object *owner)
{
	for (const struct object *o = owner->next; o; o = o->next)
		if (o->used && is_part(o, owner) && may_have_allocated(owner, name_of(o)))
			return agent_fail("its kernel %s has used malloc on the device, whose "
					  "memory cannot be restored yet",
				name_of(o));
	return 0;
}

int cuda_save_globals(struct cuda_state *s)
{
	for (struct object *o = s->objects; o; o = o->next)
		if (scan_all(s, o) || (o->globals && refuse_allocating(o)))
			return -1;
	return each_global(s, save_variable);
}

/* The first in @context, NULL: in all, that does not lie where it lay, and where it lies. Of a
 * copy, what is there already has to lie elsewhere. 0: there is none; 1, or -1. */
static int find_moved(const struct object *o, const void *context, int is_copy,
	const struct cuda_global **moved, uint64_t *address)
{
	for (const struct cuda_global *g = o->globals; g; g = g->next) {
		size_t size;
		int r;

		if (g->allocates || (context && g->context != context) ||
			(is_copy && !placement_is_empty(g->address)))
			continue;
		r = CUDA(cuCtxSetCurrent, (void *))(g->context);
		if (!r)
			r = get_global(o, address, &size, g->name);
		if (r)
			return variable_failed("looking for", g, r);
		*moved = g;
		if (*address != g->address)
			return 1;
	}
	return 0;
}

int cuda_globals_match(const struct object *o, const void *context)
{
	const struct cuda_global *moved;
	uint64_t address;
	int r = find_moved(o, context, 1, &moved, &address);

	return r < 0 ? -1 : !r;
}

int cuda_verify_globals(const struct object *o, const void *context)
{
	const struct cuda_global *moved;
	uint64_t address;
	int r = find_moved(o, context, 0, &moved, &address);

	return r > 0 ? agent_fail(
			       "variable %s of a CUDA module is at %#lx here, but was at %#lx",
			       moved->name, address, moved->address)
		     : r;
}

int cuda_replay_globals(struct cuda_state *s)
{
	for (const struct object *o = s->objects; o; o = o->next)
		if (cuda_verify_globals(o, NULL))
			return -1;
	return each_global(s, load_variable);
}
