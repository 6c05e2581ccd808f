/* cuMemAlloc, and what all memory has in common. */
#include "t/sim/memory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "t/sim/device.h"
#include "t/sim/heap.h"
#include "t/sim/sim.h"
#include "t/sim/stream.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges;
static uint64_t used, ids;

SIM_EXPORT int cuMemAlloc_v2(uint64_t *address, size_t size);
SIM_EXPORT int cuMemAllocPitch_v2(
	uint64_t *address, size_t *pitch, size_t width, size_t height, unsigned element);
SIM_EXPORT int cuMemAllocManaged(uint64_t *address, size_t size, unsigned flags);
SIM_EXPORT int cuMemFree_v2(uint64_t address);
SIM_EXPORT int cuMemAdvise_v2(uint64_t address, size_t size, int advice, uint64_t location);
SIM_EXPORT int cuMemAdvise(uint64_t address, size_t size, int advice, int device);
SIM_EXPORT int cuStreamAttachMemAsync(
	void *stream, uint64_t address, size_t size, unsigned flags);
SIM_EXPORT int cuMemRangeGetAttribute(
	void *data, size_t data_size, int attribute, uint64_t address, size_t size);
SIM_EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total);
SIM_EXPORT int cuMemGetAddressRange_v2(uint64_t *start, size_t *size, uint64_t address);

void ranges_lock(void)
{
	pthread_mutex_lock(&lock);
}

void ranges_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

struct range *range_find(uint64_t address, enum range_kind kind)
{
	for (struct range *r = ranges; r; r = r->next)
		if (r->kind == kind && address - r->start < r->size)
			return r;
	return NULL;
}

struct range *range_memory(uint64_t address)
{
	for (struct range *r = ranges; r; r = r->next)
		if (r->kind != RESERVED && address - r->start < r->size)
			return r;
	return NULL;
}

struct range *range_add(uint64_t start, uint64_t size, enum range_kind kind)
{
	struct range *r = calloc(1, sizeof(*r));

	r->start = start;
	r->size = size;
	r->kind = kind;
	r->id = ++ids;
	r->context = current_context();
	r->next = ranges;
	ranges = r;
	return r;
}

void range_drop(struct range *range)
{
	struct range **p = &ranges;

	while (*p != range)
		p = &(*p)->next;
	*p = range->next;
	free(range);
}

/* What other processes have, in bytes. */
static uint64_t used_by_others(void)
{
	return strtoul(sim_machine("used", "0"), NULL, 10) << 20;
}

bool memory_take(uint64_t size)
{
	if (used + used_by_others() + size > SIM_TOTAL_MEMORY)
		return false;
	used += size;
	return true;
}

void memory_give(uint64_t size)
{
	used -= size;
}

static uint64_t rounded(uint64_t size)
{
	return size > GRANULE / 2 ? (size + GRANULE - 1) & ~(GRANULE - 1)
				  : (size + UNIT - 1) & ~(UNIT - 1);
}

