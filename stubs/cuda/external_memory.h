/*
 * external_memory.h - memory of other interfaces, such as Vulkan, that the program has imported. It
 * cannot be made again: no checkpoint while there is any. For use in guarded bodies.
 */
#ifndef STUBS_CUDA_EXTERNAL_MEMORY_H
#define STUBS_CUDA_EXTERNAL_MEMORY_H

#include "stubs/cuda/bodies.h"

/* Unmap the buffer at exactly @address: 0 or the driver's error. CUDA_ERROR_NOT_FOUND: there is none. */
STUB_HIDDEN int external_buffer_free(uint64_t address);
/* The driver has unmapped what was at @address in another way; nothing, if that was no such buffer. */
STUB_HIDDEN void external_buffer_gone(uint64_t address);

/* CUDA_EXTERNAL_MEMORY_HANDLE_DESC */
struct external_memory_handle {
	uint32_t type, pad;
	union {
		int fd;
		void *words[2];
	} handle;
	uint64_t size;
	uint32_t flags, reserved[16];
};
_Static_assert(sizeof(struct external_memory_handle) == 104, "");

int body_cuImportExternalMemory(void **memory, const struct external_memory_handle *handle);
int body_cuExternalMemoryGetMappedBuffer(
	uint64_t *address, void *memory, const void *description);

REAL(cuExternalMemoryGetMappedBuffer);

#endif
