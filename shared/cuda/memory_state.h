/*
 * memory_state.h - what is recorded of a process's memory, device memory and memory that devices
 * reach. In the records arena like all of cuda_state.h, where the stub (stubs/cuda/memory.h) writes
 * it and the agent (lower/cuda/memory_replay.c) reads it.
 */
#ifndef SHARED_CUDA_MEMORY_STATE_H
#define SHARED_CUDA_MEMORY_STATE_H

#include "devmem/devmem.h"
#include "shared/cuda/cuda_state.h"
#include "shared/share.h"

/* A memory pool of the program's, or a device's own. The handle is its address. */
struct memory_pool {
	void *real; /* the driver's default pool: for calls that are captured into a graph */
	uint32_t device;
	uint32_t destroyed;  /* lives on until the last of its memory is freed */
	uint32_t options[3]; /* how memory may be reused; CU_MEMPOOL_ATTR_REUSE_* */
	uint32_t allocations;
	uint64_t threshold, largest; /* as set; largest: 0 for no limit */
	uint64_t used, used_high;    /* bytes as asked for */
	uint64_t held, held_high;    /* with what is pending, in whole objects */
	uint64_t id;                 /* for struct share_handle */
	uint32_t handle_types;       /* how it may be exported */
	uint32_t imported;           /* it is another process's: nothing is allocated from it */
	struct memory_pool *next;
};

/* Memory freed in the order of a stream: it can be had again on that stream at once, and
 * elsewhere when the stream has come so far. */
struct memory_order {
	void *stream, *context; /* stream: as the program names it */
	uint32_t device;        /* of the memory */
	uint32_t count;
	void *event; /* the driver's; instead of the stream, which no longer exists or must not be asked
		      */
	struct devmem_allocation *small[DEVMEM_CLASSES], *large;
	struct memory_order *next;
};

/* cuMemHostRegister: the program's own memory. */
struct memory_registration {
	uint64_t address, size;
	void *context;
	uint32_t flags, reserved;
	struct memory_registration *next;
};

/* cuMemAdvise. */
struct memory_advice {
	uint64_t address, size;
	uint32_t advice;
	uint32_t with_location; /* it came by cuMemAdvise_v2 */
	uint64_t where;         /* a CUmemLocation, else a CUdevice */
	struct memory_advice *next;
};

#define POINTER_IS_MANAGED 8 /* CU_POINTER_ATTRIBUTE_IS_MANAGED */

/* cuMemAllocManaged. In the order of the calls. */
struct memory_managed {
	uint64_t address, size;
	void *context;
	uint32_t flags, device;
	struct memory_advice *advice; /* in the order of the calls */
	/* cuStreamAttachMemAsync, if attached_flags: to which stream, as the program names it,
	 * or by a default stream in which context. */
	void *stream, *attached_in;
	uint32_t attached_flags, reserved;
	uint64_t sequence; /* among all that is made in the driver (struct object) */
	struct memory_managed *next;
};

/* ---- cuMemAddressReserve and the like, by address ---- */

/* The driver (580) takes addresses in multiples of this, and uses what is left over of a
 * reservation for variables and whatever else it finds room for. Nothing is left over. */
#define MEMORY_STEP (32ul << 20)

struct memory_reservation {
	uint64_t address, size;
	uint64_t taken; /* from the driver: MEMORY_STEP */
	struct memory_reservation *next;
};

#define LOCATION_DEVICE 1 /* CU_MEM_LOCATION_TYPE_DEVICE */
#define READ_WRITE      3 /* CU_MEM_ACCESS_FLAGS_PROT_READWRITE */

#define HANDLE_TYPE_FILE 1 /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */

/* CUmemAllocationProp */
struct memory_properties {
	uint32_t type, handle_types;
	uint32_t location_type, location;
	uint64_t windows;
	uint8_t compression, rdma;
	uint16_t usage;
	uint8_t reserved[4];
};
_Static_assert(sizeof(struct memory_properties) == 32, "");

/* What cuMemCreate makes. The handle is its address. */
struct memory_physical {
	uint64_t real;
	uint64_t size, flags;
	struct memory_properties properties;
	uint32_t references; /* handles that the program has not released */
	uint32_t mappings;
	uint32_t foreign; /* not to be made again */
	uint32_t reserved;
	uint64_t id;              /* for struct share_handle */
	struct share_handle from; /* magic 0: it is ours, else another process's */
	struct memory_physical *next, *previous;
};

/* CUmemAccessDesc */
struct memory_access {
	uint32_t location_type, location;
	uint32_t flags;
};
_Static_assert(sizeof(struct memory_access) == 12, "");

#define MEMORY_ACCESSES 16

struct memory_mapping {
	uint64_t address, size, offset, flags;
	struct memory_physical *physical; /* NULL: of a handle that we do not know */
	uint32_t access_count, reserved;
	struct memory_access access[MEMORY_ACCESSES];
	struct memory_mapping *next;
};

/* Memory of another process that this one has opened (cuIpcOpenMemHandle, cuMemPoolImportPointer):
 * mapped in a reservation of ours at @start. */
struct memory_import {
	struct share_handle from;
	uint64_t address, size; /* as the program knows it */
	uint64_t start, mapped; /* whole pieces */
	uint64_t id;            /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
	void *context;
	struct memory_pool *pool; /* NULL: by cuIpcOpenMemHandle */
	uint32_t device, references;
	uint32_t access_count, reserved;
	struct memory_access access[2];
	struct memory_import *next;
};

struct memory_state {
	uint64_t lock;      /* FS base of the thread that holds it; 0: nobody */
	uint32_t captures;  /* streams being captured into graphs now */
	uint32_t rdma;      /* a bit a device: its memory can be given to other hardware */
	uint32_t shareable; /* the same: and to other processes, by a file descriptor */
	uint32_t shares;    /* not 0: it has the name that others may ask it by */
	uint8_t name[SHARE_NAME];
	struct devmem devmem;
	struct memory_pool *pools; /* a device's own come first, in no order */
	struct memory_pool *default_pools[DEVMEM_DEVICES], *current_pools[DEVMEM_DEVICES];
	struct memory_order *orders;
	uint64_t pending; /* allocations in them */
	struct memory_registration *registrations;
	struct memory_managed *managed;
	struct memory_reservation *reservations;
	struct memory_physical *physicals;
	struct memory_mapping *mappings;
	struct memory_import *imports;
	/* Records to be used again, by kind. */
	struct memory_pool *spare_pools;
	struct memory_order *spare_orders;
	struct memory_registration *spare_registrations;
	struct memory_managed *spare_managed;
	struct memory_advice *spare_advice;
	struct memory_reservation *spare_reservations;
	struct memory_physical *spare_physicals;
	struct memory_mapping *spare_mappings;
	struct memory_import *spare_imports;
	/* For CUDA_STATE->allocations: room for so many, made ahead. */
	struct allocation *list;
	uint64_t list_room, live;
};

/* NULL: the process has none. */
static inline struct memory_state *memory_state(void)
{
	return __atomic_load_n(&CUDA_STATE->memory, __ATOMIC_ACQUIRE);
}

#endif
