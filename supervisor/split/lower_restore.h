/*
 * split/lower_restore.h - the lower half of a process that comes back: none of it is in the
 * image, and it is made again from the records that the upper half holds.
 */
#ifndef SUPERVISOR_SPLIT_LOWER_RESTORE_H
#define SUPERVISOR_SPLIT_LOWER_RESTORE_H

#include "supervisor/state/restore_one.h"

/* Before anything is made: what it consists of is here, and the same. */
int restore_lower_check(const struct restore_one *one);

/* Whether the process has a lower half. */
bool restore_lower_wanted(const struct restore_one *one);

/* When all processes have all their threads, as those of lower halves take any ids that are
 * free: bring it up again, and have it make everything that the records hold; in a trial only
 * addresses of device memory are reserved, and no memory of the host is pinned. */
int restore_lower_run(struct restore_one *one);

/* The last part of that: device memory gets its contents (split/device_restore.c). */
int restore_device_memory(struct restore_one *one);

#endif