/* So that no two processes have the same addresses, where the driver chooses them. */
static void slide(void)
{
	unsigned char pages = 0;

	if (!ids && getrandom(&pages, 1, 0) == 1)
		mmap(NULL, (1 + pages) * 4096ul, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

struct range *range_new(uint64_t size, enum range_kind kind)
{
	bool takes = kind != PINNED && kind != MANAGED;
	void *p;

	if (size > SIM_TOTAL_MEMORY || (takes && !memory_take(rounded(size))))
		return NULL;
	slide();
	p = kind == MANAGED ? (void *)heap_take(HEAP_MANAGED, current_context(), size)
			    : mmap(NULL, rounded(size), PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p != MAP_FAILED)
		return range_add((uint64_t)p, size, kind);
	if (takes)
		memory_give(rounded(size));
	return NULL;
}

void range_free(struct range *r)
{
	if (r->kind != PINNED && r->kind != MANAGED && r->kind != EXTERNAL)
		memory_give(rounded(r->size));
	if (r->kind == MANAGED)
		heap_give(HEAP_MANAGED, r->start, r->size);
	else
		munmap((void *)r->start, rounded(r->size));
	range_drop(r);
}

void ranges_drop_context(void *context)
{
	struct range *next;

	ranges_lock();
	for (struct range *r = ranges; r; r = next) {
		next = r->next;
		if (r->context != context || r->kind == RESERVED || r->kind == MAPPED ||
			r->kind == POOLED)
			continue;
		if (r->kind == REGISTERED)
			range_drop(r);
		else
			range_free(r);
	}
	ranges_unlock();
}

static bool reachable(const struct range *r)
{
	return r && (r->kind != MAPPED || r->accessible);
}

void memory_check(uint64_t address, uint64_t size, const char *function)
{
	ranges_lock();
	while (size) {
		struct range *r = range_memory(address);
		uint64_t n;

		if (!reachable(r))
			break;
		n = r->start + r->size - address;
		if (n >= size)
			n = size;
		address += n;
		size -= n;
	}
	ranges_unlock();
	if (size)
		sim_hostile("an address that is not device memory", function);
}

void memory_adopt(uint64_t address, uint64_t size, enum range_kind kind)
{
	ranges_lock();
	range_add(address, size, kind)->context = NULL; /* it goes with its module */
	ranges_unlock();
}

void memory_forget(uint64_t address, enum range_kind kind)
{
	ranges_lock();
	range_drop(range_find(address, kind));
	ranges_unlock();
}

static int allocate(uint64_t *address, size_t size, enum range_kind kind)
{
	struct range *r;
	int result = sim_have_context();

	if (result || !size || !address)
		return result ? result : SIM_INVALID_VALUE;
	ranges_lock();
	r = range_new(size, kind);
	if (r)
		*address = r->start;
	ranges_unlock();
	return r ? 0 : SIM_OUT_OF_MEMORY;
}

int cuMemAlloc_v2(uint64_t *address, size_t size)
{
	SIM_ENTER();
	return allocate(address, size, ALLOCATED);
}

int cuMemAllocPitch_v2(
	uint64_t *address, size_t *pitch, size_t width, size_t height, unsigned element)
{
	if (!pitch || !width || !height || (element != 4 && element != 8 && element != 16))
		return SIM_INVALID_VALUE;
	*pitch = (width + 511) & ~511ul;
	return cuMemAlloc_v2(address, *pitch * height);
}

int cuMemAllocManaged(uint64_t *address, size_t size, unsigned flags)
{
	SIM_ENTER();
	return allocate(address, size, MANAGED);
}

int cuMemFree_v2(uint64_t address)
{
	struct range *r;
	int result = 0;

	SIM_ENTER();
	if (sim_ready())
		return SIM_NOT_INITIALIZED;
	if (!address)
		return 0;
	stream_wait_all();
	ranges_lock();
	r = range_memory(address);
	if (!r || r->start != address ||
		(r->kind != ALLOCATED && r->kind != POOLED && r->kind != MANAGED &&
			r->kind != EXTERNAL)) {
		result = SIM_INVALID_VALUE;
	} else {
		pool_left(r);
		range_free(r);
	}
	ranges_unlock();
	return result;
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	SIM_ENTER();
	*free_bytes = SIM_TOTAL_MEMORY - used - used_by_others();
	*total = SIM_TOTAL_MEMORY;
	return sim_have_context();
}

int cuMemGetAddressRange_v2(uint64_t *start, size_t *size, uint64_t address)
{
	struct range *r;
	int result;

	SIM_ENTER();
	result = sim_have_context();
	if (result)
		return result;
	ranges_lock();
	r = range_memory(address);
	if (r && start)
		*start = r->start;
	if (r && size)
		*size = r->size;
	ranges_unlock();
	return r ? 0 : SIM_NOT_FOUND;
}

/* ---- managed memory ---- */

/* Of all that an address is in, whatever the size. */
int cuMemAdvise(uint64_t address, size_t size, int advice, int device)
{
	struct range *r;

	SIM_ENTER();
	ranges_lock();
	r = range_find(address, MANAGED);
	if (r && (advice == 1 || advice == 2))
		r->read_mostly = advice == 1;
	if (r && (advice == 3 || advice == 4))
		r->preferred = advice == 3 ? device + 1 : 0;
	ranges_unlock();
	return r ? 0 : SIM_INVALID_VALUE;
}

int cuMemAdvise_v2(uint64_t address, size_t size, int advice, uint64_t location)
{
	return cuMemAdvise(address, size, advice, location >> 32);
}

int cuStreamAttachMemAsync(void *stream, uint64_t address, size_t size, unsigned flags)
{
	struct range *r;

	SIM_ENTER();
	stream_wait(stream, __func__);
	ranges_lock();
	r = range_find(address, MANAGED);
	if (r) {
		r->attached = flags;
		r->stream = stream;
	}
	ranges_unlock();
	return r ? 0 : SIM_INVALID_VALUE;
}

/* 900 is ours: the flags it was attached with, and whether that was to a stream. */
int cuMemRangeGetAttribute(
	void *data, size_t data_size, int attribute, uint64_t address, size_t size)
{
	struct range *r;

	SIM_ENTER();
	ranges_lock();
	r = range_find(address, MANAGED);
	if (r)
		*(int *)data = attribute == 1   ? r->read_mostly
			       : attribute == 2 ? r->preferred - 1
						: (int)(r->attached + 8 * !!r->stream);
	ranges_unlock();
	return r ? 0 : SIM_INVALID_VALUE;
}
