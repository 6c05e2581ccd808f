/*
 * memory_driver.c - the driver's calls for virtual memory, as devmem/ wants them.
 */
#include "shared/cuda/memory_driver.h"

#include <sys/mman.h>

#include "shared/raw.h"

static int driver_reserve(uint64_t address, uint64_t size)
{
	uint64_t got = 0;
	int r;

	if (devmem_part(address) == DEVMEM_PINNED)
		return 0;
	r = memory_functions()->cuMemAddressReserve(&got, size, DEVMEM_GRANULE, address, 0);
	if (r || got == address)
		return r;
	memory_functions()->cuMemAddressFree(got, size); /* just made: goes */
	return DEVMEM_NO_MEMORY;
}

static int pinned_handle(uint64_t *handle)
{
	void *context = NULL;
	int r = memory_functions()->cuCtxGetCurrent(&context);

	*handle = PINNED_BY(context);
	return r;
}

static int driver_create(uint64_t *handle, uint32_t device, uint64_t size)
{
	struct memory_properties p = {
		.type = 1, .location_type = LOCATION_DEVICE, .location = device};

	if (device == DEVMEM_PINNED)
		return pinned_handle(handle);
	p.rdma = memory_state()->rdma >> device & 1;
	if (memory_state()->shareable >> device & 1)
		p.handle_types = HANDLE_TYPE_FILE;
	return memory_functions()->cuMemCreate(handle, size, &p, 0);
}

static int pin_memory(uint64_t address, uint64_t size)
{
	int r;

	if (!memory_functions()->maps_pinned)
		return memory_functions()->cuMemHostRegister_v2(
			(void *)address, size, PINNED_FLAGS);
	if (raw_failed(raw(SYS_mmap, address, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)))
		return DEVMEM_NO_MEMORY;
	/* Huge pages are pinned faster; without them it works too. */
	raw(SYS_madvise, address, size, MADV_HUGEPAGE);
	r = memory_functions()->cuMemHostRegister_v2((void *)address, size, PINNED_FLAGS);
	if (r)
		raw(SYS_munmap, address, size); /* just mapped: goes */
	return r;
}

static int driver_map(uint64_t address, uint64_t size, uint64_t handle)
{
	if (devmem_part(address) == DEVMEM_PINNED)
		return pin_memory(address, size);
	return memory_functions()->cuMemMap(address, size, 0, handle, 0);
}

static int driver_access(uint64_t address, uint64_t size, uint32_t device, uint32_t peers)
{
	struct memory_access access[DEVMEM_DEVICES + 1] = {
		{LOCATION_DEVICE, device, READ_WRITE}};
	size_t count = 1;

	if (device == DEVMEM_PINNED)
		return 0;
	for (uint32_t i = 0; i < DEVMEM_DEVICES; i++)
		if (peers >> i & 1)
			access[count++] =
				(struct memory_access){LOCATION_DEVICE, i, READ_WRITE};
	return memory_functions()->cuMemSetAccess(address, size, access, count);
}

static int driver_revoke(uint64_t address, uint64_t size, uint32_t peer)
{
	struct memory_access access = {LOCATION_DEVICE, peer, 0};

	return memory_functions()->cuMemSetAccess(address, size, &access, 1);
}

static int driver_unmap(uint64_t address, uint64_t size)
{
	int r;

	if (devmem_part(address) != DEVMEM_PINNED)
		return memory_functions()->cuMemUnmap(address, size);
	r = memory_functions()->cuMemHostUnregister((void *)address);
	raw(SYS_munmap, address, size); /* mapped by pin_memory(): goes */
	return r;
}

static int driver_release(uint64_t handle)
{
	return handle & 1 ? 0 : memory_functions()->cuMemRelease(handle);
}

static void *driver_memory(uint64_t size)
{
	return memory_functions()->allocate(size);
}

const struct devmem_driver memory_driver = {
	.reserve = driver_reserve,
	.create = driver_create,
	.map = driver_map,
	.access = driver_access,
	.revoke = driver_revoke,
	.unmap = driver_unmap,
	.release = driver_release,
	.memory = driver_memory,
};
