/*
 * bodies.h - the hand-written part of the stub for libcuda.so.1.
 *
 * No CUDA toolkit is needed to build it: what is used of the API's types is declared here.
 * body_NAME is what the exported entry calls, real_NAME crosses (stubs/gen/entries.c).
 */
#ifndef STUBS_CUDA_BODIES_H
#define STUBS_CUDA_BODIES_H

#include <stddef.h>
#include <stdint.h>

#include "shared/cuda/graph_params.h"
#include "stubs/cuda/launch_config.h"
#include "stubs/library.h"

enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NOT_INITIALIZED = 3,
	CUDA_ERROR_DEINITIALIZED = 4,
	CUDA_ERROR_FILE_NOT_FOUND = 301,
	CUDA_ERROR_INVALID_HANDLE = 400,
	CUDA_ERROR_NOT_FOUND = 500,
	CUDA_ERROR_NOT_SUPPORTED = 801,
};

#define CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM 2
#define CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND          1

/* The default streams: a context's (also NULL), and each thread's own (NULL to a function
 * _ptsz).
 */
#define STREAM_LEGACY     ((void *)1)
#define STREAM_PER_THREAD ((void *)2)

/* What both versions of CUDA_HOST_NODE_PARAMS begin with. */
struct host_node {
	void *function;
	void *argument;
};

/* CUDA_KERNEL_NODE_PARAMS_v1 */
struct kernel_node_v1 {
	void *function;
	unsigned grid[3], block[3], shared;
	void **params, **extra;
};
_Static_assert(sizeof(struct kernel_node_v1) == 56, "");

/* CUDA_KERNEL_NODE_PARAMS */
struct kernel_node {
	void *function;
	unsigned grid[3], block[3], shared;
	void **params, **extra;
	void *kernel;
	void *context;
};
_Static_assert(sizeof(struct kernel_node) == 72, "");

/* CUDA_CONDITIONAL_NODE_PARAMS */
struct conditional_node {
	uint64_t handle;
	int type;
	unsigned count;
	void **graphs; /* the driver's own array */
	void *context;
};
_Static_assert(sizeof(struct conditional_node) == 32, "");

/* CUgraphNodeParams */
struct node_params {
	int type;
	int reserved0[3];
	union {
		struct host_node host;
		struct kernel_node kernel;
		void *event;
		struct {
			void *graph;
			int ownership;
		} child;
		struct conditional_node conditional;
		struct graph_allocation allocation;
		struct {
			uint32_t flags, reserved;
			void *context;
			struct graph_memcpy copy;
		} memcpy;
		uint64_t words[29];
	} params;
	uint64_t reserved2;
};
_Static_assert(sizeof(struct node_params) == 256, "as in CUDA 12.2 and later");

/* CUDA_GRAPH_INSTANTIATE_PARAMS */
struct instantiate_params {
	uint64_t flags;
	void *stream, *error_node;
	int result;
};

/* CUgraphExecUpdateResultInfo */
struct update_result {
	int result;
	void *node, *from;
};

/* CUctxCreateParams */
struct context_params {
	void *affinities;
	int affinity_count;
	void *graphics;
};
_Static_assert(sizeof(struct context_params) == 24, "as in CUDA 12.5 and later");

extern STUB_HIDDEN struct crossing_library cuda_library;

/* The driver's functions, by their index in the API table: for code behind the crossing. */
extern STUB_HIDDEN void *cuda_targets[];

/* crossing_library.restarted: export_table.c */
STUB_HIDDEN int export_tables_restarted(struct crossing_library *library);
STUB_HIDDEN uintptr_t export_tables_avoid(const struct crossing_library *library);

/* For entry points of class unsupported: says so and gives the result. */
STUB_HIDDEN int cuda_refused(unsigned index);

/* After a cuInit() that went well: the records of it. 0 or the driver's error. */
STUB_HIDDEN int cuda_state_open(void);

int body_cuInit(unsigned flags);
int body_cuGetProcAddress(const char *name, void **function, int version, uint64_t flags);
int body_cuGetProcAddress_v2(
	const char *name, void **function, int version, uint64_t flags, int *status);
