/* graph_params.h - kinds of graph nodes and their parameters, as the driver has them: what is
 * used of cuda.h, which is not needed to build. */
#ifndef SHARED_CUDA_GRAPH_PARAMS_H
#define SHARED_CUDA_GRAPH_PARAMS_H

#include <stdint.h>

/* CUgraphNodeType */
enum graph_node_type {
	GRAPH_KERNEL,
	GRAPH_MEMCPY,
	GRAPH_MEMSET,
	GRAPH_HOST,
	GRAPH_CHILD,
	GRAPH_EMPTY,
	GRAPH_WAIT_EVENT,
	GRAPH_EVENT_RECORD,
	GRAPH_SIGNAL,
	GRAPH_WAIT,
	GRAPH_ALLOCATION,
	GRAPH_FREE,
	GRAPH_BATCH_MEM_OP,
	GRAPH_CONDITIONAL,
};

/* CUDA_KERNEL_NODE_PARAMS */
struct graph_kernel {
	void *function;
	uint32_t grid[3], block[3], shared;
	void **params, **extra;
	void *kernel, *context;
};
_Static_assert(sizeof(struct graph_kernel) == 72, "");

/* CUDA_MEMCPY3D */
struct graph_memcpy_side {
	uint64_t x, y, z, lod;
	uint32_t type, pad;
	uint64_t host, device;
	void *array, *reserved;
	uint64_t pitch, height;
};
struct graph_memcpy {
	struct graph_memcpy_side from, to;
	uint64_t width, height, depth;
};
_Static_assert(sizeof(struct graph_memcpy) == 200, "");

/* CUDA_MEMSET_NODE_PARAMS */
struct graph_memset {
	uint64_t address, pitch;
	uint32_t value, element;
	uint64_t width, height;
};
_Static_assert(sizeof(struct graph_memset) == 40, "");

/* CUDA_HOST_NODE_PARAMS */
struct graph_host {
	void *function, *argument;
};

/* CUDA_BATCH_MEM_OP_NODE_PARAMS */
#define GRAPH_MEM_OP 48 /* sizeof(CUstreamBatchMemOpParams) */
struct graph_batch {
	void *context;
	uint32_t count, pad;
	void *operations;
	uint32_t flags, pad2;
};
_Static_assert(sizeof(struct graph_batch) == 32, "");

/* CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, and ..._WAIT_NODE_PARAMS */
struct graph_semaphores {
	void **semaphores;
	void *operations;
	uint32_t count, pad;
};
_Static_assert(sizeof(struct graph_semaphores) == 24, "");

/* Parameters of any kind of node; semaphores are those of nodes that cannot be made again. */
union graph_params {
	struct graph_kernel kernel;
	struct graph_memcpy copy;
	struct graph_memset set;
	struct graph_host host;
	struct graph_batch batch;
	struct graph_semaphores semaphores;
	void *event;
};

/* CUDA_MEM_ALLOC_NODE_PARAMS */
struct graph_allocation {
	uint32_t kind, handle_types, location, device; /* CUmemPoolProps from here */
	uint64_t security, largest;
	uint16_t usage;
	uint8_t reserved[54]; /* to here */
	const struct {
		uint32_t location, device, flags;
	} * access;
	uint64_t access_count, size, address;
};
_Static_assert(sizeof(struct graph_allocation) == 120, "");

#endif
