/*
 * memory/memory_dump.h - the memory of a frozen process, into the image.
 */
#ifndef SUPERVISOR_MEMORY_MEMORY_DUMP_H
#define SUPERVISOR_MEMORY_MEMORY_DUMP_H

#include "supervisor/state/dump.h"

/* Regions and mapped files; adds to d->runs, d->copied_runs and d->shared_runs what is to be
 * stored. What is to be found later (memory/private_pages.h) is only listed. */
int dump_memory(struct dump *d, struct err *e);

/* When all has been saved: protect the pages against being written to unseen from now on. */
void dump_protect(struct dump *d);

#endif
