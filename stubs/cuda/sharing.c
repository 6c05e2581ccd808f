/*
 * Handles of what processes share: made here, and asked about where they came from. The driver's own
 * would be those of a process that a restart has made anew.
 */
#include "stubs/cuda/sharing.h"

#include <sys/mman.h>

#include "shared/raw.h"

/* Also where the driver lets nobody share. */
#define NAME "trecr-share"

static int take_name(struct memory_state *s)
{
	if (s->shares)
		return 0;
	if (raw(SYS_getrandom, s->name, sizeof(s->name), 0) != sizeof(s->name))
		return CUDA_ERROR_UNKNOWN;
	if (crossing_share(s->name) < 0) {
		crossing_complain("cuIpcGetMemHandle", "cannot answer other processes: no "
						       "socket, or no thread for it");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	s->shares = 1;
	return 0;
}

int share_make(struct share_handle *handle, enum share_kind kind, uint64_t object, uint64_t id)
{
	struct memory_state *s = memory_lock(1);
	int r = s ? take_name(s) : CUDA_ERROR_UNKNOWN;

	if (!r) {
		*handle = (struct share_handle){
			.magic = SHARE_MAGIC, .kind = kind, .object = object, .id = id};
		raw_copy(handle->owner, s->name, sizeof(handle->owner));
	}
	if (s)
		memory_unlock(s);
	return r;
}

int share_is_own(const struct share_handle *handle)
{
	const struct memory_state *s = memory_state();

	if (!s || !s->shares)
		return 0;
	for (unsigned i = 0; i < SHARE_NAME; i++)
		if (s->name[i] != handle->owner[i])
			return 0;
	return 1;
}

int share_is(const struct share_handle *handle, enum share_kind kind)
{
	return handle->magic == SHARE_MAGIC && handle->kind == kind;
}

/* ---- as files ---- */

int share_to_file(const struct share_handle *handle, int *fd)
{
	long file = raw(SYS_memfd_create, NAME, MFD_CLOEXEC);

	if (raw_failed(file))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (raw(SYS_pwrite64, file, handle, sizeof(*handle), 0) != sizeof(*handle)) {
		raw(SYS_close, file); /* just made: goes */
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*fd = file;
	return 0;
}

int share_from_file(void *fd, enum share_kind kind, struct share_handle *handle)
{
	if (raw(SYS_pread64, (int)(intptr_t)fd, handle, sizeof(*handle), 0) !=
			sizeof(*handle) ||
		!share_is(handle, kind))
		return CUDA_ERROR_INVALID_VALUE;
	return 0;
}

/* ---- questions to the owner ---- */

static int fetch_from_owner(const char *name, const struct share_request *request,
	struct share_reply *reply, int *fd)
{
	*fd = -1;
	if (crossing_fetch(request, reply, fd)) {
		crossing_complain(name, "the process that shares it does not answer: it has "
					"ended, or is in other namespaces");
		return CUDA_ERROR_INVALID_VALUE;
	}
	return reply->result == CUDA_ERROR_NOT_FOUND ? CUDA_ERROR_INVALID_VALUE : reply->result;
}

int share_ask(const char *name, const struct share_handle *handle, struct share_reply *reply)
{
	struct share_request request = {.handle = *handle, .look = handle->kind != SHARE_EVENT};
	int fd, r = fetch_from_owner(name, &request, reply, &fd);

	if (fd >= 0)
		raw(SYS_close, fd);
	return r;
}

int share_import(const char *name, const struct share_handle *handle, uint32_t index,
	struct share_reply *reply, uint64_t *real)
{
	struct share_request request = {.handle = *handle, .index = index};
	int fd, r = fetch_from_owner(name, &request, reply, &fd);

	if (!r)
		r = real_cuMemImportFromShareableHandle(
			real, (void *)(intptr_t)fd, HANDLE_TYPE_FILE);
	if (fd >= 0)
		raw(SYS_close, fd); /* it was for us */
	return r;
}

uint32_t share_device(const struct share_reply *reply)
{
	uint32_t i = 0;

	while (i < CUDA_STATE->device_count && i < DEVMEM_DEVICES &&
		__builtin_memcmp(
			CUDA_STATE->devices[i].uuid, reply->device, sizeof(reply->device)))
		i++;
	return i < CUDA_STATE->device_count ? i : DEVMEM_DEVICES;
}
