/*
 * mmu.h - device memory at addresses of our choosing.
 *
 * Every device has 1 TiB of GPU_WINDOW, whose addresses are given out here; physical memory
 * comes from the driver in extents of whole granules that are mapped there. The same calls in
 * the same order give the same addresses in every process, and what is in these tables is
 * enough to put memory back under all of them (mmu_remake).
 *
 * No libc, and no driver but what is handed in: the code runs in the upper half, where
 * it serves the program, and in the lower half, where it makes memory again. The tables are in
 * the records arena (shared/records.h), at the same address in both. Callers hold a lock.
 *
 * Results are the driver's (CUresult): 0, 2 for no memory, or what the driver said.
 */
#ifndef MMU_MMU_H
#define MMU_MMU_H

#include <stddef.h>
#include <stdint.h>

#include "shared/address_windows.h"

#define MMU_GRANULE      (2ul << 20) /* what the driver maps, and the size of its pages */
#define MMU_UNIT         512ul       /* the driver aligns its allocations so */
#define MMU_SMALL        (1ul << 20) /* larger ones get granules of their own, as the driver's */
#define MMU_DEVICE_SHIFT 40
#define MMU_DEVICE_SIZE  (1ul << MMU_DEVICE_SHIFT)
#define MMU_DEVICES      16
#define MMU_PINNED       16 /* stands for the host: its part is PINNED_WINDOW */
#define MMU_PARTS        17
#define MMU_GRANULES     ((uint32_t)(MMU_DEVICE_SIZE / MMU_GRANULE))

/* Behind the devices' parts: addresses that the program reserves for itself
 * (cuMemAddressReserve without an address). */
#define MMU_RESERVED      GPU_RESERVED
#define MMU_RESERVED_SIZE (ARRAYS_WINDOW - MMU_RESERVED)
_Static_assert(
	MMU_RESERVED == GPU_WINDOW + MMU_DEVICES * MMU_DEVICE_SIZE, "behind the devices");

#define MMU_NO_MEMORY 2

/* What is asked of the driver. All but memory() give a CUresult. @peers is a bit for each other
 * device that reaches the memory too. */
