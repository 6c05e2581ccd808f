/*
 * restore/registers_restore.h - the last steps with one process of a restart: what is set from outside, and
 * registers.
 */
#ifndef SUPERVISOR_RESTORE_REGISTERS_RESTORE_H
#define SUPERVISOR_RESTORE_REGISTERS_RESTORE_H

#include "supervisor/state/new_process.h"

/* To RESTORE_REGISTERS, when all processes have come so far: the process stays stopped. */
int new_process_registers(struct new_process *np);

/* The limits of a process that becomes another user's in its third batch (restore_plan.h) have to be set
 * before, as root may lack the privilege to do so after; of all others at the end. */
bool new_process_changes_user(const struct new_process *np);

#endif
