/*
 * run/fork_snapshot.h - checkpoints that let the program run on while its memory is written,
 * from copies of its processes (target/process_copy.h).
 */
#ifndef SUPERVISOR_RUN_FORK_SNAPSHOT_H
#define SUPERVISOR_RUN_FORK_SNAPSHOT_H

#include "supervisor/state/dump.h"

/* When d->runs and d->copied_runs are known: make d->copy if it is @wanted and worth the while, and
 * takes no more than the *room bytes that there are; *room is what is left. Otherwise d->copied_runs is
 * added to d->runs; when a copy cannot be had, a notice tells why. */
int fork_snapshot_make(struct dump *d, bool wanted, uint64_t *room, const struct tree *tree,
	pid_t reaper, struct err *e);

/* When d->device_runs is known: the same for device memory, by a copy on the device, d->device_snapshot. */
void fork_snapshot_copy_devices(struct dump *d, bool wanted);

/* When d->copied_runs has been written, or could not be: whether that was from a copy that has
 * been whole all the time. @failed: it could not be, as @e says. Ends the copy. */
int fork_snapshot_end(struct dump *d, bool failed, struct err *e);

#endif
