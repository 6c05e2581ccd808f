/*
 * The virtual memory calls. Reservations are taken from what the driver has left over of its
 * own; else they honour the address asked for when it is free. Physical memory is a file of its
 * own that is mapped where it is wanted, so that it can be mapped twice and outlives an
 * unmapping, as the real one. As there, memory is mapped whole, and unmapped as it was mapped.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "t/sim/device.h"
#include "t/sim/heap.h"
#include "t/sim/memory.h"
#include "t/sim/object.h"
#include "t/sim/sim.h"

struct properties {
	int type, handle_types, location_type, location;
	uint64_t rest[2];
};

struct memory {
	struct object object;
	uint64_t size;
	struct properties properties;
	int fd;
	int handles, mappings;
	bool imported; /* from another process, whose memory it is */
};

/* CUmemAccessDesc */
struct access {
	int location_type, location;
	int flags;
};

SIM_EXPORT int cuMemAddressReserve(
	uint64_t *address, size_t size, size_t align, uint64_t wanted, uint64_t flags);
SIM_EXPORT int cuMemAddressFree(uint64_t address, size_t size);
SIM_EXPORT int cuMemCreate(
	void **handle, size_t size, const struct properties *properties, uint64_t flags);
SIM_EXPORT int cuMemRelease(void *handle);
SIM_EXPORT int cuMemMap(
	uint64_t address, size_t size, size_t offset, void *handle, uint64_t flags);
SIM_EXPORT int cuMemUnmap(uint64_t address, size_t size);
SIM_EXPORT int cuMemSetAccess(
	uint64_t address, size_t size, const struct access *access, size_t count);
SIM_EXPORT int cuMemGetAllocationGranularity(size_t *size, const void *properties, int option);
SIM_EXPORT int cuMemRetainAllocationHandle(void **handle, uint64_t address);
SIM_EXPORT int cuMemGetAllocationPropertiesFromHandle(
	struct properties *properties, void *handle);
SIM_EXPORT int cuMemExportToShareableHandle(int *out, void *handle, int type, uint64_t flags);
SIM_EXPORT int cuMemImportFromShareableHandle(void **handle, void *fd, int type);

int cuMemGetAllocationGranularity(size_t *size, const void *properties, int option)
{
	SIM_ENTER();
	*size = GRANULE;
	return 0;
}

static uint64_t round_up(uint64_t size)
{
	return (size + HEAP_RANGE - 1) & ~(HEAP_RANGE - 1);
}

