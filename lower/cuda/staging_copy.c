/*
 * Device memory, or hashes of it, to and from the staging buffer: shared memory that the supervisor
 * maps, too, and that is registered with the driver, so that copies go at the speed of the bus.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lower/cuda/arrays.h"
#include "lower/cuda/cuda.h"
#include "lower/cuda/hash_module.h"
#include "lower/cuda/device_copy.h"

#define STAGING_SIZE (64ul << 20)

#define BLOCK     4096ul
#define HASH_SIZE 16ul

static char *staging;

static int no_staging(int fd)
{
	int error = errno;

	if (fd >= 0)
		close(fd);
	return agent_fail("no memory for copies of device memory: %s", strerror(error));
}

static int make_staging(void)
{
	int fd = -1;

	if (staging)
		return 0;
	/* The supervisor maps it, too: it is there, and stays as large as it is. */
	fd = memfd_create("trecr-staging", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || fallocate(fd, 0, 0, STAGING_SIZE) ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return no_staging(fd);
	staging = mmap(NULL, STAGING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (staging == MAP_FAILED) {
		staging = NULL;
		return no_staging(fd);
	}
	table->staging_fd = fd;
	table->staging_size = STAGING_SIZE;
	return 0;
}

#define ALREADY_REGISTERED 712

/* With the driver, for all contexts; needs a current context. The registration ends with that
 * context. 0, or the driver's result: copies work without, but slowly. */
static int register_staging(void)
{
	int r = CUDA(cuMemHostRegister_v2, (void *, size_t, unsigned))(
		staging, STAGING_SIZE, 1 /* CU_MEMHOSTREGISTER_PORTABLE */);

	return r == ALREADY_REGISTERED ? 0 : r;
}

/* The context on @device that is there before all others of it; NULL: none. */
static void *cuda_first_context(const struct cuda_state *s, unsigned device)
{
	const struct object *o = s ? s->objects : NULL;

	while (o && (o->kind != CUDA_CONTEXT || cuda_device_of(o) != (int)device))
		o = o->next;
	return o ? o->real : NULL;
}

int cuda_push_context(unsigned device)
{
	void *context = cuda_first_context(cuda_records(), device);
	int r;

	if (!context)
		return agent_fail(
			"device memory of GPU %u, on which there is no context", device);
	r = CUDA(cuCtxPushCurrent_v2, (void *))(context);
	return r ? cuda_failed("cuCtxPushCurrent", r) : 0;
}

/* Managed memory, which processors of either kind reach; at its edges a copy by the driver
 * would not be allowed, as pieces are whole pages. */
static int is_managed(const struct lower_transfer *t)
{
	return in_lower_window(t->address);
}

static int copy_out(const struct lower_transfer *t)
{
	int r;

	if (in_arrays_window(t->address))
		return arrays_copy_out(t->address, t->size, staging + t->offset);
	if (is_managed(t)) {
		memcpy(staging + t->offset, (const void *)t->address, t->size);
		return 0;
	}
	/* The stream's work is waited for when all of it has been asked for. */
	r = CUDA(cuMemcpyDtoHAsync_v2, (void *, uint64_t, size_t, void *))(
		staging + t->offset, t->address, t->size, NULL);

	return r ? cuda_failed("cuMemcpyDtoH", r) : 0;
}

static int copy_in(const struct lower_transfer *t)
{
	int r;

	if (in_arrays_window(t->address))
		return arrays_copy_in(t->address, t->size,
			t->offset == LOWER_ZERO ? NULL : staging + t->offset);
	if (is_managed(t) && t->offset == LOWER_ZERO) {
		memset((void *)t->address, 0, t->size);
		return 0;
	}
	if (is_managed(t)) {
		memcpy((void *)t->address, staging + t->offset, t->size);
		return 0;
	}
	if (t->offset == LOWER_ZERO)
		r = CUDA(cuMemsetD8_v2, (uint64_t, unsigned char, size_t))(
			t->address, 0, t->size);
	else
		r = CUDA(cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, void *))(
			t->address, staging + t->offset, t->size, NULL);
	return r ? cuda_failed("copying into device memory", r) : 0;
}

static int is_inside(const struct lower_transfer *t)
{
	return t->offset == LOWER_ZERO ||
	       (t->offset <= STAGING_SIZE && t->size <= STAGING_SIZE - t->offset);
}