int body_cuGetExportTable(const void **table, const unsigned char id[16]);
int body_cuGraphAddHostNode(void **node, void *graph, void *const *dependencies, size_t count,
	const struct host_node *params);
int body_cuGraphHostNodeGetParams(void *node, struct host_node *params);
int body_cuGraphHostNodeSetParams(void *node, const struct host_node *params);
int body_cuGraphExecHostNodeSetParams(void *graph, void *node, const struct host_node *params);
int body_cuGraphConditionalHandleCreate(
	uint64_t *handle, void *graph, void *context, unsigned value, unsigned flags);
int body_cuGraphAddNode(void **node, void *graph, void *const *dependencies, size_t count,
	struct node_params *params);
int body_cuGraphAddNode_v2(void **node, void *graph, void *const *dependencies,
	const void *edges, size_t count, struct node_params *params);
int body_cuGraphNodeSetParams(void *node, struct node_params *params);
int body_cuGraphExecNodeSetParams(void *graph, void *node, struct node_params *params);

int body_cuDevicePrimaryCtxRetain(void **context, int device);
int body_cuDevicePrimaryCtxRelease(int device);
int body_cuDevicePrimaryCtxRelease_v2(int device);
int body_cuDevicePrimaryCtxReset(int device);
int body_cuDevicePrimaryCtxReset_v2(int device);
int body_cuDevicePrimaryCtxSetFlags(int device, unsigned flags);
int body_cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags);
int body_cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
int body_cuCtxGetCurrent(void **context);
int body_cuCtxGetDevice(int *device);
int body_cuCtxGetDevice_v2(int *device, void *context);
int body_cuCtxCreate_v4(
	void **context, struct context_params *params, unsigned flags, int device);
int body_cuStreamGetId(void *stream, uint64_t *id);
int body_cuStreamGetId_ptsz(void *stream, uint64_t *id);
int body_cuCtxGetId(void *context, uint64_t *id);
int body_cuFuncGetName(const char **name, void *function);
int body_cuGetErrorString(int error, const char **text);
int body_cuGetErrorName(int error, const char **text);
int body_cuKernelGetName(const char **name, void *kernel);
int body_cuDevSmResourceSplitByCount(void *result, unsigned *groups, const void *input,
	void *remaining, unsigned flags, unsigned least);
int body_cuStreamCopyAttributes(void *to, void *from);
int body_cuStreamCopyAttributes_ptsz(void *to, void *from);
int body_cuStreamAddCallback(void *stream, void *function, void *data, unsigned flags);
int body_cuStreamAddCallback_ptsz(void *stream, void *function, void *data, unsigned flags);
int body_cuEventElapsedTime(float *ms, void *start, void *end);
int body_cuEventElapsedTime_v2(float *ms, void *start, void *end);
int body_cuModuleLoad(void **module, const char *path);
int body_cuLibraryLoadFromFile(void **library, const char *path, const int *jit_options,
	void **jit_values, unsigned jit_count, const int *options, void **values,
	unsigned count);
int body_cuModuleEnumerateFunctions(void **functions, unsigned count, void *module);
int body_cuLibraryEnumerateKernels(void **kernels, unsigned count, void *library);
STUB_HIDDEN int inner_cuLaunchKernelEx(
	const struct launch_config *config, void *function, void **params, void **extra);
STUB_HIDDEN int inner_cuLaunchKernelEx_ptsz(
	const struct launch_config *config, void *function, void **params, void **extra);
int body_cuOccupancyMaxPotentialClusterSize(
	int *size, void *function, const struct launch_config *config);
int body_cuOccupancyMaxActiveClusters(
	int *count, void *function, const struct launch_config *config);
int body_cuGraphAddKernelNode(void **node, void *graph, void *const *dependencies, size_t count,
	const struct kernel_node *params);
int body_cuGraphKernelNodeGetParams(void *node, struct kernel_node *params);
int body_cuGraphKernelNodeSetParams(void *node, const struct kernel_node *params);
int body_cuGraphExecKernelNodeSetParams(
	void *graph, void *node, const struct kernel_node *params);
