/*
 * cuMemAlloc and the virtual memory calls. Reservations honour the address asked for when it is
 * free; physical memory is a file of its own that is mapped where it is wanted, so that it can
 * be mapped twice and outlives an unmapping, as the real one.
 */
#include "t/sim/memory.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "t/sim/device.h"
#include "t/sim/object.h"
#include "t/sim/sim.h"

#define GRANULE (2ul << 20)
#define TOTAL   SIM_TOTAL_MEMORY

enum range_kind { RESERVED, MAPPED, ALLOCATED };

struct range {
	uint64_t start, size;
	enum range_kind kind;
	bool accessible;
	struct memory *memory;
	struct range *next;
};

struct memory {
	struct object object;
	uint64_t size;
	int fd;
	int references; /* one for the handle, one for each mapping */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges;
static uint64_t used;

SIM_EXPORT int cuMemAlloc_v2(uint64_t *address, size_t size);
SIM_EXPORT int cuMemFree_v2(uint64_t address);
SIM_EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total);
SIM_EXPORT int cuMemGetAddressRange_v2(uint64_t *start, size_t *size, uint64_t address);
SIM_EXPORT int cuMemAddressReserve(
	uint64_t *address, size_t size, size_t align, uint64_t wanted, uint64_t flags);
SIM_EXPORT int cuMemAddressFree(uint64_t address, size_t size);
SIM_EXPORT int cuMemCreate(void **handle, size_t size, const void *properties, uint64_t flags);
SIM_EXPORT int cuMemRelease(void *handle);
SIM_EXPORT int cuMemMap(
	uint64_t address, size_t size, size_t offset, void *handle, uint64_t flags);
SIM_EXPORT int cuMemUnmap(uint64_t address, size_t size);
SIM_EXPORT int cuMemSetAccess(uint64_t address, size_t size, const void *access, size_t count);
SIM_EXPORT int cuMemGetAllocationGranularity(size_t *size, const void *properties, int option);

static struct range *find(uint64_t address, enum range_kind kind)
{
	for (struct range *r = ranges; r; r = r->next)
		if (r->kind == kind && address - r->start < r->size)
			return r;
	return NULL;
}

static struct range *add(uint64_t start, uint64_t size, enum range_kind kind)
{
	struct range *r = calloc(1, sizeof(*r));

	r->start = start;
	r->size = size;
	r->kind = kind;
	r->next = ranges;
	ranges = r;
	return r;
}

static void drop(struct range *range)
{
	struct range **p = &ranges;

	while (*p != range)
		p = &(*p)->next;
	*p = range->next;
	free(range);
}

void memory_check(uint64_t address, uint64_t size, const char *function)
{
	struct range *r;

	pthread_mutex_lock(&lock);
	r = find(address, ALLOCATED);
	while (size && (r || ((r = find(address, MAPPED)) && r->accessible))) {
		uint64_t n = r->start + r->size - address;

		if (n >= size)
			size = n = 0;
		address += n;
		size -= n;
		r = NULL;
	}
	pthread_mutex_unlock(&lock);
	if (size)
		sim_hostile("an address that is not device memory", function);
}

