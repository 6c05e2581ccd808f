/*
 * cuda.h - the hand-written part of the stub for libcuda.so.1.
 *
 * No CUDA toolkit is needed to build it: what is used of the API's types is declared here.
 * body_NAME is what the exported entry calls, real_NAME crosses (stubs/gen/entries.c).
 */
#ifndef STUBS_CUDA_CUDA_H
#define STUBS_CUDA_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "stubs/library.h"

enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NOT_INITIALIZED = 3,
	CUDA_ERROR_NOT_FOUND = 500,
	CUDA_ERROR_NOT_SUPPORTED = 801,
};

#define CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM 2
#define CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND          1

#define CU_GRAPH_NODE_TYPE_HOST 3

/* What both versions of CUDA_HOST_NODE_PARAMS begin with. */
struct host_node {
	void *function;
	void *argument;
};

/* CUgraphNodeParams */
struct node_params {
	int type;
	int reserved0[3];
	union {
		struct host_node host;
		uint64_t words[29];
	} params;
	uint64_t reserved2;
};
_Static_assert(sizeof(struct node_params) == 256, "as in CUDA 12.2 and later");

extern STUB_HIDDEN struct crossing_library cuda_library;

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
int body_cuGraphAddNode(void **node, void *graph, void *const *dependencies, size_t count,
	struct node_params *params);
int body_cuGraphAddNode_v2(void **node, void *graph, void *const *dependencies, const void *edges,
	size_t count, struct node_params *params);
int body_cuGraphNodeSetParams(void *node, struct node_params *params);
int body_cuGraphExecNodeSetParams(void *graph, void *node, struct node_params *params);

#define REAL(name) extern STUB_HIDDEN __typeof__(body_##name) body_##name, real_##name
/* Of functions without a body of ours. */
#define REAL_ONLY(name, parameters) extern STUB_HIDDEN int real_##name parameters
REAL_ONLY(cuDriverGetVersion, (int *version));
REAL_ONLY(cuDeviceGetCount, (int *count));
REAL_ONLY(cuDeviceGet, (int *device, int ordinal));
REAL_ONLY(cuDeviceGetName, (char *name, int size, int device));
REAL_ONLY(cuDeviceGetUuid_v2, (void *uuid, int device));
REAL_ONLY(cuDeviceTotalMem_v2, (size_t *bytes, int device));

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
REAL(cuGraphExecNodeSetParams);

#endif
