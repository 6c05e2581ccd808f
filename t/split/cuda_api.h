/* cuda_api.h - the few functions of the driver API that the tests use, declared by hand: tests
 * need no toolkit. */
#ifndef T_SPLIT_CUDA_API_H
#define T_SPLIT_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t CUdeviceptr;

int cuInit(unsigned);
int cuDriverGetVersion(int *);
int cuCtxGetCurrent(void **);
int cuCtxSetCurrent(void *);
int cuCtxSynchronize(void);
int cuDeviceGet(int *, int);
int cuDeviceGetCount(int *);
int cuDevicePrimaryCtxRetain(void **, int);
int cuMemAlloc_v2(CUdeviceptr *, size_t);
int cuMemFree_v2(CUdeviceptr);
int cuMemGetAddressRange_v2(CUdeviceptr *, size_t *, CUdeviceptr);
int cuMemGetInfo_v2(size_t *, size_t *);
int cuMemAllocPitch_v2(CUdeviceptr *, size_t *, size_t, size_t, unsigned);
int cuPointerGetAttribute(void *, int, CUdeviceptr);
int cuPointerGetAttributes(unsigned, const int *, void **, CUdeviceptr);
int cuMemHostAlloc(void **, size_t, unsigned);
int cuMemAllocHost_v2(void **, size_t);
int cuMemFreeHost(void *);
int cuMemHostGetFlags(unsigned *, void *);
int cuMemHostGetDevicePointer_v2(CUdeviceptr *, void *, unsigned);
int cuMemHostRegister_v2(void *, size_t, unsigned);
int cuMemHostUnregister(void *);
int cuMemAllocAsync(CUdeviceptr *, size_t, void *);
int cuMemFreeAsync(CUdeviceptr, void *);
int cuMemAllocFromPoolAsync(CUdeviceptr *, size_t, void *, void *);
int cuDeviceGetDefaultMemPool(void **, int);
int cuDeviceGetMemPool(void **, int);
int cuDeviceSetMemPool(int, void *);
int cuMemPoolCreate(void **, const void *);
int cuMemPoolDestroy(void *);
int cuMemPoolGetAttribute(void *, int, void *);
int cuMemPoolSetAttribute(void *, int, const void *);
int cuMemPoolTrimTo(void *, size_t);
int cuMemAddressReserve(CUdeviceptr *, size_t, size_t, CUdeviceptr, uint64_t);
int cuMemAddressFree(CUdeviceptr, size_t);
int cuMemCreate(uint64_t *, size_t, const void *, uint64_t);
int cuMemRelease(uint64_t);
int cuMemMap(CUdeviceptr, size_t, size_t, uint64_t, uint64_t);
int cuMemUnmap(CUdeviceptr, size_t);
int cuMemSetAccess(CUdeviceptr, size_t, const void *, size_t);
int cuMemRetainAllocationHandle(uint64_t *, void *);
int cuMemGetAllocationPropertiesFromHandle(void *, uint64_t);
int cuMemAllocManaged(CUdeviceptr *, size_t, unsigned);
int cuMemExportToShareableHandle(void *, uint64_t, int, uint64_t);
int cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t);
int cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);
int cuMemcpyHtoDAsync_v2(CUdeviceptr, const void *, size_t, void *);
int cuMemcpyDtoHAsync_v2(void *, CUdeviceptr, size_t, void *);
int cuMemsetD32_v2(CUdeviceptr, unsigned, size_t);
int cuModuleLoadData(void **, const void *);
int cuModuleUnload(void *);
int cuModuleGetFunction(void **, void *, const char *);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
	void *, void **, void **);
int cuStreamCreate(void **, unsigned);
int cuStreamDestroy_v2(void *);
int cuStreamSynchronize(void *);
int cuStreamQuery(void *);
int cuEventCreate(void **, unsigned);
int cuEventRecord(void *, void *);
int cuEventSynchronize(void *);
int cuEventDestroy_v2(void *);
int cuLaunchHostFunc(void *, void (*)(void *), void *);
int cuStreamAddCallback(void *, void (*)(void *, int, void *), void *, unsigned);
int cuOccupancyMaxPotentialBlockSize(int *, int *, void *, size_t (*)(int), size_t, int);
int cuGraphAddHostNode(void **, void *, void *const *, size_t, const void *);
int cuGraphHostNodeGetParams(void *, void *);
int cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);
int cuGetExportTable(const void **, const void *);
int cuCtxCreate_v2(void **, unsigned, int);
int cuCtxDestroy_v2(void *);
int cuCtxPushCurrent_v2(void *);
int cuCtxPopCurrent_v2(void **);
int cuCtxSetLimit(int, size_t);
int cuCtxGetLimit(size_t *, int);
int cuCtxSetCacheConfig(int);
int cuCtxGetCacheConfig(int *);
int cuCtxGetFlags(unsigned *);
int cuDevicePrimaryCtxSetFlags_v2(int, unsigned);
int cuDevicePrimaryCtxRelease_v2(int);
int cuThreadExchangeStreamCaptureMode(int *);
int cuStreamCreateWithPriority(void **, unsigned, int);
int cuStreamGetFlags(void *, unsigned *);
int cuStreamGetPriority(void *, int *);
int cuStreamGetId(void *, uint64_t *);
int cuStreamGetCtx(void *, void **);
int cuStreamSetAttribute(void *, int, const void *);
int cuStreamGetAttribute(void *, int, void *);
int cuStreamCopyAttributes(void *, void *);
int cuStreamWaitEvent(void *, void *, unsigned);
int cuEventQuery(void *);
int cuEventElapsedTime(float *, void *, void *);
int cuModuleLoadDataEx(void **, const void *, unsigned, const int *, void **);
int cuModuleLoad(void **, const char *);
int cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, void *, const char *);
int cuModuleEnumerateFunctions(void **, unsigned, void *);
int cuFuncGetAttribute(int *, int, void *);
int cuFuncSetAttribute(void *, int, int);
int cuFuncGetModule(void **, void *);
int cuFuncGetName(const char **, void *);
int cuLibraryLoadData(
	void **, const void *, const int *, void **, unsigned, const int *, void **, unsigned);
int cuLibraryUnload(void *);
int cuLibraryGetKernel(void **, void *, const char *);
int cuLibraryGetModule(void **, void *);
int cuLibraryGetGlobal(CUdeviceptr *, size_t *, void *, const char *);
int cuKernelGetFunction(void **, void *);
int cuKernelGetLibrary(void **, void *);
int cuKernelGetAttribute(int *, int, void *, int);
int cuKernelSetAttribute(int, int, void *, int);
int cuLaunchKernelEx(const void *, void *, void **, void **);
int cuGraphCreate(void **, unsigned);
int cuGraphDestroy(void *);
int cuGraphExecDestroy(void *);
int cuGraphInstantiateWithFlags(void **, void *, uint64_t);
int cuGraphAddEventRecordNode(void **, void *, void *const *, size_t, void *);
int cuGraphEventRecordNodeSetEvent(void *, void *);
int cuCtxGetId(void *, uint64_t *);
int cuKernelGetName(const char **, void *);
int cuDevicePrimaryCtxGetState(int, unsigned *, int *);
int cuCtxEnablePeerAccess(void *, unsigned);
int cuCtxDisablePeerAccess(void *);
int cuDevSmResourceSplitByCount(void *, unsigned *, const void *, void *, unsigned, unsigned);

#endif
