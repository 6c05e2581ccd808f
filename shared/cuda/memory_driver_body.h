/*
 * memory_driver_body.h - the driver as the allocator (mmu/) calls it: the text of a file of the
 * stub and of one of the agent. Before it, DRIVER(NAME, PARAMETERS) is what calls the driver's
 * function NAME, and ALL_MEMORY(SIZE) what gives memory for tables.
 */
#include <sys/mman.h>

#include "shared/raw.h"

/* Pinned memory is for all contexts and mapped (CU_MEMHOSTREGISTER_PORTABLE, _DEVICEMAP). */
#define PINNED_FLAGS 3

static int driver_reserve(uint64_t address, uint64_t size)
{
	uint64_t got = 0;
	int r;

	if (mmu_part(address) == MMU_PINNED)
		return 0;
	r = DRIVER(cuMemAddressReserve, (uint64_t *, size_t, size_t, uint64_t, uint64_t))(
		&got, size, MMU_GRANULE, address, 0);
	if (r || got == address)
		return r;
	DRIVER(cuMemAddressFree, (uint64_t, size_t))(got, size); /* just made: goes */
	return MMU_NO_MEMORY;
}

/* Registered memory goes with its context. In place of a handle stands which one that is. */
#define PINNED_BY(context) ((uint64_t)(context) | 1)

static int pinned_handle(uint64_t *handle)
{
	void *context = NULL;
	int r = DRIVER(cuCtxGetCurrent, (void **))(&context);

	*handle = PINNED_BY(context);
	return r;
}

static int driver_create(uint64_t *handle, uint32_t device, uint64_t size)
{
	struct memory_properties p = {
		.type = 1, .location_type = LOCATION_DEVICE, .location = device};

	if (device == MMU_PINNED)
		return pinned_handle(handle);
	p.rdma = memory_state()->rdma >> device & 1;
	return DRIVER(cuMemCreate, (uint64_t *, size_t, const struct memory_properties *,
					   uint64_t))(handle, size, &p, 0);
}

static int pin(uint64_t address, uint64_t size)
{
	int r;

	if (!MAKES_PINNED)
		return DRIVER(cuMemHostRegister_v2, (void *, size_t, unsigned))(
			(void *)address, size, PINNED_FLAGS);
	if (raw_failed(raw(SYS_mmap, address, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)))
		return MMU_NO_MEMORY;
	/* Huge pages are pinned faster; without them it works too. */
	raw(SYS_madvise, address, size, MADV_HUGEPAGE);
	r = DRIVER(cuMemHostRegister_v2, (void *, size_t, unsigned))(
		(void *)address, size, PINNED_FLAGS);
	if (r)
		raw(SYS_munmap, address, size); /* just mapped: goes */
	return r;
}

static int driver_map(uint64_t address, uint64_t size, uint64_t handle)
{
	if (mmu_part(address) == MMU_PINNED)
		return pin(address, size);
	return DRIVER(cuMemMap, (uint64_t, size_t, size_t, uint64_t, uint64_t))(
		address, size, 0, handle, 0);
}

static int driver_access(uint64_t address, uint64_t size, uint32_t device, uint32_t peers)
{
	struct memory_access access[MMU_DEVICES + 1] = {{LOCATION_DEVICE, device, READ_WRITE}};
	size_t count = 1;

	if (device == MMU_PINNED)
		return 0;
	for (uint32_t i = 0; i < MMU_DEVICES; i++)
		if (peers >> i & 1)
			access[count++] =
				(struct memory_access){LOCATION_DEVICE, i, READ_WRITE};
	return DRIVER(cuMemSetAccess, (uint64_t, size_t, const struct memory_access *, size_t))(
		address, size, access, count);
}

static int driver_revoke(uint64_t address, uint64_t size, uint32_t peer)
{
	struct memory_access access = {LOCATION_DEVICE, peer, 0};

	return DRIVER(cuMemSetAccess, (uint64_t, size_t, const struct memory_access *, size_t))(
		address, size, &access, 1);
}

static int driver_unmap(uint64_t address, uint64_t size)
{
	int r;

	if (mmu_part(address) != MMU_PINNED)
		return DRIVER(cuMemUnmap, (uint64_t, size_t))(address, size);
	r = DRIVER(cuMemHostUnregister, (void *))((void *)address);
	raw(SYS_munmap, address, size); /* mapped by pin(): goes */
	return r;
}

static int driver_release(uint64_t handle)
{
	return handle & 1 ? 0 : DRIVER(cuMemRelease, (uint64_t))(handle);
}

static void *driver_memory(uint64_t size)
{
	return ALL_MEMORY(size);
}

#define MEMORY_DRIVER                                                                          \
	{                                                                                      \
		.reserve = driver_reserve, .create = driver_create, .map = driver_map,         \
		.access = driver_access, .revoke = driver_revoke, .unmap = driver_unmap,       \
		.release = driver_release, .memory = driver_memory                             \
	}
