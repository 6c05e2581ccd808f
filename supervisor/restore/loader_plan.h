/*
 * restore/loader_plan.h - all that the loader is to do in one new process, put together of what
 * memory/memory_restore.h and state/restore_plan.h add.
 */
#ifndef SUPERVISOR_RESTORE_LOADER_PLAN_H
#define SUPERVISOR_RESTORE_LOADER_PLAN_H

#include "supervisor/state/restore_plan.h"

/* Work it all out. */
int restore_plan_make(struct restore_plan *p, struct err *e);

void restore_plan_free(struct restore_plan *p);

#endif
