/*
 * device_copy.h - a copy of device memory, on the device, from which a checkpoint is written while the
 * program runs on (doc/gpu-memory.md).
 *
 * It is made while all threads of the upper half are stopped. From then on nothing of the
 * program's records is looked at: contexts that the copies go through are kept by their handles, and
 * the program does not destroy any before table->snapshot is 0 (stubs/cuda/snapshot_wait.c).
 */
#ifndef LOWER_CUDA_DEVICE_COPY_H
#define LOWER_CUDA_DEVICE_COPY_H

#include <stdint.h>

#include "shared/table.h"

/* Memory of each transfer's device at its address, which is in SNAPSHOT_WINDOW. It takes no more than
 * half of what is free. 0, or -1 by agent_fail(): then there is none. */
int snapshot_reserve(const struct lower_transfer *transfers, unsigned count);
int snapshot_has(uint64_t address, uint64_t size);
/* Copy what the transfers say to where their offsets say. The first such order is given when
 * the supervisor has borrowed table->snapshot_fd. */
int snapshot_copy(const struct lower_transfer *transfers, unsigned count);
/* Out of it, to @staging + offset; @register_staging is called first, in a context. */
int snapshot_read(const struct lower_transfer *transfers, unsigned count, char *staging,
	int (*register_staging)(void));
void snapshot_release(void);

/* While there is one: return when there is an order, and release it when nobody will give one
 * any more. 0. */
int snapshot_await_order(int order_fd);

#endif
