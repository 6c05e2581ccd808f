/*
 * cuIpc...: memory and events that processes share by handles, which they pass to each other as
 * they like. The driver has such for memory of cuMemAlloc as it is natively, not for what is mapped
 * at addresses of ours; so memory goes by file descriptors (shared/share.h).
 */
#include "stubs/cuda/sharing.h"

#include "shared/raw.h"
#include "stubs/cuda/objects.h"
#include "stubs/cuda/pool.h"

#define LAZY_PEER_ACCESS 1 /* CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS */

/* ---- memory ---- */

/* Which live allocation @address lies in; 0: none that can be shared so. */
static uint64_t find_allocation(uint64_t *address)
{
	struct memory_state *s = memory_lock(0);
	const struct devmem_allocation *a;
	uint64_t id = 0;

	if (!s)
		return 0;
	a = devmem_part(*address) < DEVMEM_DEVICES ? devmem_find(&s->devmem, *address) : NULL;
	if (a && !a->pool && s->shareable >> a->device & 1) {
		*address = a->address;
		id = a->id;
	}
	memory_unlock(s);
	return id;
}

int body_cuIpcGetMemHandle(struct share_handle *handle, uint64_t address)
{
	void *context = NULL;
	uint64_t id;
	int r = real_cuCtxGetCurrent(&context);

	if (r || !context)
		return r ? r : CUDA_ERROR_INVALID_CONTEXT;
	id = handle ? find_allocation(&address) : 0;
	return id ? share_make(handle, SHARE_MEMORY, address, id) : CUDA_ERROR_INVALID_VALUE;
}

int body_cuIpcOpenMemHandle_v2(uint64_t *address, struct share_handle handle, unsigned flags)
{
	if (!address || flags & ~LAZY_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	if (!share_is(&handle, SHARE_MEMORY)) {
		crossing_complain("cuIpcOpenMemHandle",
			"the handle does not belong to a process of the same trecr-run");
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (share_is_own(&handle))
		return CUDA_ERROR_INVALID_CONTEXT; /* as natively */
	return import_open("cuIpcOpenMemHandle", &handle, NULL, address);
}

int body_cuIpcOpenMemHandle(uint64_t *address, struct share_handle handle, unsigned flags)
{
	return body_cuIpcOpenMemHandle_v2(address, handle, flags);
}

int body_cuIpcCloseMemHandle(uint64_t address)
{
	int r = import_close(address, 0);

	return r == CUDA_ERROR_NOT_FOUND ? CUDA_ERROR_INVALID_VALUE : r;
}

/* ---- events ---- */

/* That the event is one to be shared only the driver can tell. */
int body_cuIpcGetEventHandle(struct share_handle *handle, void *event)
{
	const struct object *o = event;
	struct share_handle real;
	int r = real_cuIpcGetEventHandle(&real, event);

	if (r)
		return r;
	if (!in_records_window((uintptr_t)event))
		return CUDA_ERROR_INVALID_HANDLE;
	/* Another process's that is shared on is still that one's. */
	if (o->made && o->made->index == CUDA_NO_FUNCTION) {
		raw_copy(handle, o->made->arguments, sizeof(*handle));
		return 0;
	}
	return share_make(handle, SHARE_EVENT, (uint64_t)event, o->sequence);
}

/* How it came to be is the handle. */
static struct object *new_event(const struct share_handle *handle)
{
	uint64_t size = sizeof(struct cuda_call) + sizeof(*handle);
	struct object *o = object_new(CUDA_EVENT, 0);

	if (o)
		o->made = block_new(size);
	if (!o || !o->made) {
		object_drop(o);
		return NULL;
	}
	o->made->size = size;
	o->made->index = CUDA_NO_FUNCTION;
	raw_copy(o->made->arguments, handle, sizeof(*handle));
	o->made->context = o->context = current_context();
	return o;
}

static int open_event(const struct share_handle *handle, void **real)
{
	struct share_reply reply;
	struct share_handle drivers;
	int r = share_ask("cuIpcOpenEventHandle", handle, &reply);

	if (r)
		return r;
	raw_copy(&drivers, reply.event, sizeof(drivers));
	return real_cuIpcOpenEventHandle(real, drivers);
}

int body_cuIpcOpenEventHandle(void **event, struct share_handle handle)
{
	struct object *o;
	void *real = NULL;
	int r;

	if (!state_usable())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!event || !share_is(&handle, SHARE_EVENT))
		return CUDA_ERROR_INVALID_VALUE;
	if (share_is_own(&handle))
		return CUDA_ERROR_INVALID_CONTEXT; /* as natively */
	o = new_event(&handle);
	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = open_event(&handle, &real);
	if (r) {
		object_drop(o);
		return r;
	}
	object_live(o, real);
	*event = o;
	return 0;
}

/* ---- pools ---- */

static struct memory_pool *shareable_pool(void *handle)
{
	struct memory_pool *p = pool_of(handle);

	return p && p->handle_types & HANDLE_TYPE_FILE && !p->imported ? p : NULL;
}

int body_cuMemPoolExportToShareableHandle(int *fd, void *pool, int type, uint64_t flags)
{
	const struct memory_pool *p = shareable_pool(pool);
	struct share_handle handle;
	int r;

	if (!fd || !p || type != HANDLE_TYPE_FILE || flags)
		return CUDA_ERROR_INVALID_VALUE;
	r = share_make(&handle, SHARE_POOL, (uint64_t)p, p->id);
	return r ? r : share_to_file(&handle, fd);
}

int body_cuMemPoolImportFromShareableHandle(void **pool, void *fd, int type, uint64_t flags)
{
	struct share_handle handle;
	struct share_reply reply;
	uint32_t device;
	int r;

	if (!pool || type != HANDLE_TYPE_FILE || flags)
		return CUDA_ERROR_INVALID_VALUE;
	r = share_from_file(fd, SHARE_POOL, &handle);
	if (!r)
		r = share_ask("cuMemPoolImportFromShareableHandle", &handle, &reply);
	if (r)
		return r;
	device = share_device(&reply);
	return device < DEVMEM_DEVICES ? pool_import(pool, device) : CUDA_ERROR_INVALID_DEVICE;
}

int body_cuMemPoolExportPointer(struct share_handle *handle, uint64_t address)
{
	struct memory_state *s = memory_lock(0);
	const struct devmem_allocation *a;
	uint64_t id = 0;

	if (!s)
		return CUDA_ERROR_INVALID_VALUE;
	a = devmem_find(&s->devmem, address);
	if (a && a->address == address && a->pool && shareable_pool(a->pool))
		id = a->id;
	memory_unlock(s);
	return handle && id ? share_make(handle, SHARE_MEMORY, address, id)
			    : CUDA_ERROR_INVALID_VALUE;
}

int body_cuMemPoolImportPointer(
	uint64_t *address, void *pool, const struct share_handle *handle)
{
	struct memory_pool *p = pool_of(pool);

	if (!address || !handle || !p || !p->imported || !share_is(handle, SHARE_MEMORY))
		return CUDA_ERROR_INVALID_VALUE;
	return import_open("cuMemPoolImportPointer", handle, p, address);
}
