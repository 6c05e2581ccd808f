/*
 * memory/sysv_attach.h - System V objects as one new process knows them.
 */
#ifndef SUPERVISOR_MEMORY_SYSV_ATTACH_H
#define SUPERVISOR_MEMORY_SYSV_ATTACH_H

#include "supervisor/state/restore_plan.h"

/* System V segments, before anything else is mapped; and what they undo at the end. */
int restore_plan_segments(struct restore_plan *p, struct err *e);

/* Modes that keep a segment's owner from attaching it, when all processes have attached it. */
void restore_plan_segment_modes(struct restore_plan *p);

int restore_plan_undos(struct restore_plan *p, int32_t pid, struct err *e);

#endif
