/*
 * memfd_seals.h - memfds that were sealed with F_SEAL_FUTURE_WRITE when they had been mapped: only
 * mappings made before the seal may be written to.
 */
#ifndef SUPERVISOR_RESTORE_MEMFD_SEALS_H
#define SUPERVISOR_RESTORE_MEMFD_SEALS_H

#include "lib/util.h"
#include "supervisor/state/new_process.h"

/* Before the processes map anything, and close what they have mapped: take descriptors of such memfds
 * into @seals. In a trial there are none. */
int late_seals_take(
	struct buf *seals, const struct new_process *processes, size_t count, struct err *e);

/* When all have mapped it. */
int late_seals_set(const struct buf *seals, struct err *e);

void late_seals_free(struct buf *seals);
#define cleanup_late_seals __attribute__((cleanup(late_seals_free)))

#endif
