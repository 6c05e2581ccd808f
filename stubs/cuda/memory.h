/*
 * memory.h - memory that the program allocates: what the files of the stub that serve it offer
 * each other. doc/gpu-memory.md tells the way of an allocation.
 */
#ifndef STUBS_CUDA_MEMORY_H
#define STUBS_CUDA_MEMORY_H

#include "shared/cuda/memory_driver.h"
#include "stubs/cuda/bodies.h"

enum {
	CUDA_ERROR_INVALID_DEVICE = 101,
	CUDA_ERROR_INVALID_CONTEXT = 201,
	CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
	CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
	CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
	CUDA_ERROR_UNKNOWN = 999,
};

#define ATTACH_SINGLE 4 /* CU_MEM_ATTACH_SINGLE */

/*
 * The state of this process's memory, locked. NULL when there is none and @make is 0, when
 * there is no room for it, or when this thread has it locked already: it is a signal handler
 * that came in the middle (the driver's own locks would block for ever).
 */
STUB_HIDDEN struct memory_state *memory_lock(int make);
STUB_HIDDEN void memory_unlock(struct memory_state *s);

/* The calling thread's context and its device. An error as the driver would give it to an
 * allocation now: no context, a context in ruins, or streams being captured. */
STUB_HIDDEN int memory_context(void **context, int *device);

/* The device of @context, a real one. 0 or the driver's error. */
STUB_HIDDEN int memory_device_of(void *context, int *device);

/* @size bytes on part @device for @context. Also takes what streams have given back. */
STUB_HIDDEN int memory_new(struct memory_state *s, uint32_t device, uint64_t size,
	void *context, struct devmem_allocation **allocation);

/* The same, locking the state for it; where it is comes to @address. */
STUB_HIDDEN int memory_allocate(
	uint32_t device, uint64_t size, void *context, uint32_t flags, uint64_t *address);

/* Frees what is at exactly @address, when nothing uses it any more. CUDA_ERROR_NOT_FOUND: there
 * is nothing of ours. */
STUB_HIDDEN int memory_free(uint64_t address);

STUB_HIDDEN int memory_is_of_graph(uint64_t address);

/* Wait until nothing uses memory of @context (NULL: the current one) any more, as cuMemFree does. 0 or
 * the driver's error. */
STUB_HIDDEN int memory_synchronise(void *context);

/* The live allocation at exactly @address, which is pending from now on; NULL: there is none.
 */
STUB_HIDDEN struct devmem_allocation *memory_claim(struct memory_state *s, uint64_t address);
/* What was claimed, when nothing uses it any more. */
STUB_HIDDEN void memory_give(struct memory_state *s, struct devmem_allocation *allocation);

/* In the flags of an allocation: of nodes of graphs (graph_memory.c), which have it again at their next launch. */
#define MEMORY_OF_GRAPH (1u << 31)
/* The program frees it: what is at exactly @address; now, or in the order of @stream. 0 or an error. */
STUB_HIDDEN int graph_memory_freed(uint64_t address);
STUB_HIDDEN int graph_memory_freed_behind(uint64_t address, void *stream);
/* After all memory of a context has gone. */
STUB_HIDDEN void graph_memory_context_gone(void);
/* On a stream that is being captured; @device is where memory shall be. */
STUB_HIDDEN int graph_capture_allocation(
	uint64_t *address, size_t size, int device, void *stream);
STUB_HIDDEN int graph_capture_free(uint64_t address, void *stream);

/* graph_marks.c: how far streams have come. @call is how the driver is called: cuda_call_down(), or another
 * function behind the crossing. Handles are real. */
typedef int driver_call(unsigned index, const uint64_t *words);
struct graph_mark;
/* Where @stream is now, with one holder. NULL: it cannot be told. */
STUB_HIDDEN struct graph_mark *graph_mark_new(void *stream, driver_call *call);
/* @m, which may be NULL, is where @stream is now. Not 0: it cannot be, or memory waits for it. */
STUB_HIDDEN int graph_mark_again(
	const struct graph_mark *m, const void *stream, driver_call *call);
STUB_HIDDEN void graph_mark_hold(struct graph_mark *m);
STUB_HIDDEN void graph_mark_release(struct graph_mark *m, driver_call *call);
/* No memory waits for the mark with @event any more. 1: it still needs the event; 0: there is none that does. */
STUB_HIDDEN int graph_mark_keeps(void *event);
/* Events have gone with @context. */
STUB_HIDDEN void graph_marks_gone(const void *context);

/* pool.c. What was claimed is free when @mark, which has an event, is reached. 0 or an error. */
STUB_HIDDEN int memory_give_behind(
	struct memory_state *s, struct devmem_allocation *allocation, struct graph_mark *mark);
