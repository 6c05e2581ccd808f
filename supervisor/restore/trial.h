/*
 * restore/trial.h - try a restart while the program is still there, in a process of its own.
 */
#ifndef SUPERVISOR_RESTORE_TRIAL_H
#define SUPERVISOR_RESTORE_TRIAL_H

#include <stdint.h>

#include "supervisor/restore/restore.h"

/*
 * restore_try() of @c, whose program is frozen. Nothing is left of it when this returns,
 * whatever becomes of the process that it runs in; that one ends with the calling thread.
 * Given up, as RESTORE_LATE, at @deadline_ns (CLOCK_MONOTONIC, 0: never).
 */
enum restore_trial trial_run(const struct checkpoint *c, uint64_t deadline_ns, struct err *e);

#endif
