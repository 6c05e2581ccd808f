/*
 * device_copy.c - memory for a snapshot, and copies into and out of it.
 *
 * What the driver allocates on the host for it comes from the libc's own malloc: the program's
 * objects are found again at their addresses after a restart.
 */
#include "lower/cuda/device_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "lower/cuda/cuda.h"
#include "lower/heap.h"
#include "shared/cuda/memory_driver.h"
#include "shared/raw.h"

#define PARTS        64
#define BORROW_MS    60000 /* for the supervisor to have borrowed what it is to */
#define NON_BLOCKING 1     /* CU_STREAM_NON_BLOCKING */
#define RELAXED      2     /* CU_STREAM_CAPTURE_MODE_RELAXED */

/* Memory of one device. */
struct part {
	uint64_t address, size, handle;
	void *context, *stream;
	unsigned device;
	int reserved, mapped;
};

static struct part parts[PARTS];
static unsigned part_count;
static int own_end = -1; /* of the pipe whose other end is table->snapshot_fd */

/* ---- the pipe that tells whether the supervisor lives ---- */

static int make_pipe(void)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return agent_fail(
			"no descriptors for a snapshot of device memory: %s", strerror(errno));
	table->snapshot_fd = ends[0];
	own_end = ends[1];
	return 0;
}

/* From now on the supervisor's is the only one. */
static void leave_pipe(void)
{
	if (table->snapshot_fd)
		close(table->snapshot_fd);
	table->snapshot_fd = 0;
}

int snapshot_await_order(int order_fd)
{
	struct pollfd fds[2] = {
		{.fd = order_fd, .events = POLLIN},
		{.fd = own_end},
	};

	int n = 0;

	if (own_end < 0)
		return 0;
	/* While we have the other end, too, we would not hear of it. */
	do
		n = poll(fds, 2, table->snapshot_fd ? BORROW_MS : -1);
	while (n < 0 && errno == EINTR);
	if (!fds[0].revents && (!n || fds[1].revents))
		snapshot_release();
	return 0;
}

/* ---- memory ---- */

/* It leaves as much as it takes: what the program needs meanwhile is there, as a rule. */
static int check_room(const struct part *p)
{
	size_t free_bytes = 0, total;
	int r = CUDA(cuMemGetInfo_v2, (size_t *, size_t *))(&free_bytes, &total);

	if (r)
		return cuda_failed("cuMemGetInfo", r);
	if (p->size <= free_bytes / 2)
		return 0;
	return agent_fail(
		"a copy of %lu MiB needs twice as much free memory of GPU %u, of which "
		"%lu MiB are free",
		p->size >> 20, p->device, free_bytes >> 20);
}

static int map_part(struct part *p)
{
	const struct memory_properties properties = {
		.type = 1, .location_type = LOCATION_DEVICE, .location = p->device};
	const struct memory_access access = {LOCATION_DEVICE, p->device, READ_WRITE};
	const struct memory_functions *driver = memory_functions();
	uint64_t got = 0;
	int r;

	r = driver->cuMemAddressReserve(&got, p->size, 0, p->address, 0);
	if (r)
		return cuda_failed("cuMemAddressReserve", r);
	if (got != p->address) {
		driver->cuMemAddressFree(got, p->size); /* just made: goes */
		return agent_fail("the driver has no addresses for a copy of device memory");
	}
	p->reserved = 1;
	r = driver->cuMemCreate(&p->handle, p->size, &properties, 0);
	if (r)
		return cuda_failed("cuMemCreate", r);
	r = driver->cuMemMap(p->address, p->size, 0, p->handle, 0);
	p->mapped = !r;
	if (!r)
		r = driver->cuMemSetAccess(p->address, p->size, &access, 1);
	return r ? cuda_failed("cuMemMap", r) : 0;
}

/* In its context. A stream that waits for no work of the program's, nor that for it. */
static int make_part(struct part *p)
{
	int r;

	if (check_room(p) || map_part(p))
		return -1;
	r = CUDA(cuStreamCreate, (void **, unsigned))(&p->stream, NON_BLOCKING);
	if (r)
		return cuda_failed("cuStreamCreate", r);
	table->snapshot_size[p->device] += p->size;
	return 0;
}

static int add_part(const struct lower_transfer *t)
{
	struct part *p = &parts[part_count];
	void *popped;
	int r;

	if (part_count == PARTS || t->device >= LOWER_DEVICES ||
		!in_snapshot_window(t->address))
		return agent_fail("an invalid order for a snapshot");
	*p = (struct part){.address = t->address, .size = t->size, .device = t->device};
	if (cuda_push_context(t->device))
		return -1;
	CUDA(cuCtxGetCurrent, (void **))(&p->context); /* what was pushed is there */
	part_count++;
	r = make_part(p);
	CUDA(cuCtxPopCurrent_v2, (void **))(&popped);
	return r;
}