/* Transfers of one device in a row share the context; and the work is done on return. */
static int copy_transfers(const struct lower_transfer *transfers, unsigned count,
	int (*copy)(const struct lower_transfer *))
{
	void *popped;
	int r = 0;

	if (make_staging())
		return -1;
	for (unsigned i = 0; i < count && !r; i++) {
		const struct lower_transfer *t = &transfers[i];

		if (!is_inside(t))
			return agent_fail("a transfer outside of the staging buffer");
		if (cuda_push_context(t->device))
			return -1;
		(void)register_staging();
		do
			r = copy(&transfers[i]);
		while (!r && i + 1 < count && transfers[i + 1].device == t->device &&
			is_inside(&transfers[i + 1]) && ++i);
		if (!r && CUDA(cuCtxSynchronize, (void))())
			r = agent_fail("the GPU fails while its memory is copied");
		CUDA(cuCtxPopCurrent_v2, (void **))(&popped);
	}
	return r;
}

/* While the program runs: nothing of its records is looked at. */
static int save_snapshot(const struct lower_transfer *transfers, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!is_inside(&transfers[i]) || transfers[i].offset == LOWER_ZERO)
			return agent_fail("a transfer outside of the staging buffer");
	return snapshot_read(transfers, count, staging, register_staging);
}

int cuda_save(const struct lower_transfer *transfers, unsigned count)
{
	if (count && in_snapshot_window(transfers[0].address))
		return save_snapshot(transfers, count);
	return copy_transfers(transfers, count, copy_out);
}

int cuda_load(const struct lower_transfer *transfers, unsigned count)
{
	return copy_transfers(transfers, count, copy_in);
}

/* ---- hashes ---- */

static int cannot_hash(const char *name, int r)
{
	return agent_fail_for(LOWER_UNABLE, "%s gave error %d", name, r);
}

/* Hashes go to the staging buffer, or stay on the device with a snapshot. */
static int hash_is_inside(const struct lower_transfer *t)
{
	uint64_t size = t->size / BLOCK * HASH_SIZE;

	if (t->address % BLOCK || t->size % BLOCK || t->offset % HASH_SIZE || !t->size ||
		in_arrays_window(t->address) || is_managed(t))
		return 0;
	if (in_snapshot_window(t->offset))
		return snapshot_has(t->offset, size);
	return t->offset <= STAGING_SIZE && size <= STAGING_SIZE - t->offset;
}

/* Transfers of one device, whose context is current, all to the staging buffer or none. */
static int hash_with(
	const struct hash_module *m, const struct lower_transfer *t, unsigned count)
{
	uint64_t to = 0;
	int r = 0;

	/* The driver may take a third of a second to register it. */
	if (!in_snapshot_window(t->offset)) {
		r = register_staging();
		if (!r)
			r = CUDA(cuMemHostGetDevicePointer_v2, (uint64_t *, void *, unsigned))(
				&to, staging, 0);
	}
	for (unsigned i = 0; i < count && !r; i++)
		r = hash_module_launch(m, t[i].address, t[i].size / BLOCK, to + t[i].offset);
	if (r)
		cannot_hash("cuLaunchKernel", r);
	if (CUDA(cuCtxSynchronize, (void))())
		return agent_fail("the GPU fails while its memory is hashed");
	return r ? -1 : 0;
}

static int hash_on_device(const struct lower_transfer *t, unsigned count)
{
	struct hash_module m;
	void *popped;
	int r;

	if (cuda_push_context(t->device))
		return -1;
	r = hash_module_load(&m, t->device);
	if (r) {
		cannot_hash("cuModuleLoadData", r);
	} else {
		r = hash_with(&m, t, count);
		hash_module_unload(&m);
	}
	CUDA(cuCtxPopCurrent_v2, (void **))(&popped); /* what was pushed is there */
	return r ? -1 : 0;
}

int cuda_hash(const struct lower_transfer *transfers, unsigned count)
{
	unsigned end;

	if (make_staging())
		return -1;
	for (unsigned i = 0; i < count; i++)
		if (!hash_is_inside(&transfers[i]))
			return agent_fail("a hash outside of the staging buffer");
	for (unsigned i = 0; i < count; i = end) {
		end = i + 1;
		while (end < count && transfers[end].device == transfers[i].device &&
			!in_snapshot_window(transfers[end].offset) ==
				!in_snapshot_window(transfers[i].offset))
			end++;
		if (hash_on_device(&transfers[i], end - i))
			return -1;
	}
	return 0;
}
