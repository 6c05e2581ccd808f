/*
 * extents.c - a sorted array of extents for each device.
 */
#include "devmem/extents.h"

#include "devmem/runs.h"

static int map_one(struct devmem_device *d, const struct devmem_driver *driver, uint32_t start,
	uint32_t count)
{
	uint64_t handle;
	int r = driver->create(&handle, d->number, count * DEVMEM_GRANULE);

	if (r)
		return r;
	r = driver->map(devmem_address(d, start), count * DEVMEM_GRANULE, handle);
	if (r) {
		driver->release(handle);
		return r;
	}
	d->granules[start].handle = handle;
	d->granules[start].length = count;
	for (uint32_t i = start; i < start + count; i++)
		d->granules[i].extent = start;
	return 0;
}

/* An error here would mean that the driver has lost track of its own memory; there is nobody to
 * tell, and the addresses are not used again before a mapping there succeeds. */
static void unmap_one(
	struct devmem_device *d, const struct devmem_driver *driver, uint32_t start)
{
	driver->unmap(devmem_address(d, start), d->granules[start].length * DEVMEM_GRANULE);
	driver->release(d->granules[start].handle);
}

int extents_map(struct devmem_device *d, const struct devmem_driver *driver, uint32_t start,
	uint32_t count, uint32_t piece)
{
	uint32_t done = 0;
	int r = 0;

	while (done < count) {
		uint32_t n = count - done < piece ? count - done : piece;

		r = map_one(d, driver, start + done, n);
		if (r)
			break;
		done += n;
	}
	if (!r)
		r = driver->access(
			devmem_address(d, start), count * DEVMEM_GRANULE, d->number, d->peers);
	if (!r)
		return 0;
	for (uint32_t i = start; i < start + done; i += d->granules[i].length)
		unmap_one(d, driver, i);
	return r;
}

void extents_release(struct devmem_device *d, const struct devmem_driver *driver, uint32_t run)
{
	uint32_t end = run + d->granules[run].run, at = run, next;
	const struct devmem_granule *g = d->granules;

	/* The run may begin in the middle of an extent whose first granules are in use. */
	if (g[at].extent != at)
		at = g[at].extent + g[g[at].extent].length;
	for (; at < end && at + g[at].length <= end; at = next) {
		next = at + g[at].length;
		if (driver)
			unmap_one(d, driver, at);
		runs_take(d, run, at, next - at);
		d->free -= next - at;
		runs_give(d, DEVMEM_UNMAPPED, at, next - at);
		run = next;
	}
}

int extents_spare(const struct devmem_device *d, uint32_t run, uint32_t count)
{
	uint32_t end = run + d->granules[run].run, first = d->granules[run + count - 1].extent;
	uint32_t length = d->granules[first].length, rest = first + length - (run + count);

	/* An extent of which a part is in use is no loss. */
	return first < run || first + length > end || rest <= length / 8;
}