int snapshot_reserve(const struct lower_transfer *transfers, unsigned count)
{
	int mode = RELAXED, r;

	snapshot_release();
	/* Another thread may begin to capture a stream when the program runs. */
	(void)CUDA(cuThreadExchangeStreamCaptureMode, (int *))(&mode);
	r = make_pipe();
	heap_aside++;
	for (unsigned i = 0; i < count && !r; i++)
		r = add_part(&transfers[i]);
	heap_aside--;
	if (r)
		snapshot_release();
	else
		__atomic_store_n(&table->snapshot, 1, __ATOMIC_RELEASE);
	return r;
}

/* What of it cannot be undone is left: there is nobody to tell. */
static void free_part(const struct part *p)
{
	const struct memory_functions *driver = memory_functions();
	void *popped;

	if (CUDA(cuCtxPushCurrent_v2, (void *))(p->context))
		return;
	if (p->stream)
		CUDA(cuStreamDestroy_v2, (void *))(p->stream);
	if (p->mapped)
		driver->cuMemUnmap(p->address, p->size);
	if (p->handle)
		driver->cuMemRelease(p->handle);
	if (p->reserved)
		driver->cuMemAddressFree(p->address, p->size);
	CUDA(cuCtxPopCurrent_v2, (void **))(&popped);
}

void snapshot_release(void)
{
	heap_aside++;
	while (part_count)
		free_part(&parts[--part_count]);
	heap_aside--;
	leave_pipe();
	if (own_end >= 0)
		close(own_end);
	own_end = -1;
	memset(table->snapshot_size, 0, sizeof(table->snapshot_size));
	raw_set_and_wake(&table->snapshot, 0);
}

/* ---- copies ---- */

static const struct part *find_part(uint64_t address, uint64_t size)
{
	for (unsigned i = 0; i < part_count; i++)
		if (address - parts[i].address < parts[i].size &&
			size <= parts[i].size - (address - parts[i].address))
			return &parts[i];
	return NULL;
}

int snapshot_has(uint64_t address, uint64_t size)
{
	return find_part(address, size) != NULL;
}

static int copy_one(const struct part *p, const struct lower_transfer *t, char *staging)
{
	void *popped;
	int r = CUDA(cuCtxPushCurrent_v2, (void *))(p->context);

	if (r)
		return r;
	if (staging)
		r = CUDA(cuMemcpyDtoHAsync_v2, (void *, uint64_t, size_t, void *))(
			staging + t->offset, t->address, t->size, p->stream);
	else
		r = CUDA(cuMemcpyDtoDAsync_v2, (uint64_t, uint64_t, size_t, void *))(
			t->offset, t->address, t->size, p->stream);
	CUDA(cuCtxPopCurrent_v2, (void **))(&popped);
	return r;
}

static int await_copies(void)
{
	void *popped;
	int r = 0;

	for (unsigned i = 0; i < part_count; i++) {
		int failed = CUDA(cuCtxPushCurrent_v2, (void *))(parts[i].context);

		if (!failed) {
			failed = CUDA(cuStreamSynchronize, (void *))(parts[i].stream);
			CUDA(cuCtxPopCurrent_v2, (void **))(&popped);
		}
		r = r ? r : failed;
	}
	return r;
}

/* Into the snapshot; or into @staging, if that is not NULL. All of it is done on return. */
static int copy_all(const struct lower_transfer *transfers, unsigned count, char *staging)
{
	int r = 0, failed;

	heap_aside++;
	for (unsigned i = 0; i < count && !r; i++) {
		const struct lower_transfer *t = &transfers[i];
		const struct part *p = find_part(staging ? t->address : t->offset, t->size);

		r = p ? copy_one(p, t, staging) : CUDA_MISSING;
	}
	failed = await_copies();
	heap_aside--;
	r = r ? r : failed;
	return r ? cuda_failed("copying a snapshot of device memory", r) : 0;
}

int snapshot_copy(const struct lower_transfer *transfers, unsigned count)
{
	leave_pipe();
	return copy_all(transfers, count, NULL);
}

/* In a context that stays as long as the snapshot. */
static void prepare_staging(int (*register_staging)(void))
{
	void *popped;

	if (!part_count || CUDA(cuCtxPushCurrent_v2, (void *))(parts[0].context))
		return;
	heap_aside++;
	(void)register_staging(); /* copies work without, but slowly */
	heap_aside--;
	CUDA(cuCtxPopCurrent_v2, (void **))(&popped);
}

int snapshot_read(const struct lower_transfer *transfers, unsigned count, char *staging,
	int (*register_staging)(void))
{
	prepare_staging(register_staging);
	return copy_all(transfers, count, staging);
}
