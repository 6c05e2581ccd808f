/*
 * split/lower_restore.h - the lower half of a process that comes back: none of it is in the
 * image, and it is made again from the records that the upper half holds.
 */
#ifndef SUPERVISOR_SPLIT_LOWER_RESTORE_H
#define SUPERVISOR_SPLIT_LOWER_RESTORE_H

#include "supervisor/state/new_process.h"

/* Before anything is made: what it consists of is here, and the same. */
int restore_lower_check(const struct new_process *np);

/* Whether the process has a lower half. */
bool restore_lower_wanted(const struct new_process *np);

/* Before that of any: which GPUs each of @count processes is to see (--gpu-map). */
int restore_lower_map_gpus(struct new_process *list, size_t count);
/* When all processes have all their threads, as threads of lower halves take any free
 * ids: bring it up again, and have it make everything that the records hold; in a trial only
 * addresses of device memory are reserved, and no memory of the host is pinned. */
int restore_lower_run(struct new_process *np);

/* When all processes have done that, the rest, of which some depends on others. */
int restore_lower_rest(struct new_process *np);

/* The last part of it: device memory gets its contents (split/device_restore.c). */
int restore_device_memory(struct new_process *np);

/* Whether a process has an MPI library in its lower half. Ranks whose process ids are of different namespaces
 * must not have System V memory in common: UCX takes the other one for dead (1.13, uct_ep_keepalive_check()). */
bool restore_lower_has_mpi(const struct checkpoint *c);

#endif
