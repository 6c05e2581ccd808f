/*
 * devmem.h - device memory at addresses of our choosing.
 *
 * Every device has 1 TiB of GPU_WINDOW, whose addresses are given out here; physical memory
 * comes from the driver in extents of whole granules that are mapped there. The same calls in
 * the same order give the same addresses in every process, and what is in these tables is
 * enough to put memory back under all of them (devmem_remake).
 *
 * No libc, and no driver but what is handed in: the code runs in the upper half, where
 * it serves the program, and in the lower half, where it makes memory again. The tables are in
 * the records arena (shared/records.h), at the same address in both. Callers hold a lock.
 *
 * Results are the driver's (CUresult): 0, 2 for no memory, or what the driver said.
 */
#ifndef DEVMEM_DEVMEM_H
#define DEVMEM_DEVMEM_H

#include <stddef.h>
#include <stdint.h>

#include "shared/address_windows.h"

#define DEVMEM_GRANULE      (2ul << 20) /* what the driver maps, and the size of its pages */
#define DEVMEM_UNIT         512ul       /* the driver aligns its allocations so */
#define DEVMEM_SMALL        (1ul << 20) /* larger ones get granules of their own, as the driver's */
#define DEVMEM_DEVICE_SHIFT 40
#define DEVMEM_DEVICE_SIZE  (1ul << DEVMEM_DEVICE_SHIFT)
#define DEVMEM_DEVICES      16
#define DEVMEM_PINNED       16 /* stands for the host: its part is PINNED_WINDOW */
#define DEVMEM_PARTS        17
#define DEVMEM_GRANULES     ((uint32_t)(DEVMEM_DEVICE_SIZE / DEVMEM_GRANULE))

/* Behind the devices' parts: addresses that the program reserves for itself
 * (cuMemAddressReserve without an address). */
#define DEVMEM_RESERVED      GPU_RESERVED
#define DEVMEM_RESERVED_SIZE (ARRAYS_WINDOW - DEVMEM_RESERVED)
_Static_assert(DEVMEM_RESERVED == GPU_WINDOW + DEVMEM_DEVICES * DEVMEM_DEVICE_SIZE,
	"behind the devices");

#define DEVMEM_NO_MEMORY 2

/* What is asked of the driver. All but memory() give a CUresult. @peers is a bit for each other
 * device that reaches the memory too. */
struct devmem_driver {
	int (*reserve)(uint64_t address, uint64_t size);
	/* *@handle means nothing here, and goes to map() and release() only. */
	int (*create)(uint64_t *handle, uint32_t device, uint64_t size);
	int (*map)(uint64_t address, uint64_t size, uint64_t handle);
	int (*access)(uint64_t address, uint64_t size, uint32_t device, uint32_t peers);
	int (*revoke)(uint64_t address, uint64_t size, uint32_t peer);
	int (*unmap)(uint64_t address, uint64_t size);
	int (*release)(uint64_t handle);
	/* Zeroed memory for the tables, never given back; NULL when there is none. */
	void *(*memory)(uint64_t size);
};

enum devmem_allocation_state {
	DEVMEM_LIVE = 1,
	DEVMEM_PENDING, /* the program has freed it, a stream may still be using it */
};

/* What the program has allocated. */
struct devmem_allocation {
	uint64_t address, size; /* as it was asked for */
	uint64_t id;            /* never used again for another one */
	uint32_t state;         /* enum devmem_allocation_state */
	uint32_t granules;      /* 0: in a slab */
	/* For its owner: */
	void *context, *pool;
	struct devmem_allocation *next; /* for the owner while it is pending */
	uint32_t class;                 /* of its slab; devmem_class() */
	uint32_t device;
	uint32_t flags; /* its owner's */
	uint32_t reserved;
};

/* A granule cut into objects of one size. */
struct devmem_slab {
	uint64_t address;
	uint32_t class, object_size, count, used;
	uint32_t hint; /* words of the bitmap before this one are full */
	uint32_t listed;
	struct devmem_slab *next, *previous; /* of its class, with room */
	uint64_t *bitmap;
	struct devmem_allocation **objects;
};

enum devmem_granule_state {
	DEVMEM_UNMAPPED, /* a free address */
	DEVMEM_FREE,     /* memory that nobody has */
	DEVMEM_USED,
};

#define DEVMEM_NONE 0xffffffffu

