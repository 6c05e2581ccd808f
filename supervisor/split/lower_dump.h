/*
 * split/lower_dump.h - the note about a process's lower half.
 */
#ifndef SUPERVISOR_SPLIT_LOWER_DUMP_H
#define SUPERVISOR_SPLIT_LOWER_DUMP_H

#include "supervisor/state/dump.h"

/* What its lower half is made of, if it has one; behind dump_memory(). */
int dump_lower(struct dump *d, struct err *e);

#endif
