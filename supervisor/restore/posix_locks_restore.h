/*
 * restore/posix_locks_restore.h - POSIX locks (F_SETLK) of a new process.
 */
#ifndef SUPERVISOR_RESTORE_POSIX_LOCKS_RESTORE_H
#define SUPERVISOR_RESTORE_POSIX_LOCKS_RESTORE_H

#include "supervisor/state/new_process.h"

/* POSIX locks: when all that the restart opened has been closed (posix_locks_restore.c). */
int new_process_posix_locks(struct new_process *np);

#endif
