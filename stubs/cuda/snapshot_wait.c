/*
 * snapshot_wait.c - the program beside a checkpoint that reads a copy of its device memory
 * (lower/cuda/device_copy.h): what would fail by the memory that the copy takes, or would take away what
 * it is read by, waits until it has been read. That also ends with the supervisor.
 */
#include "shared/raw.h"
#include "shared/table.h"
#include "shared/address_windows.h"
#include "stubs/cuda/memory.h"
#include "stubs/cuda/objects.h"

static struct lower_table *lower_table(void)
{
	return state_usable() ? (struct lower_table *)LOWER_SHARED : NULL;
}

STUB_HIDDEN int snapshot_wait(void)
{
	struct lower_table *table = lower_table();

	if (!table || !__atomic_load_n(&table->snapshot, __ATOMIC_ACQUIRE))
		return 0;
	raw_wait(&table->snapshot, 1);
	return 1;
}

STUB_HIDDEN uint64_t snapshot_size(int device)
{
	const struct lower_table *table = lower_table();

	return table && (unsigned)device < LOWER_DEVICES ? table->snapshot_size[device] : 0;
}

STUB_HIDDEN int snapshot_create(uint64_t *handle, size_t size,
	const struct memory_properties *properties, uint64_t flags)
{
	int r;

	do
		r = real_cuMemCreate(handle, size, properties, flags);
	while (r == DEVMEM_NO_MEMORY && snapshot_wait());
	return r;
}
