/*
 * memory.h - what the driver knows of memory: ranges of addresses, ordinary memory of the
 * process at the addresses that the program sees.
 */
#ifndef T_SIM_MEMORY_H
#define T_SIM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#define GRANULE (2ul << 20)
#define UNIT    512ul

enum range_kind {
	RESERVED,  /* addresses */
	MAPPED,    /* in there */
	ALLOCATED, /* cuMemAlloc */
	POOLED,    /* cuMemAllocAsync */
	MANAGED,
	PINNED,     /* cuMemHostAlloc */
	REGISTERED, /* cuMemHostRegister */
	EXTERNAL,   /* cuExternalMemoryGetMappedBuffer */
};

struct range {
	uint64_t start, size; /* as it was asked for */
	enum range_kind kind;
	uint64_t accessible; /* to devices: a bit each */
	unsigned flags;
	int read_mostly, preferred; /* advice; preferred: a device, plus one */
	unsigned attached;          /* flags */
	void *stream;
	uint64_t id;
	void *context;
	struct memory *memory; /* MAPPED */
	struct pool *pool;     /* POOLED */
	struct range *next;
};

/* All under one lock. */
void ranges_lock(void);
void ranges_unlock(void);
/* What @address lies in, of that kind; NULL: nothing. */
struct range *range_find(uint64_t address, enum range_kind kind);
/* An allocation, or what is mapped or registered. */
struct range *range_memory(uint64_t address);
struct range *range_add(uint64_t start, uint64_t size, enum range_kind kind);
void range_drop(struct range *range);

/* New memory of @size bytes; NULL: no more. range_free() also gives it back. */
struct range *range_new(uint64_t size, enum range_kind kind);
void range_free(struct range *range);

/* What was allocated or registered with it goes with @context. */
void ranges_drop_context(void *context);
/* pool.c. Before the range is freed. */
void pool_left(struct range *range);

/* Physical memory that is in use, and that there is. */
bool memory_take(uint64_t size);
void memory_give(uint64_t size);

/* Ends the process unless all of [address, address + size) is memory that the device reaches.
 */
void memory_check(uint64_t address, uint64_t size, const char *function);

/* Device memory that was not asked for as such: variables of modules. */
void memory_adopt(uint64_t address, uint64_t size, enum range_kind kind);
void memory_forget(uint64_t address, enum range_kind kind);

#endif