/* Memory that streams are done with, or all of it after waiting (@wait). */
STUB_HIDDEN void memory_collect(struct memory_state *s, int wait);
/* The program has freed @allocation, which is of a pool; and then: nothing uses it any more. */
STUB_HIDDEN void memory_unaccount(struct devmem_allocation *allocation);
STUB_HIDDEN void memory_leave_pool(
	struct memory_state *s, struct devmem_allocation *allocation);
STUB_HIDDEN void memory_orders_gone(struct memory_state *s, void *context);

/* Of objects.c's bodies: after the context is gone; before the stream goes. */
STUB_HIDDEN void memory_context_gone(void *context);
STUB_HIDDEN void memory_stream_gone(void *stream);
/* managed.c: it was at @address; it was @context's; and what was attached to @stream. */
STUB_HIDDEN void memory_managed_freed(uint64_t address);
STUB_HIDDEN void memory_managed_gone(struct memory_state *s, const void *context);
STUB_HIDDEN void memory_managed_detached(struct memory_state *s, const void *stream);
/* After the driver's result @r: a capture of a stream has begun, or has ended. Returns @r. */
STUB_HIDDEN int memory_capture_begins(int r);
STUB_HIDDEN void memory_capture_ends(void);

/* A record from the list of spare ones at @spare, or a new one; zeroed. NULL: no memory. */
STUB_HIDDEN void *memory_record(void **spare, uint64_t size, uint64_t next_offset);
#define MEMORY_RECORD(spare)                                                                   \
	((__typeof__(spare))memory_record((void **)&(spare), sizeof(*(spare)),                 \
		__builtin_offsetof(__typeof__(*(spare)), next)))

/* ---- bodies, and what of the driver they use ---- */

int body_cuMemAlloc_v2(uint64_t *address, size_t size);
STUB_HIDDEN int body_cuMemAllocPitch_v2(
	uint64_t *address, size_t *pitch, size_t width, size_t height, unsigned element);
int body_cuMemFree_v2(uint64_t address);
int body_cuMemGetInfo_v2(size_t *free, size_t *total);
int body_cuMemGetAddressRange_v2(uint64_t *start, size_t *size, uint64_t address);
STUB_HIDDEN int body_cuCtxEnablePeerAccess(void *peer, unsigned flags);
STUB_HIDDEN int body_cuCtxDisablePeerAccess(void *peer);
int body_cuPointerGetAttribute(void *data, int attribute, uint64_t address);
int body_cuPointerGetAttributes(
	unsigned count, const int *attributes, void **data, uint64_t address);
int body_cuPointerSetAttribute(const void *value, int attribute, uint64_t address);
STUB_HIDDEN int body_cuMemHostAlloc(void **address, size_t size, unsigned flags);
STUB_HIDDEN int body_cuMemAllocHost_v2(void **address, size_t size);
int body_cuMemFreeHost(void *address);
int body_cuMemHostGetFlags(unsigned *flags, void *address);
int body_cuMemHostRegister_v2(void *address, size_t size, unsigned flags);
int body_cuMemHostUnregister(void *address);
int body_cuMemAllocManaged(uint64_t *address, size_t size, unsigned flags);
int body_cuMemAdvise(uint64_t address, size_t size, int advice, int device);
int body_cuMemAdvise_v2(uint64_t address, size_t size, int advice, uint64_t location);
int body_cuStreamAttachMemAsync(void *stream, uint64_t address, size_t size, unsigned flags);
int body_cuStreamAttachMemAsync_ptsz(
	void *stream, uint64_t address, size_t size, unsigned flags);
int body_cuMemAllocAsync(uint64_t *address, size_t size, void *stream);
STUB_HIDDEN int body_cuMemAllocAsync_ptsz(uint64_t *address, size_t size, void *stream);
int body_cuMemAllocFromPoolAsync(uint64_t *address, size_t size, void *pool, void *stream);
STUB_HIDDEN int body_cuMemAllocFromPoolAsync_ptsz(
	uint64_t *address, size_t size, void *pool, void *stream);
int body_cuMemFreeAsync(uint64_t address, void *stream);
STUB_HIDDEN int body_cuMemFreeAsync_ptsz(uint64_t address, void *stream);
int body_cuDeviceGetDefaultMemPool(void **pool, int device);
STUB_HIDDEN int body_cuDeviceGetMemPool(void **pool, int device);
STUB_HIDDEN int body_cuDeviceSetMemPool(int device, void *pool);
int body_cuMemAddressReserve(
	uint64_t *address, size_t size, size_t align, uint64_t wanted, uint64_t flags);
int body_cuMemAddressFree(uint64_t address, size_t size);
int body_cuMemCreate(uint64_t *handle, size_t size, const struct memory_properties *properties,
	uint64_t flags);
