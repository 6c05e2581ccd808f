/*
 * undo.h - what the end of a process does to System V semaphores (SEM_UNDO).
 */
#ifndef SUPERVISOR_SYSV_UNDO_H
#define SUPERVISOR_SYSV_UNDO_H

#include "supervisor/fd/kinds.h"
#include "supervisor/process.h"

/* Adds to each set of semaphores in the dump what the end of @p would do to them. Refuses what
 * several processes have in common. */
int sysv_dump_undo(struct fd_dump *d, struct process *p, struct err *e);

#endif
