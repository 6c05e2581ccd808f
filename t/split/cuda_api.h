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
int cuLibraryLoadData(void **, const void *, const int *, void **, unsigned, const int *, void **,
	unsigned);
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

#endif
