/*
 * split/device_memory.h - device memory of a process: which there is, and its way to us and
 * back.
 *
 * What the program has allocated is in its records (shared/cuda/state.h); contents pass through
 * a staging buffer of the lower half, which is mapped here, too.
 */
#ifndef SUPERVISOR_SPLIT_DEVICE_MEMORY_H
#define SUPERVISOR_SPLIT_DEVICE_MEMORY_H

#include "lib/util.h"
#include "supervisor/split/lower_half.h"

/* Append the ranges whose contents belong into an image to @ranges. After a drain. */
int lower_device_ranges(struct process *p, struct buf *ranges, struct err *e);

/* For struct block_run: reads device memory, by way of the staging buffer. */
struct device_source;
struct device_source *device_source_new(struct process *p, const struct device_range *range);
int device_source_read(void *context, uint64_t address, void *data, size_t size, struct err *e);

#endif
