/*
 * cuImportExternalMemory and the buffers that are mapped from it. The driver takes over the file
 * descriptor that names the memory, so nothing of ours may use it afterwards. A buffer has no handle
 * but its address, is freed like other memory, and outlives the external memory object.
 */
#include "stubs/cuda/external_memory.h"

#include "shared/cuda/calls.h"
#include "shared/raw.h"
#include "stubs/cuda/memory.h"
#include "stubs/cuda/objects.h"
#include "stubs/cuda/sharing.h"

#include "cuda.index.h"

#define OPAQUE_FD 1 /* CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD */

/* What cuMemExportToShareableHandle() gives is a file that means nothing to the driver. */
static int is_exported_here(const struct external_memory_handle *handle)
{
	struct share_handle share;

	return handle && handle->type == OPAQUE_FD &&
	       !share_from_file((void *)(intptr_t)handle->handle.fd, SHARE_PHYSICAL, &share);
}

int body_cuImportExternalMemory(void **memory, const struct external_memory_handle *handle)
{
	if (is_exported_here(handle)) {
		crossing_complain("cuImportExternalMemory",
			"the descriptor is of cuMemExportToShareableHandle, which under "
			"trecr-run "
			"only cuMemImportFromShareableHandle can import");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	return cuda_perform(
		INDEX_cuImportExternalMemory, WORDS((uint64_t)memory, (uint64_t)handle));
}

int body_cuExternalMemoryGetMappedBuffer(
	uint64_t *address, void *memory, const void *description)
{
	int r = real_cuExternalMemoryGetMappedBuffer(address, memory, description);

	if (r || !state_usable())
		return r;
	r = object_lost(CUDA_EXTERNAL_BUFFER, (void *)*address);
	if (r)
		real_cuMemFree_v2(*address); /* as if it had not been mapped */
	return r;
}

static struct object *find_buffer(uint64_t address)
{
	return address && state_usable() ? object_find(CUDA_EXTERNAL_BUFFER, (void *)address)
					 : NULL;
}

int external_buffer_free(uint64_t address)
{
	struct object *o = find_buffer(address);
	int r;

	if (!o)
		return CUDA_ERROR_NOT_FOUND;
	/* Before the driver may give the same address out again, to another thread. */
	o->real = (void *)CUDA_DEAD;
	r = real_cuMemFree_v2(address);
	o->real = (void *)address;
	if (!r)
		object_kill(o);
	return r;
}

void external_buffer_gone(uint64_t address)
{
	object_kill(find_buffer(address));
}
