/*
 * memory/trial_borrow.h - memory of a process that a trial makes, beside its program.
 */
#ifndef SUPERVISOR_MEMORY_TRIAL_BORROW_H
#define SUPERVISOR_MEMORY_TRIAL_BORROW_H

#include "supervisor/state/restore_plan.h"

/* In a trial: memory gets its contents as far as can be without taking any (trial_borrow.c). */
void restore_plan_borrow(struct restore_plan *p);

#endif