struct devmem_granule {
	uint32_t state;  /* enum devmem_granule_state */
	uint32_t extent; /* when mapped: the granule at which its extent begins */
	uint32_t length; /* at that granule: granules in the extent */
	/* At the first and the last granule of a run of such in the same state, unless used. */
	uint32_t run;
	uint32_t next,
		previous; /* at the first: other runs of about that length, or DEVMEM_NONE */
	uint64_t handle;  /* of the extent, at its first granule */
	struct devmem_allocation *allocation; /* when used: whose it is, unless a slab's */
	struct devmem_slab *slab;
};

#define DEVMEM_BINS    80
#define DEVMEM_CLASSES 128

struct devmem_device {
	uint32_t ready, number;
	uint32_t peers;
	uint32_t top;                  /* granules from here on were never used */
	uint32_t used, free, cache;    /* granules; free ones beyond `cache` are given back */
	uint32_t empty;                /* of those used, slabs without objects */
	uint32_t bins[2][DEVMEM_BINS]; /* first runs; [DEVMEM_UNMAPPED], [DEVMEM_FREE] */
	uint64_t filled[2][(DEVMEM_BINS + 63) / 64];
	struct devmem_slab *slabs[DEVMEM_CLASSES]; /* with room */
	struct devmem_granule *granules;
};

struct devmem {
	uint64_t next_id;
	struct devmem_allocation *spare;                 /* records to be used again */
	struct devmem_slab *spare_slabs[DEVMEM_CLASSES]; /* the same */
	struct devmem_device devices[DEVMEM_PARTS];
};

/* Once for a device, before all else: takes its addresses. @cache: bytes that may be kept when
 * nobody has them. */
int devmem_open(
	struct devmem *m, const struct devmem_driver *driver, uint32_t device, uint64_t cache);

/* 0, DEVMEM_NO_MEMORY or the driver's result. *@allocation is live, without owner. @size > 0. */
int devmem_alloc(struct devmem *m, const struct devmem_driver *driver, uint32_t device,
	uint64_t size, struct devmem_allocation **allocation);

/* Give it back. Nothing may be using it any more. @driver may be NULL where the driver has lost
 * all memory anyway. */
void devmem_free(struct devmem *m, const struct devmem_driver *driver,
	struct devmem_allocation *allocation);

/* The live allocation that @address lies in, or NULL. */
struct devmem_allocation *devmem_find(const struct devmem *m, uint64_t address);

/* A freed allocation of @class or @granules serves for @size too; it is live then, with a new
 * id. */
uint32_t devmem_class(uint64_t size);
uint32_t devmem_granules(uint64_t size);
void devmem_revive(struct devmem *m, struct devmem_allocation *allocation, uint64_t size);
/* How large an allocation could become where it is. */
uint64_t devmem_room(const struct devmem_allocation *allocation);

/* Return memory that nobody has to the driver, all that is possible. */
void devmem_trim(struct devmem *m, const struct devmem_driver *driver, uint32_t device);
/* Bytes that are mapped and that nobody has. */
uint64_t devmem_cached(const struct devmem *m, uint32_t device);

/* From now on the devices of @peers reach all memory of @device, and no others. */
int devmem_set_peers(
	struct devmem *m, const struct devmem_driver *driver, uint32_t device, uint32_t peers);

/* Call @each for every allocation that is live or pending, by address. It may free the one it
 * is given. */
void devmem_each(struct devmem *m, uint32_t device,
	void (*each)(void *argument, struct devmem_allocation *allocation), void *argument);

/*
 * In a process without any memory of its own under these tables: devmem_forget() drops what nobody
 * had, devmem_needed() says how much a device needs, and devmem_remake() puts that there.
 */
void devmem_forget(struct devmem *m, uint32_t device);
uint64_t devmem_needed(const struct devmem *m, uint32_t device);
int devmem_remake(struct devmem *m, const struct devmem_driver *driver, uint32_t device);

static inline uint64_t devmem_device_base(uint32_t device)
{
	return device == DEVMEM_PINNED ? PINNED_WINDOW
				       : GPU_WINDOW + ((uint64_t)device << DEVMEM_DEVICE_SHIFT);
}

/* Whose part @address lies in; DEVMEM_PARTS: nobody's. */
static inline uint32_t devmem_part(uint64_t address)
{
	uint64_t device = (address - GPU_WINDOW) >> DEVMEM_DEVICE_SHIFT;

	if (device < DEVMEM_DEVICES)
		return device;
	return (address - PINNED_WINDOW) >> DEVMEM_DEVICE_SHIFT ? DEVMEM_PARTS : DEVMEM_PINNED;
}

static inline uint64_t devmem_address(const struct devmem_device *d, uint32_t granule)
{
	return devmem_device_base(d->number) + granule * DEVMEM_GRANULE;
}

#endif