int body_cuGraphAddKernelNode_v2(void **node, void *graph, void *const *dependencies,
	size_t count, const struct kernel_node *params);
int body_cuGraphKernelNodeGetParams_v2(void *node, struct kernel_node *params);
int body_cuGraphKernelNodeSetParams_v2(void *node, const struct kernel_node *params);
int body_cuGraphExecKernelNodeSetParams_v2(
	void *graph, void *node, const struct kernel_node *params);
int body_cuGraphAddMemAllocNode(void **node, void *graph, void *const *dependencies,
	size_t count, struct graph_allocation *params);
int body_cuGraphAddMemFreeNode(
	void **node, void *graph, void *const *dependencies, size_t count, uint64_t address);
int body_cuGraphMemAllocNodeGetParams(void *node, struct graph_allocation *params);
int body_cuGraphMemFreeNodeGetParams(void *node, uint64_t *address);
int body_cuGraphNodeGetType(void *node, int *type);
STUB_HIDDEN int inner_cuGraphLaunch(void *executable, void *stream);
STUB_HIDDEN int inner_cuGraphLaunch_ptsz(void *executable, void *stream);
int body_cuDeviceGetGraphMemAttribute(int device, int attribute, uint64_t *value);
int body_cuDeviceSetGraphMemAttribute(int device, int attribute, const uint64_t *value);
int body_cuGraphAddMemcpyNode(void **node, void *graph, void *const *dependencies, size_t count,
	const struct graph_memcpy *params, void *context);
int body_cuGraphMemcpyNodeGetParams(void *node, struct graph_memcpy *params);
int body_cuGraphMemcpyNodeSetParams(void *node, const struct graph_memcpy *params);
int body_cuGraphExecMemcpyNodeSetParams(
	void *graph, void *node, const struct graph_memcpy *params, void *context);
int body_cuGraphInstantiateWithParams(
	void **executable, void *graph, struct instantiate_params *params);
int body_cuGraphInstantiateWithParams_ptsz(
	void **executable, void *graph, struct instantiate_params *params);
int body_cuGraphExecUpdate_v2(void *executable, void *graph, struct update_result *result);
int body_cuGraphNodeGetEnabled(void *graph, void *node, unsigned *is_enabled);
int body_cuStreamGetCaptureInfo_v2(
	void *stream, int *status, uint64_t *id, void **graph, void ***nodes, size_t *count);
int body_cuStreamGetCaptureInfo_v2_ptsz(
	void *stream, int *status, uint64_t *id, void **graph, void ***nodes, size_t *count);
int body_cuStreamGetCaptureInfo_v3(void *stream, int *status, uint64_t *id, void **graph,
	void ***nodes, const void **edges, size_t *count);
int body_cuStreamGetCaptureInfo_v3_ptsz(void *stream, int *status, uint64_t *id, void **graph,
	void ***nodes, const void **edges, size_t *count);
int body_cuUserObjectRetain(void *object, unsigned count);
int body_cuUserObjectRelease(void *object, unsigned count);
int body_cuGraphRetainUserObject(void *graph, void *object, unsigned count, unsigned flags);
int body_cuGraphReleaseUserObject(void *graph, void *object, unsigned count);
int body_cuUserObjectCreate(
	void **object, void *data, void *destroy, unsigned references, unsigned flags);
int body_cuLogsRegisterCallback(void *function, void *data, void **handle);
int body_cuDeviceRegisterAsyncNotification(
	int device, void *function, void *data, void **handle);

#define REAL(name) extern STUB_HIDDEN __typeof__(body_##name) body_##name, real_##name
/* Of functions without a body of ours. */
#define REAL_ONLY(name, parameters) extern STUB_HIDDEN int real_##name parameters
REAL_ONLY(cuDriverGetVersion, (int *version));
REAL_ONLY(cuDeviceGetCount, (int *count));
REAL_ONLY(cuDeviceGet, (int *device, int ordinal));
REAL_ONLY(cuDeviceGetName, (char *name, int size, int device));
REAL_ONLY(cuDeviceGetUuid_v2, (void *uuid, int device));
REAL_ONLY(cuDeviceTotalMem_v2, (size_t * bytes, int device));

