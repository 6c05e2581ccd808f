/*
 * split/device_snapshot.h - device memory of a process that is copied on the device while the
 * process is stopped, and read from that copy while it runs on (doc/gpu-memory.md).
 *
 * The counterpart of target/process_copy.h for device memory.
 */
#ifndef SUPERVISOR_SPLIT_DEVICE_SNAPSHOT_H
#define SUPERVISOR_SPLIT_DEVICE_SNAPSHOT_H

#include "lib/util.h"
#include "supervisor/target/process.h"

struct device_snapshot;

/* Copy what the struct block_run of @runs say, which have sources with hashes of @p
 * (split/device_memory.h): what is read of them then comes from the copy. NULL when it cannot be,
 * with the reason; then the sources are as they were. */
struct device_snapshot *device_snapshot_make(
	struct process *p, const struct buf *runs, struct err *e);

/* Before the process is let go, and its struct process freed: keep what belongs to its lower half. */
void device_snapshot_keep(struct device_snapshot *snapshot);

/* The id of its process, as that sees it. */
pid_t device_snapshot_vpid(const struct device_snapshot *snapshot);

/* Give the copy back; what is left of it goes with the process. NULL: nothing. */
void device_snapshot_end(struct device_snapshot *snapshot);

#endif
