/* Initialisation, one device, contexts. Each thread has a current context, as with the driver:
 * kept in thread-local storage, which is what the split process must get right. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "t/sim/object.h"
#include "t/sim/device.h"
#include "t/sim/sim.h"

struct context {
	struct object object;
	int references;
};

static int initialised_by; /* process id */
static struct context *primary;
static __thread struct context *current;

#define MAX_STACK 16
static __thread struct context *stack[MAX_STACK]; /* below the current one */
static __thread int depth;

SIM_EXPORT int cuInit(unsigned flags);
SIM_EXPORT int cuDriverGetVersion(int *version);
SIM_EXPORT int cuDeviceGetCount(int *count);
SIM_EXPORT int cuDeviceGet(int *device, int ordinal);
SIM_EXPORT int cuDeviceGetUuid_v2(unsigned char uuid[16], int device);
SIM_EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device);
SIM_EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
SIM_EXPORT int cuCtxPushCurrent_v2(void *context);
SIM_EXPORT int cuCtxPopCurrent_v2(void **context);
SIM_EXPORT int cuDeviceGetName(char *name, int size, int device);
SIM_EXPORT int cuDeviceGetUuid_v2(unsigned char uuid[16], int device)
{
	SIM_ENTER();
	memcpy(uuid, "simulated device", 16);
	return device == 0 ? sim_ready() : SIM_INVALID_DEVICE;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	SIM_ENTER();
	*bytes = SIM_TOTAL_MEMORY;
	return device == 0 ? sim_ready() : SIM_INVALID_DEVICE;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
	SIM_ENTER();
	*flags = 0;
	*active = primary && primary->references;
	return device == 0 ? sim_ready() : SIM_INVALID_DEVICE;
}

int cuDevicePrimaryCtxRetain(void **context, int device);
SIM_EXPORT int cuCtxSetCurrent(void *context);
SIM_EXPORT int cuCtxGetCurrent(void **context);
SIM_EXPORT int cuCtxGetDevice(int *device);
SIM_EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device);

int sim_ready(void)
{
	return initialised_by == getpid() ? 0 : SIM_NOT_INITIALIZED;
}

void *current_context(void)
{
	return current;
}

int sim_have_context(void)
{
	int r = sim_ready();

	return r ? r : current ? 0 : SIM_INVALID_CONTEXT;
}

/* As the driver: it asks for an address by hint, and gives up when it gets another. */
static int reserve(void)
{
	void *wanted = (void *)0x200000000;

	if (mmap(wanted, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != wanted)
		return SIM_OUT_OF_MEMORY;
	return munmap(wanted, 1 << 20) ? SIM_OUT_OF_MEMORY : 0;
}

int cuInit(unsigned flags)
{
	SIM_ENTER();
	if (flags)
		return SIM_INVALID_VALUE;
	if (initialised_by && initialised_by != getpid())
		return SIM_NOT_INITIALIZED; /* a child of fork, as with the driver */
	if (reserve())
		return SIM_OUT_OF_MEMORY;
	initialised_by = getpid();
	return 0;
}

int cuDriverGetVersion(int *version)
{
	SIM_ENTER();
	*version = 13000;
	return 0;
}

int cuDeviceGetCount(int *count)
{
	SIM_ENTER();
	*count = 1;
	return sim_ready();
}

int cuDeviceGet(int *device, int ordinal)
{
	SIM_ENTER();
	if (sim_ready())
		return SIM_NOT_INITIALIZED;
	*device = ordinal;
	return ordinal == 0 ? 0 : SIM_INVALID_DEVICE;
}

int cuDeviceGetName(char *name, int size, int device)
{
	SIM_ENTER();
	strncpy(name, "Simulated", size);
	return device == 0 ? sim_ready() : SIM_INVALID_DEVICE;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	SIM_ENTER();
	if (sim_ready() || device)
		return device ? SIM_INVALID_DEVICE : SIM_NOT_INITIALIZED;
	if (!primary)
		primary = object_new(OBJECT_CONTEXT, sizeof(*primary));
	primary->references++;
	*context = primary;
	return 0;
}

int cuCtxSetCurrent(void *context)
{
	SIM_ENTER();
	if (context && !object_get(OBJECT_CONTEXT, context, __func__))
		return SIM_INVALID_CONTEXT;
	current = context;
	return sim_ready();
}

int cuCtxPushCurrent_v2(void *context)
{
	SIM_ENTER();
	if (!object_get(OBJECT_CONTEXT, context, __func__))
		return SIM_INVALID_CONTEXT;
	if (depth == MAX_STACK)
		return SIM_OUT_OF_MEMORY;
	stack[depth++] = current;
	current = context;
	return sim_ready();
}

int cuCtxPopCurrent_v2(void **context)
{
	SIM_ENTER();
	if (!current)
		return SIM_INVALID_CONTEXT;
	*context = current;
	current = depth ? stack[--depth] : NULL;
	return sim_ready();
}

int cuCtxGetCurrent(void **context)
{
	SIM_ENTER();
	*context = current;
	return sim_ready();
}

int cuCtxGetDevice(int *device)
{
	SIM_ENTER();
	*device = 0;
	return sim_have_context();
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	SIM_ENTER();
	*value = 0;
	return device == 0 ? sim_ready() : SIM_INVALID_DEVICE;
}
