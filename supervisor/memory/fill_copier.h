/*
 * memory/fill_copier.h - which memory of a new process the loader fills by its copier (loader/copier.h).
 */
#ifndef SUPERVISOR_MEMORY_FILL_COPIER_H
#define SUPERVISOR_MEMORY_FILL_COPIER_H

#include "supervisor/state/restore_plan.h"

/* Choose the regions: p->copied. What is inherited, and what is filled later, is known. */
void fill_copier_choose(struct restore_plan *p);

/* Where there are such, the batches that fill memory, of which p->fill_threads is the number beside the first, get
 * a copier, and the first a call that makes it: to be added before all others. */
void fill_copier_add(struct restore_plan *p);

#endif