static int allocate(uint64_t *address, uint64_t size)
{
	uint64_t rounded = (size + 511) & ~511ul;
	void *p;

	if (used + rounded > TOTAL)
		return SIM_OUT_OF_MEMORY;
	p = mmap(NULL, rounded, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return SIM_OUT_OF_MEMORY;
	used += rounded;
	add((uint64_t)p, rounded, ALLOCATED);
	*address = (uint64_t)p;
	return 0;
}

int cuMemAlloc_v2(uint64_t *address, size_t size)
{
	int r;

	SIM_ENTER();
	r = sim_have_context();
	if (r || !size)
		return r ? r : SIM_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	r = allocate(address, size);
	pthread_mutex_unlock(&lock);
	return r;
}

int cuMemFree_v2(uint64_t address)
{
	struct range *r;
	int result = 0;

	SIM_ENTER();
	if (!address)
		return 0;
	pthread_mutex_lock(&lock);
	r = find(address, ALLOCATED);
	if (!r || r->start != address) {
		result = SIM_INVALID_VALUE;
	} else {
		munmap((void *)r->start, r->size);
		used -= r->size;
		drop(r);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	SIM_ENTER();
	*free_bytes = TOTAL - used;
	*total = TOTAL;
	return sim_have_context();
}

int cuMemGetAddressRange_v2(uint64_t *start, size_t *size, uint64_t address)
{
	struct range *r;

	SIM_ENTER();
	pthread_mutex_lock(&lock);
	r = find(address, ALLOCATED);
	if (r) {
		*start = r->start;
		*size = r->size;
	}
	pthread_mutex_unlock(&lock);
	return r ? 0 : SIM_NOT_FOUND;
}

/* ---- virtual memory ---- */

int cuMemGetAllocationGranularity(size_t *size, const void *properties, int option)
{
	SIM_ENTER();
	*size = GRANULE;
	return 0;
}

int cuMemAddressReserve(
	uint64_t *address, size_t size, size_t align, uint64_t wanted, uint64_t flags)
{
	void *p;

	SIM_ENTER();
	if (!size || size % GRANULE || flags)
		return SIM_INVALID_VALUE;
	p = mmap((void *)wanted, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		-1, 0);
	if (p == MAP_FAILED)
		return SIM_OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	add((uint64_t)p, size, RESERVED);
	pthread_mutex_unlock(&lock);
	*address = (uint64_t)p;
	return 0;
}

int cuMemAddressFree(uint64_t address, size_t size)
{
	struct range *r;
	bool ok;

	SIM_ENTER();
	pthread_mutex_lock(&lock);
	r = find(address, RESERVED);
	ok = r && r->start == address && r->size == size;
	for (struct range *m = ranges; m && ok; m = m->next)
		ok = m->kind != MAPPED || m->start + m->size <= address ||
		     m->start >= address + size;
	if (ok) {
		munmap((void *)address, size);
		drop(r);
	}
	pthread_mutex_unlock(&lock);
	return ok ? 0 : SIM_INVALID_VALUE;
}

int cuMemCreate(void **handle, size_t size, const void *properties, uint64_t flags)
{
	struct memory *m;

	SIM_ENTER();
	if (!size || size % GRANULE || flags)
		return SIM_INVALID_VALUE;
	if (used + size > TOTAL)
		return SIM_OUT_OF_MEMORY;
	m = object_new(OBJECT_MEMORY, sizeof(*m));
	m->size = size;
	m->references = 1;
	m->fd = memfd_create("sim", MFD_CLOEXEC);
	if (m->fd < 0 || ftruncate(m->fd, size)) {
		object_free(m);
		return SIM_OUT_OF_MEMORY;
	}
	used += size;
	*handle = m;
	return 0;
}

static void put(struct memory *m)
{
	if (--m->references)
		return;
	used -= m->size;
	close(m->fd);
	object_free(m);
}

int cuMemRelease(void *handle)
{
	struct memory *m;

	SIM_ENTER();
	m = object_get(OBJECT_MEMORY, handle, __func__);
	if (m)
		put(m);
	return m ? 0 : SIM_INVALID_VALUE;
}

int cuMemMap(uint64_t address, size_t size, size_t offset, void *handle, uint64_t flags)
{
	struct memory *m;
	struct range *r;
	int result = 0;

	SIM_ENTER();
	m = object_get(OBJECT_MEMORY, handle, __func__);
	if (!m || offset || size != m->size || address % GRANULE)
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	r = find(address, RESERVED);
	if (!r || address + size > r->start + r->size) {
		result = SIM_INVALID_VALUE;
	} else if (find(address, MAPPED)) {
		result = SIM_ALREADY_MAPPED;
	} else {
		mmap((void *)address, size, PROT_NONE, MAP_SHARED | MAP_FIXED, m->fd, 0);
		add(address, size, MAPPED)->memory = m;
		m->references++;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

int cuMemUnmap(uint64_t address, size_t size)
{
	struct range *r;
	int result = 0;

	SIM_ENTER();
	pthread_mutex_lock(&lock);
	while (size && !result) {
		r = find(address, MAPPED);
		if (!r || r->start != address || r->size > size) {
			result = SIM_INVALID_VALUE;
			break;
		}
		mmap((void *)address, r->size, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		address += r->size;
		size -= r->size;
		put(r->memory);
		drop(r);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

int cuMemSetAccess(uint64_t address, size_t size, const void *access, size_t count)
{
	uint64_t end = address + size;
	int result = 0;

	SIM_ENTER();
	pthread_mutex_lock(&lock);
	while (address < end && !result) {
		struct range *r = find(address, MAPPED);

		if (!r || r->start != address || r->start + r->size > end) {
			result = SIM_INVALID_VALUE;
		} else {
			mprotect((void *)address, r->size, PROT_READ | PROT_WRITE);
			r->accessible = true;
			address += r->size;
		}
	}
	pthread_mutex_unlock(&lock);
	return result;
}