int cuMemAddressReserve(
	uint64_t *address, size_t size, size_t align, uint64_t wanted, uint64_t flags)
{
	uint64_t taken = round_up(size);
	void *p;

	SIM_ENTER();
	if (!size || size % GRANULE || flags || sim_ready())
		return sim_ready() ? SIM_NOT_INITIALIZED : SIM_INVALID_VALUE;
	p = taken == size ? (void *)heap_reserve(size) : NULL;
	if (!p)
		p = mmap((void *)round_up(wanted), taken, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return SIM_OUT_OF_MEMORY;
	heap_lend((uint64_t)p + size, (uint64_t)p + taken);
	ranges_lock();
	range_add((uint64_t)p, size, RESERVED);
	ranges_unlock();
	*address = (uint64_t)p;
	return 0;
}

static bool is_mapped(uint64_t address, uint64_t size)
{
	for (uint64_t at = address; at < address + size; at += GRANULE)
		if (range_find(at, MAPPED))
			return true;
	return false;
}

int cuMemAddressFree(uint64_t address, size_t size)
{
	struct range *r;
	bool ok;

	SIM_ENTER();
	ranges_lock();
	r = range_find(address, RESERVED);
	ok = r && r->start == address && r->size == size && !is_mapped(address, size);
	if (ok) {
		if (heap_unreserve(address, size) &&
			!heap_take_back(address + size, address + round_up(size)))
			munmap((void *)address, round_up(size));
		range_drop(r);
	}
	ranges_unlock();
	return ok ? 0 : SIM_INVALID_VALUE;
}

int cuMemCreate(void **handle, size_t size, const struct properties *properties, uint64_t flags)
{
	struct memory *m;

	SIM_ENTER();
	if (!size || size % GRANULE || flags || properties->type != 1 ||
		properties->location_type != 1)
		return SIM_INVALID_VALUE;
	if (sim_check_device(properties->location))
		return SIM_INVALID_DEVICE;
	ranges_lock();
	if (!memory_take(size)) {
		ranges_unlock();
		return SIM_OUT_OF_MEMORY;
	}
	m = object_new(OBJECT_MEMORY, sizeof(*m));
	m->size = size;
	m->handles = 1;
	m->properties = *properties;
	m->fd = memfd_create("sim", MFD_CLOEXEC);
	(void)!ftruncate(m->fd, size); /* what fails shows when it is mapped */
	ranges_unlock();
	*handle = m;
	return 0;
}

static void put_memory(struct memory *m)
{
	if (m->handles || m->mappings)
		return;
	if (!m->imported)
		memory_give(m->size);
	close(m->fd);
	object_free(m);
}

int cuMemRelease(void *handle)
{
	struct memory *m;
	int result = SIM_INVALID_VALUE;

	SIM_ENTER();
	ranges_lock();
	m = object_get(OBJECT_MEMORY, handle, __func__);
	if (m && m->handles) {
		m->handles--;
		put_memory(m);
		result = 0;
	}
	ranges_unlock();
	return result;
}

static int map(uint64_t address, size_t size, struct memory *m)
{
	struct range *r = range_find(address, RESERVED);

	if (!r || address + size > r->start + r->size)
		return SIM_INVALID_VALUE;
	if (is_mapped(address, size))
		return SIM_ALREADY_MAPPED;
	if (mmap((void *)address, size, PROT_NONE, MAP_SHARED | MAP_FIXED, m->fd, 0) ==
		MAP_FAILED)
		return SIM_OUT_OF_MEMORY;
	range_add(address, size, MAPPED)->memory = m;
	m->mappings++;
	return 0;
}

int cuMemMap(uint64_t address, size_t size, size_t offset, void *handle, uint64_t flags)
{
	struct memory *m;
	int result;

	SIM_ENTER();
	m = object_get(OBJECT_MEMORY, handle, __func__);
	if (!m || !m->handles || address % GRANULE || flags)
		return SIM_INVALID_VALUE;
	if (offset || size != m->size)
		return SIM_NOT_SUPPORTED;
	ranges_lock();
	result = map(address, size, m);
	ranges_unlock();
	return result;
}

/* Whether [address, address + size) is made of whole mappings. */
static bool is_whole(uint64_t address, uint64_t size)
{
	uint64_t end = address + size;

	while (address < end) {
		struct range *r = range_find(address, MAPPED);

		if (!r || r->start != address || r->start + r->size > end)
			return false;
		address += r->size;
	}
	return size != 0;
}

int cuMemUnmap(uint64_t address, size_t size)
{
	int result = SIM_INVALID_VALUE;

	SIM_ENTER();
	ranges_lock();
	if (is_whole(address, size)) {
		mmap((void *)address, size, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		while (size) {
			struct range *r = range_find(address, MAPPED);

			address += r->size;
			size -= r->size;
			r->memory->mappings--;
			put_memory(r->memory);
			range_drop(r);
		}
		result = 0;
	}
	ranges_unlock();
	return result;
}

static uint64_t allowed(uint64_t devices, const struct access *access)
{
	uint64_t device = 1ul << access->location;

	return access->flags ? devices | device : devices & ~device;
}

int cuMemSetAccess(uint64_t address, size_t size, const struct access *access, size_t count)
{
	int result = SIM_INVALID_VALUE;

	SIM_ENTER();
	ranges_lock();
	if (is_whole(address, size)) {
		result = 0;
		for (size_t i = 0; i < count; i++)
			if (access[i].location_type != 1 ||
				sim_check_device(access[i].location))
				result = SIM_INVALID_DEVICE;
		for (uint64_t at = address; !result && at < address + size;) {
			struct range *r = range_find(at, MAPPED);

			for (size_t i = 0; i < count; i++)
				r->accessible = allowed(r->accessible, &access[i]);
			mprotect((void *)at, r->size,
				r->accessible ? PROT_READ | PROT_WRITE : PROT_NONE);
			at += r->size;
		}
	}
	ranges_unlock();
	return result;
}

int cuMemRetainAllocationHandle(void **handle, uint64_t address)
{
	struct range *r;

	SIM_ENTER();
	ranges_lock();
	r = range_find(address, MAPPED);
	if (r) {
		r->memory->handles++;
		*handle = r->memory;
	}
	ranges_unlock();
	return r ? 0 : SIM_INVALID_VALUE;
}

int cuMemGetAllocationPropertiesFromHandle(struct properties *properties, void *handle)
{
	struct memory *m;

	SIM_ENTER();
	m = object_get(OBJECT_MEMORY, handle, __func__);
	if (m)
		*properties = m->properties;
	return m ? 0 : SIM_INVALID_VALUE;
}

#define FILE_DESCRIPTOR 1

/* What was not made for it is not exported. */
int cuMemExportToShareableHandle(int *out, void *handle, int type, uint64_t flags)
{
	struct memory *m;

	SIM_ENTER();
	m = object_get(OBJECT_MEMORY, handle, __func__);
	if (!m || type != FILE_DESCRIPTOR || !(m->properties.handle_types & FILE_DESCRIPTOR))
		return SIM_INVALID_VALUE;
	*out = fcntl(m->fd, F_DUPFD_CLOEXEC, 0);
	return 0;
}

int cuMemImportFromShareableHandle(void **handle, void *fd, int type)
{
	struct memory *m;
	struct stat st;

	SIM_ENTER();
	if (sim_ready())
		return SIM_NOT_INITIALIZED;
	if (type != FILE_DESCRIPTOR || fstat((intptr_t)fd, &st) || st.st_size % GRANULE)
		return SIM_INVALID_VALUE;
	ranges_lock();
	m = object_new(OBJECT_MEMORY, sizeof(*m));
	m->size = st.st_size;
	m->imported = true;
	m->handles = 1;
	m->properties =
		(struct properties){.type = 1, .handle_types = type, .location_type = 1};
	m->fd = fcntl((intptr_t)fd, F_DUPFD_CLOEXEC, 0);
	ranges_unlock();
	*handle = m;
	return 0;
}
