/*
 * run/copies.h - checkpoints that let the program run on while its memory is written, from
 * copies of its processes (target/copy.h).
 */
#ifndef SUPERVISOR_RUN_COPIES_H
#define SUPERVISOR_RUN_COPIES_H

#include "supervisor/state/dump.h"

/* When d->runs and d->copied_runs are known: make d->copy if it is @wanted and worth
 * the while. Otherwise
 * d->copied_runs is added to d->runs; when a copy cannot be had, a notice tells why. */
int copies_make(
	struct dump *d, bool wanted, const struct tree *tree, pid_t reaper, struct err *e);

/* When d->copied_runs has been written, or could not be: whether that was from a copy that has
 * been whole all the time. @failed: it could not be, as @e says. Ends the copy. */
int copies_end(struct dump *d, bool failed, struct err *e);

#endif
