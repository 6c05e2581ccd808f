/*
 * memory_kinds.h - CUmemAllocationProp, CUmemPoolProps and CUmemAccessDesc for memory on the first device.
 */
#ifndef T_SPLIT_MEMORY_KINDS_H
#define T_SPLIT_MEMORY_KINDS_H

#include <stdint.h>

static const struct {
	int type, handles, location, id;
	uint64_t rest[9];
} on_device = {.type = 1, .location = 1};

static const struct {
	int location, id, flags;
} reachable = {1, 0, 3};

#endif
