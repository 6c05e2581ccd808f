/*
 * restore/restore_stage.h - how far the processes of a restart have come: enum restore_stage
 * (state/new_process.h). restore.c takes all of them through the stages.
 */
#ifndef SUPERVISOR_RESTORE_RESTORE_STAGE_H
#define SUPERVISOR_RESTORE_RESTORE_STAGE_H

#include "supervisor/state/new_process.h"

/* @np has reached @stage, which must be the next one. Nothing else changes r->stage. */
void restore_advance(struct new_process *np, enum restore_stage stage);

/* Where it is, also where only the process itself knows yet (RESTORE_PLACED). */
enum restore_stage restore_stage_of(const struct new_process *np);

/* "mapped" */
const char *restore_stage_name(enum restore_stage stage);

#endif