int body_cuMemRelease(uint64_t handle);
int body_cuMemMap(
	uint64_t address, size_t size, size_t offset, uint64_t handle, uint64_t flags);
int body_cuMemUnmap(uint64_t address, size_t size);
int body_cuMemSetAccess(
	uint64_t address, size_t size, const struct memory_access *access, size_t count);
int body_cuMemExportToShareableHandle(void *out, uint64_t handle, int type, uint64_t flags);
int body_cuMemImportFromShareableHandle(uint64_t *handle, void *from, int type);
int body_cuMemGetAllocationPropertiesFromHandle(
	struct memory_properties *properties, uint64_t handle);
int body_cuMemRetainAllocationHandle(uint64_t *handle, void *address);
int body_cuStreamBeginCapture(void *stream);
int body_cuStreamBeginCapture_ptsz(void *stream);
int body_cuStreamBeginCapture_v2(void *stream, int mode);
int body_cuStreamBeginCapture_v2_ptsz(void *stream, int mode);
int body_cuStreamBeginCaptureToGraph(void *stream, void *graph, const void *dependencies,
	const void *data, size_t count, int mode);
int body_cuStreamBeginCaptureToGraph_ptsz(void *stream, void *graph, const void *dependencies,
	const void *data, size_t count, int mode);
STUB_HIDDEN int body_cuStreamEndCapture(void *stream, void **graph);
STUB_HIDDEN int body_cuStreamEndCapture_ptsz(void *stream, void **graph);

REAL(cuMemAlloc_v2);
REAL(cuMemFree_v2);
REAL(cuMemGetInfo_v2);
REAL(cuMemGetAddressRange_v2);
REAL(cuCtxDisablePeerAccess);
REAL(cuPointerGetAttribute);
REAL(cuPointerGetAttributes);
REAL(cuPointerSetAttribute);
REAL(cuMemFreeHost);
REAL(cuMemHostGetFlags);
REAL(cuMemHostRegister_v2);
REAL(cuMemHostUnregister);
REAL(cuMemAllocManaged);
REAL(cuMemAdvise);
REAL(cuMemAdvise_v2);
REAL(cuStreamAttachMemAsync);
REAL(cuStreamAttachMemAsync_ptsz);
REAL(cuMemAllocAsync);
REAL(cuMemAllocFromPoolAsync);
REAL(cuMemFreeAsync);
REAL(cuDeviceGetDefaultMemPool);
REAL(cuMemAddressReserve);
REAL(cuMemAddressFree);
REAL(cuMemCreate);
REAL(cuMemRelease);
REAL(cuMemMap);
REAL(cuMemUnmap);
REAL(cuMemSetAccess);
REAL(cuMemExportToShareableHandle);
REAL(cuMemImportFromShareableHandle);
REAL(cuMemGetAllocationPropertiesFromHandle);
REAL(cuMemRetainAllocationHandle);
REAL(cuStreamBeginCapture);
REAL(cuStreamBeginCapture_ptsz);
REAL(cuStreamBeginCapture_v2);
REAL(cuStreamBeginCapture_v2_ptsz);
REAL(cuStreamBeginCaptureToGraph);
REAL(cuStreamBeginCaptureToGraph_ptsz);
REAL_ONLY(cuCtxPushCurrent_v2, (void *context));
REAL_ONLY(cuCtxPopCurrent_v2, (void **context));
REAL_ONLY(cuCtxSynchronize, (void));
REAL_ONLY(cuDeviceGetAttribute, (int *value, int attribute, int device));
REAL_ONLY(cuEventCreate, (void **event, unsigned flags));
REAL_ONLY(cuEventDestroy_v2, (void *event));
REAL_ONLY(cuEventQuery, (void *event));
REAL_ONLY(cuEventRecord, (void *event, void *stream));
REAL_ONLY(cuEventSynchronize, (void *event));
REAL_ONLY(cuStreamGetCtx, (void *stream, void **context));
REAL_ONLY(cuStreamIsCapturing, (void *stream, int *status));
REAL_ONLY(cuStreamQuery, (void *stream));
REAL_ONLY(cuStreamSynchronize, (void *stream));
/* A copy of device memory is read while the program runs (snapshot_wait.c): wait until it is gone. 0:
 * there was none. */
STUB_HIDDEN int snapshot_wait(void);
/* How much of @device it has, bytes. */
STUB_HIDDEN uint64_t snapshot_size(int device);
/* The driver's cuMemCreate, when what it has is not in the way. */
STUB_HIDDEN int snapshot_create(uint64_t *handle, size_t size,
	const struct memory_properties *properties, uint64_t flags);

REAL_ONLY(cuStreamWaitEvent, (void *stream, void *event, unsigned flags));

#endif