REAL(cuInit);
REAL(cuGetProcAddress);
REAL(cuGetProcAddress_v2);
REAL(cuGetExportTable);
REAL(cuGraphAddHostNode);
REAL(cuGraphHostNodeGetParams);
REAL(cuGraphHostNodeSetParams);
REAL(cuGraphExecHostNodeSetParams);
REAL(cuGraphAddNode);
REAL(cuGraphAddNode_v2);
REAL(cuGraphNodeSetParams);
REAL(cuGraphAddMemAllocNode);
REAL(cuGraphAddMemFreeNode);
REAL(cuGraphMemAllocNodeGetParams);
REAL(cuGraphMemFreeNodeGetParams);
REAL(cuGraphNodeGetType);
REAL(cuDeviceGetGraphMemAttribute);
REAL(cuDeviceSetGraphMemAttribute);
REAL(cuGraphExecNodeSetParams);

REAL(cuDevicePrimaryCtxRetain);
REAL(cuDevicePrimaryCtxRelease);
REAL(cuDevicePrimaryCtxRelease_v2);
REAL(cuDevicePrimaryCtxReset);
REAL(cuDevicePrimaryCtxReset_v2);
REAL(cuDevicePrimaryCtxSetFlags);
REAL(cuDevicePrimaryCtxSetFlags_v2);
REAL(cuDevicePrimaryCtxGetState);
REAL(cuCtxGetCurrent);
REAL(cuCtxGetDevice);
REAL(cuCtxGetDevice_v2);
REAL(cuCtxCreate_v4);
REAL(cuStreamGetId);
REAL(cuStreamGetId_ptsz);
REAL(cuCtxGetId);
REAL(cuFuncGetName);
REAL(cuGetErrorString);
REAL(cuGetErrorName);
REAL(cuKernelGetName);
REAL(cuDevSmResourceSplitByCount);
REAL(cuStreamCopyAttributes);
REAL(cuStreamCopyAttributes_ptsz);
REAL(cuStreamAddCallback);
REAL(cuStreamAddCallback_ptsz);
REAL(cuEventElapsedTime);
REAL(cuEventElapsedTime_v2);
REAL(cuModuleLoad);
REAL(cuLibraryLoadFromFile);
REAL(cuModuleEnumerateFunctions);
REAL(cuLibraryEnumerateKernels);
REAL(cuOccupancyMaxPotentialClusterSize);
REAL(cuOccupancyMaxActiveClusters);
REAL(cuGraphAddKernelNode);
REAL(cuGraphKernelNodeGetParams);
REAL(cuGraphKernelNodeSetParams);
REAL(cuGraphExecKernelNodeSetParams);
REAL(cuGraphAddKernelNode_v2);
REAL(cuGraphKernelNodeGetParams_v2);
REAL(cuGraphKernelNodeSetParams_v2);
REAL(cuGraphExecKernelNodeSetParams_v2);
REAL(cuGraphMemcpyNodeGetParams);
REAL(cuGraphMemcpyNodeSetParams);
REAL(cuGraphInstantiateWithParams);
REAL(cuGraphInstantiateWithParams_ptsz);
REAL(cuStreamGetCaptureInfo_v2);
REAL(cuStreamGetCaptureInfo_v2_ptsz);
REAL(cuStreamGetCaptureInfo_v3);
REAL(cuStreamGetCaptureInfo_v3_ptsz);
REAL(cuGraphExecUpdate_v2);
REAL(cuGraphNodeGetEnabled);
REAL(cuUserObjectCreate);
REAL(cuUserObjectRetain);
REAL(cuUserObjectRelease);
REAL(cuGraphRetainUserObject);
REAL(cuGraphReleaseUserObject);
REAL(cuLogsRegisterCallback);
REAL(cuDeviceRegisterAsyncNotification);
REAL_ONLY(cuStreamGetAttribute, (void *stream, int attribute, void *value));

#endif
