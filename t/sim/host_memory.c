/* Memory of the host that the device reaches. */
#include <sys/mman.h>

#include "t/sim/device.h"
#include "t/sim/memory.h"
#include "t/sim/sim.h"
#include "t/sim/stream.h"

SIM_EXPORT int cuMemHostAlloc(void **address, size_t size, unsigned flags);
SIM_EXPORT int cuMemAllocHost_v2(void **address, size_t size);
SIM_EXPORT int cuMemFreeHost(void *address);
SIM_EXPORT int cuMemHostGetFlags(unsigned *flags, void *address);
SIM_EXPORT int cuMemHostGetDevicePointer_v2(uint64_t *device, void *address, unsigned flags);
SIM_EXPORT int cuMemHostRegister_v2(void *address, size_t size, unsigned flags);
SIM_EXPORT int cuMemHostUnregister(void *address);

int cuMemHostAlloc(void **address, size_t size, unsigned flags)
{
	struct range *r;
	int result;

	SIM_ENTER();
	result = sim_have_context();
	if (result || !address || flags > 7)
		return result ? result : SIM_INVALID_VALUE;
	*address = NULL;
	if (!size)
		return 0;
	ranges_lock();
	r = range_new(size, PINNED);
	if (r) {
		r->flags = (flags & 4) | 2;
		*address = (void *)r->start;
	}
	ranges_unlock();
	return r ? 0 : SIM_OUT_OF_MEMORY;
}

int cuMemAllocHost_v2(void **address, size_t size)
{
	return cuMemHostAlloc(address, size, 0);
}

int cuMemFreeHost(void *address)
{
	struct range *r;
	int result = SIM_INVALID_VALUE;

	SIM_ENTER();
	if (!address)
		return 0;
	stream_wait_all();
	ranges_lock();
	r = range_find((uint64_t)address, PINNED);
	if (r && r->start == (uint64_t)address) {
		range_free(r);
		result = 0;
	}
	ranges_unlock();
	return result;
}

static struct range *find(void *address)
{
	struct range *r = range_find((uint64_t)address, PINNED);

	return r ? r : range_find((uint64_t)address, REGISTERED);
}

int cuMemHostGetFlags(unsigned *flags, void *address)
{
	struct range *r;

	SIM_ENTER();
	ranges_lock();
	r = find(address);
	if (r)
		*flags = r->flags;
	ranges_unlock();
	return r ? 0 : SIM_INVALID_VALUE;
}

int cuMemHostGetDevicePointer_v2(uint64_t *device, void *address, unsigned flags)
{
	struct range *r;

	SIM_ENTER();
	ranges_lock();
	r = find(address);
	if (r)
		*device = (uint64_t)address;
	ranges_unlock();
	return r && !flags ? 0 : SIM_INVALID_VALUE;
}

/* What is not there would fault when it is pinned. */
static bool is_there(uint64_t start, uint64_t size)
{
	uint64_t from = start & ~4095ul, to = (start + size + 4095) & ~4095ul;

	return !madvise((void *)from, to - from, MADV_NORMAL);
}

int cuMemHostRegister_v2(void *address, size_t size, unsigned flags)
{
	uint64_t start = (uint64_t)address;
	int result;

	SIM_ENTER();
	result = sim_have_context();
	if (result || !start || !size || flags > 15)
		return result ? result : SIM_INVALID_VALUE;
	ranges_lock();
	if (range_memory(start) || range_memory(start + size - 1))
		result = SIM_ALREADY_REGISTERED;
	else if (!is_there(start, size))
		result = SIM_INVALID_VALUE;
	else
		range_add(start, size, REGISTERED)->flags = (flags & 1) | 2;
	ranges_unlock();
	return result;
}

int cuMemHostUnregister(void *address)
{
	struct range *r;
	int result;

	SIM_ENTER();
	/* As the driver has it (580): any context will do, and none, but not a destroyed one. */
	result = sim_have_context();
	if (result == SIM_CONTEXT_IS_DESTROYED || !address)
		return address ? result : SIM_INVALID_VALUE;
	result = SIM_NOT_REGISTERED;
	stream_wait_all();
	ranges_lock();
	r = range_find((uint64_t)address, REGISTERED);
	if (r && r->start == (uint64_t)address) {
		range_drop(r);
		result = 0;
	} else if (r || range_find((uint64_t)address, PINNED)) {
		result = SIM_INVALID_VALUE;
	}
	ranges_unlock();
	return result;
}
