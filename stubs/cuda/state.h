/*
 * state.h - what is kept of the driver's state in a process: enough to make it again.
 *
 * In the records arena (lower/records.h): written by the stub, read by the lower half's agent,
 * by the supervisor and by trecr-inspect. Plain fixed-width structs. A handle of the program's is
 * the address of a struct object; the real one comes first, so that an entry point translates it
 * with one load.
 */
#ifndef STUBS_CUDA_STATE_H
#define STUBS_CUDA_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "loader/windows.h"

#define CUDA_STATE_MAGIC   0x6574617473647563 /* "cudstate" */
#define CUDA_STATE_VERSION 1
#define CUDA_DEVICES       64

/* Names of kinds for people: cuda_kind_name(). Append only: numbers are in images. */
enum cuda_kind {
	CUDA_CONTEXT = 1,
	CUDA_STREAM,
	CUDA_EVENT,
	CUDA_MODULE,
	CUDA_LIBRARY,
	CUDA_FUNCTION,
	CUDA_KERNEL,
	CUDA_POOL,
	CUDA_ARRAY,
	CUDA_TEXTURE,
	CUDA_SURFACE,
	CUDA_MEMORY_HANDLE,
	CUDA_GRAPH,
	CUDA_GRAPH_EXEC,
	CUDA_GRAPH_NODE,
	CUDA_OTHER,
	CUDA_KINDS,
};

/* struct object.flags */
#define CUDA_OBJECT_REAL 0x1u /* the program holds the driver's own handle */
/* Cannot be made again: while it lives, a checkpoint is refused. */
#define CUDA_OBJECT_LOST 0x2u

/* Anything with a handle. What it takes to make it again follows, as its kind says. */
struct object {
	void *real; /* the driver's handle in this process */
	uint32_t kind, flags;
	uint64_t sequence; /* in the order that objects were made in */
	uint64_t size;     /* of the whole record */
	struct object *parent;
	struct object *next, *previous; /* among the living, by sequence */
};

enum cuda_memory {
	CUDA_MEMORY_DEVICE = 1,
	CUDA_MEMORY_PINNED,     /* upper memory, registered with the driver */
	CUDA_MEMORY_MANAGED,
};

/* struct allocation.flags */
#define CUDA_ALLOCATION_SAVE 0x1u /* its contents belong into an image: [address, address + size) */

/* Memory that the program has allocated. */
struct allocation {
	uint64_t address, size;
	uint64_t mapped; /* bytes that the device can reach from address on: save and load that */
	uint32_t kind, flags;
	uint32_t device;
	uint32_t reserved;
	struct object *owner; /* context or pool */
	struct allocation *next, *previous;
};

struct cuda_device {
	uint8_t uuid[16];
	char name[96];
	uint64_t memory;
	int32_t major, minor;
};

/* At RECORDS_CUDA. */
struct cuda_state {
	uint64_t magic;
	uint32_t version;
	uint32_t lock; /* of the lists; held with signals blocked or inside a guarded body */
	uint32_t initialised; /* cuInit was called with success */
	int32_t driver_version;
	uint32_t device_count, reserved;
	struct cuda_device devices[CUDA_DEVICES];
	uint64_t sequence; /* of the last object */
	uint64_t alive[CUDA_KINDS];
	struct object *objects, *objects_end;
	struct allocation *allocations; /* true after a drain, neighbours as one; consecutive */
	uint64_t allocation_count;
	struct memory_state *memory; /* memory_state.h; NULL: none yet */
};

_Static_assert(sizeof(struct cuda_state) <= RECORDS_HEAP - RECORDS_CUDA, "");

#define CUDA_STATE ((struct cuda_state *)RECORDS_CUDA)

#endif
