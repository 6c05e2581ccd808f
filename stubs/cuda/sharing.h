/*
 * sharing.h - memory, pools and events that processes of one program share (shared/share.h): what the
 * files of the stub that serve it offer each other. For use in guarded bodies.
 */
#ifndef STUBS_CUDA_SHARING_H
#define STUBS_CUDA_SHARING_H

#include "shared/share.h"
#include "stubs/cuda/memory.h"

/* A handle by which other processes find @object, which has @id, here. 0 or an error. */
STUB_HIDDEN int share_make(
	struct share_handle *handle, enum share_kind kind, uint64_t object, uint64_t id);
/* The owner of it is this process. */
STUB_HIDDEN int share_is_own(const struct share_handle *handle);
/* Whether @handle, which comes from the program, is one of @kind. */
STUB_HIDDEN int share_is(const struct share_handle *handle, enum share_kind kind);

/* A file descriptor of the program's that stands for @handle, as the driver's do for what it exports;
 * and what one stands for. 0 or an error. */
STUB_HIDDEN int share_to_file(const struct share_handle *handle, int *fd);
STUB_HIDDEN int share_from_file(void *fd, enum share_kind kind, struct share_handle *handle);

/* Ask the owner of @handle: 0 or an error as of the driver's function @name. */
STUB_HIDDEN int share_ask(
	const char *name, const struct share_handle *handle, struct share_reply *reply);
/* Piece @index of it as a handle of the driver's in this process. */
STUB_HIDDEN int share_import(const char *name, const struct share_handle *handle,
	uint32_t index, struct share_reply *reply, uint64_t *real);
/* Number of the device that a reply is about; DEVMEM_DEVICES: this process does not see it. */
STUB_HIDDEN uint32_t share_device(const struct share_reply *reply);

/* ---- imports.c ---- */

/* The import that @address lies in; NULL: none. Of memory_lock(). */
STUB_HIDDEN struct memory_import *import_find(struct memory_state *s, uint64_t address);
/* Memory that @handle stands for, at *@address; @pool: that it is of, or NULL. */
STUB_HIDDEN int import_open(const char *name, const struct share_handle *handle,
	struct memory_pool *pool, uint64_t *address);
/* One reference less to what was imported to exactly @address, from a pool or not.
 * CUDA_ERROR_NOT_FOUND: nothing was. */
STUB_HIDDEN int import_close(uint64_t address, int pooled);
/* With @context go what it had opened. */
STUB_HIDDEN void imports_gone(struct memory_state *s, const void *context);

/* virtual_memory.c: @size bytes of addresses, with a record in the state. */
STUB_HIDDEN int memory_reserve(struct memory_state *s, uint64_t *address, uint64_t size);
STUB_HIDDEN void memory_unreserve(struct memory_state *s, uint64_t address, uint64_t size);

STUB_HIDDEN int body_cuIpcGetMemHandle(struct share_handle *handle, uint64_t address);
STUB_HIDDEN int body_cuIpcOpenMemHandle(
	uint64_t *address, struct share_handle handle, unsigned flags);
STUB_HIDDEN int body_cuIpcOpenMemHandle_v2(
	uint64_t *address, struct share_handle handle, unsigned flags);
STUB_HIDDEN int body_cuIpcCloseMemHandle(uint64_t address);
int body_cuIpcGetEventHandle(struct share_handle *handle, void *event);
int body_cuIpcOpenEventHandle(void **event, struct share_handle handle);
STUB_HIDDEN int body_cuMemPoolExportToShareableHandle(
	int *fd, void *pool, int type, uint64_t flags);
STUB_HIDDEN int body_cuMemPoolImportFromShareableHandle(
	void **pool, void *fd, int type, uint64_t flags);
STUB_HIDDEN int body_cuMemPoolExportPointer(struct share_handle *handle, uint64_t address);
STUB_HIDDEN int body_cuMemPoolImportPointer(
	uint64_t *address, void *pool, const struct share_handle *handle);

REAL(cuIpcGetEventHandle);
REAL(cuIpcOpenEventHandle);

#endif
