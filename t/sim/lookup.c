/* cuGetProcAddress, as the driver answers: by name, newest version that is not newer than the
 * caller; and the tables without names. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stubs/function_versions.h"
#include "t/sim/device.h"
#include "t/sim/sim.h"

#define PER_THREAD 2

extern const struct function_version cuda_versions[];
extern const size_t cuda_version_count;

SIM_EXPORT int cuGetProcAddress_v2(
	const char *name, void **function, int version, uint64_t flags, int *status);
SIM_EXPORT int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags);
SIM_EXPORT int cuGetExportTable(const void **table, const void *id);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuModuleGetFunctionCount(unsigned *count, void *module);
int cuModuleEnumerateFunctions(void **functions, unsigned count, void *module);

static int known(const char *name)
{
	for (size_t i = 0; i < cuda_version_count; i++)
		if (!strcmp(cuda_versions[i].name, name))
			return 1;
	return 0;
}

int cuGetProcAddress_v2(
	const char *name, void **function, int version, uint64_t flags, int *status)
{
	SIM_ENTER();
	if (!name || !function)
		return SIM_INVALID_VALUE;
	*function = (void *)function_version_find(
		cuda_versions, cuda_version_count, name, version, !!(flags & PER_THREAD));
	/* A driver newer than the table of the stubs. */
	if (!strcmp(name, "cuFromTheFuture"))
		*function = (void *)cuGetProcAddress;
	if (status)
		*status = *function ? 0 : known(name) ? 2 : 1;
	return *function ? 0 : SIM_NOT_FOUND;
}

int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

/* ---- tables ---- */

static pthread_key_t key;

static int hidden_add(int a, int b)
{
	SIM_ENTER();
	return a + b;
}

/* What functions without a name may do. Takes no lock, for signal handlers. */
static int hidden_make_current(void *context)
{
	SIM_ENTER();
	make_current(context);
	return 0;
}

static int hidden_create(void **context, int device)
{
	SIM_ENTER();
	return cuCtxCreate_v2(context, 0, device);
}

static int hidden_current(void **context)
{
	SIM_ENTER();
	*context = current_context();
	return 0;
}

static int hidden_function(void **function, void *module, const char *name)
{
	SIM_ENTER();
	return cuModuleGetFunction(function, module, name);
}

static int hidden_times_asked(void)
{
	SIM_ENTER();
	return device_times_asked;
}

/* As the driver's: reached without a crossing, it looks at the thread's own data. */
static int check_thread_data(int value, int *result)
{
	void *mine = pthread_getspecific(key);

	*result = mine == &key ? value : -1;
	return 0;
}

typedef int destructor_function(void *, void *, void *);

struct stored {
	void *context, *key, *value;
	destructor_function *destructor;
	struct stored *next;
};

static struct stored *stored;

static struct stored **find_stored(const void *context, const void *name)
{
	struct stored **s = &stored;

	while (*s && ((*s)->context != context || (*s)->key != name))
		s = &(*s)->next;
	return s;
}

static int storage_put(void *context, void *name, void *value, destructor_function *d)
{
	struct stored **s, *new;

	SIM_ENTER();
	s = find_stored(context ? context : current_context(), name);
	new = *s ? *s : calloc(1, sizeof(*new));
	*new = (struct stored){
		context ? context : current_context(), name, value, d, *s ? (*s)->next : NULL};
	*s = new;
	return 0;
}

static int storage_delete(void *context, void *name)
{
	struct stored **at, s;

	SIM_ENTER();
	at = find_stored(context ? context : current_context(), name);
	if (!*at)
		return SIM_INVALID_HANDLE;
	s = **at;
	free(*at);
	*at = s.next;
	return s.destructor ? s.destructor(s.context, s.key, s.value) : 0;
}

static int storage_get(void **value, void *context, void *name)
{
	struct stored *s;

	SIM_ENTER();
	__atomic_add_fetch(&device_times_asked, 1, __ATOMIC_RELAXED);
	s = *find_stored(context ? context : current_context(), name);
	if (!s)
		return SIM_INVALID_HANDLE;
	*value = s->value;
	return 0;
}

/* The functions of a module, as the driver tells them; @take is only to look. */
static int each_function(
	void *context, void *module, void (*take)(void *data, void *function), void *data)
{
	void **functions;
	unsigned count;
	int r;

	SIM_ENTER();
	if (cuModuleGetFunctionCount(&count, module))
		return 0;
	functions = calloc(count, sizeof(*functions));
	r = cuModuleEnumerateFunctions(functions, count, module);
	for (unsigned i = 0; i < count && !r; i++)
		take(data, functions[i]);
	free(functions);
	return r ? 0 : (int)count;
}

static int hidden_times(int a, int b)
{
	SIM_ENTER();
	return a * b;
}

static const void *const functions_table[] = {(void *)56, hidden_add, hidden_make_current,
	hidden_times_asked, hidden_create, hidden_current, hidden_function};
/* Of a driver that has one function more. */
static const void *const longer_table[] = {(void *)64, hidden_add, hidden_make_current,
	hidden_times_asked, hidden_create, hidden_current, hidden_function, hidden_add};
static const void *const unknown_table[] = {(void *)16, hidden_times};
static const void *const modules_table[] = {
	(void *)64, NULL, NULL, NULL, NULL, NULL, NULL, each_function};
static const void *const check_table[] = {(void *)16, check_thread_data};
static const void *const storage_table[] = {storage_put, storage_delete, storage_get, 0};

int cuGetExportTable(const void **table, const void *id)
{
	SIM_ENTER();
	if (!key)
		pthread_key_create(&key, NULL);
	pthread_setspecific(key, &key);
	switch (*(const uint8_t *)id) {
	case 0x6b: /* which may be "gone" or "longer" in the machine file */
		if (!strcmp(sim_machine("functions", ""), "gone"))
			return SIM_NOT_FOUND;
		*table = strcmp(sim_machine("functions", ""), "longer") ? functions_table
									: longer_table;
		return 0;
	case 0x6e:
		*table = modules_table;
		return 0;
	case 0xd4:
		*table = check_table;
		return 0;
	case 0xc6:
		*table = storage_table;
		return 0;
	case 0x2c: /* CUPTI's */
	case 0x99: /* a table that trecr does not know */
		*table = unknown_table;
		return 0;
	case 0x98: /* a table that does not begin with its size */
		*table = &unknown_table[1];
		return 0;
	}
	return SIM_NOT_FOUND;
}
