/*
 * split/device_memory.h - device memory of a process: which there is, and its way to us and
 * back.
 *
 * What the program has allocated is in its records (shared/cuda/cuda_state.h); contents pass through
 * a staging buffer of the lower half, which is mapped here, too.
 */
#ifndef SUPERVISOR_SPLIT_DEVICE_MEMORY_H
#define SUPERVISOR_SPLIT_DEVICE_MEMORY_H

#include "ckpt/image.h"
#include "lib/util.h"
#include "supervisor/split/lower_half.h"

/* Append the ranges whose contents belong into an image to @ranges. After a drain. */
int lower_device_ranges(struct process *p, struct buf *ranges, struct err *e);

/* For struct block_run: reads device memory, by way of the staging buffer, which is mapped. Sources
 * are made in the order of addresses, and before any is used. */
struct device_source;
struct device_source *device_source_new(struct process *p, const struct device_range *range);
int device_source_read(void *context, uint64_t address, void *data, size_t size, struct err *e);
/* Whether the device hashes it. */
bool device_source_has_hashes(const struct device_source *s);
int device_source_hash(void *context, uint64_t address, size_t count,
	uint8_t (*hashes)[IMAGE_HASH_SIZE], struct err *e);
void device_source_expect(void *context, uint64_t address, uint64_t size);

/* What split/device_snapshot.h does with sources that have hashes. */
const struct device_range *device_source_range(const struct device_source *s);
/* From now on it is read at @address, and the hashes of all its blocks at @hashes; 0: there are none. */
void device_source_move(struct device_source *s, uint64_t address, uint64_t hashes);
/* From now on its process, and the lower half with what has been expected, is @p. */
void device_source_of(struct device_source *s, struct process *p);

#endif