struct mmu_driver {
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

enum mmu_allocation_state {
	MMU_LIVE = 1,
	MMU_PENDING, /* the program has freed it, a stream may still be using it */
};

/* What the program has allocated. */
struct mmu_allocation {
	uint64_t address, size; /* as it was asked for */
	uint64_t id;            /* never used again for another one */
	uint32_t state;         /* enum mmu_allocation_state */
	uint32_t granules;      /* 0: in a slab */
	/* For its owner: */
	void *context, *pool;
	struct mmu_allocation *next; /* for the owner while it is pending */
	uint32_t class;              /* of its slab; mmu_class() */
	uint32_t device;
	uint32_t flags; /* its owner's */
	uint32_t reserved;
};

/* A granule cut into objects of one size. */
struct mmu_slab {
	uint64_t address;
	uint32_t class, object_size, count, used;
	uint32_t hint; /* words of the bitmap before this one are full */
	uint32_t listed;
	struct mmu_slab *next, *previous; /* of its class, with room */
	uint64_t *bitmap;
	struct mmu_allocation **objects;
};

enum mmu_granule_state {
	MMU_UNMAPPED, /* a free address */
	MMU_FREE,     /* memory that nobody has */
	MMU_USED,
};

#define MMU_NONE 0xffffffffu

struct mmu_granule {
	uint32_t state;  /* enum mmu_granule_state */
	uint32_t extent; /* when mapped: the granule at which its extent begins */
	uint32_t length; /* at that granule: granules in the extent */
	/* At the first and the last granule of a run of such in the same state, unless used. */
	uint32_t run;
	uint32_t next,
		previous; /* at the first: other runs of about that length, or MMU_NONE */
	uint64_t handle;  /* of the extent, at its first granule */
	struct mmu_allocation *allocation; /* when used: whose it is, unless a slab's */
	struct mmu_slab *slab;
};

#define MMU_BINS    80
#define MMU_CLASSES 128

struct mmu_device {
	uint32_t ready, number;
	uint32_t peers;
	uint32_t top;               /* granules from here on were never used */
	uint32_t used, free, cache; /* granules; free ones beyond `cache` are given back */
	uint32_t empty;             /* of those used, slabs without objects */
	uint32_t bins[2][MMU_BINS]; /* first runs; [MMU_UNMAPPED], [MMU_FREE] */
	uint64_t filled[2][(MMU_BINS + 63) / 64];
	struct mmu_slab *slabs[MMU_CLASSES]; /* with room */
	struct mmu_granule *granules;
};

struct mmu {
	uint64_t next_id;
	struct mmu_allocation *spare;              /* records to be used again */
	struct mmu_slab *spare_slabs[MMU_CLASSES]; /* the same */
	struct mmu_device devices[MMU_PARTS];
};

/* Once for a device, before all else: takes its addresses. @cache: bytes that may be kept when
 * nobody has them. */
int mmu_open(struct mmu *m, const struct mmu_driver *driver, uint32_t device, uint64_t cache);

/* 0, MMU_NO_MEMORY or the driver's result. *@allocation is live, without owner. @size > 0. */
int mmu_alloc(struct mmu *m, const struct mmu_driver *driver, uint32_t device, uint64_t size,
	struct mmu_allocation **allocation);

/* Give it back. Nothing may be using it any more. @driver may be NULL where the driver has lost
 * all memory anyway. */
void mmu_free(
	struct mmu *m, const struct mmu_driver *driver, struct mmu_allocation *allocation);

/* The live allocation that @address lies in, or NULL. */
struct mmu_allocation *mmu_find(const struct mmu *m, uint64_t address);

/* A freed allocation of @class or @granules serves for @size too; it is live then, with a new
 * id. */
uint32_t mmu_class(uint64_t size);
uint32_t mmu_granules(uint64_t size);
void mmu_revive(struct mmu *m, struct mmu_allocation *allocation, uint64_t size);
/* How large an allocation could become where it is. */
uint64_t mmu_room(const struct mmu_allocation *allocation);

/* Return memory that nobody has to the driver, all that is possible. */
void mmu_trim(struct mmu *m, const struct mmu_driver *driver, uint32_t device);
/* Bytes that are mapped and that nobody has. */
uint64_t mmu_cached(const struct mmu *m, uint32_t device);

/* From now on the devices of @peers reach all memory of @device, and no others. */
int mmu_set_peers(
	struct mmu *m, const struct mmu_driver *driver, uint32_t device, uint32_t peers);

/* Call @each for every allocation that is live or pending, by address. It may free the one it
 * is given. */
void mmu_each(struct mmu *m, uint32_t device,
	void (*each)(void *argument, struct mmu_allocation *allocation), void *argument);

/*
 * In a process without any memory of its own under these tables: mmu_forget() drops what nobody
 * had, mmu_needed() says how much a device needs, and mmu_remake() puts that there.
 */
void mmu_forget(struct mmu *m, uint32_t device);
uint64_t mmu_needed(const struct mmu *m, uint32_t device);
int mmu_remake(struct mmu *m, const struct mmu_driver *driver, uint32_t device);

static inline uint64_t mmu_device_base(uint32_t device)
{
	return device == MMU_PINNED ? PINNED_WINDOW
				    : GPU_WINDOW + ((uint64_t)device << MMU_DEVICE_SHIFT);
}

/* Whose part @address lies in; MMU_PARTS: nobody's. */
static inline uint32_t mmu_part(uint64_t address)
{
	uint64_t device = (address - GPU_WINDOW) >> MMU_DEVICE_SHIFT;

	if (device < MMU_DEVICES)
		return device;
	return (address - PINNED_WINDOW) >> MMU_DEVICE_SHIFT ? MMU_PARTS : MMU_PINNED;
}

static inline uint64_t mmu_address(const struct mmu_device *d, uint32_t granule)
{
	return mmu_device_base(d->number) + granule * MMU_GRANULE;
}

#endif
