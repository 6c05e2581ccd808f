/*
 * checkpoint_memory.h - the memory of a checkpoint: which there is, and its contents.
 */
#ifndef SUPERVISOR_RUN_CHECKPOINT_MEMORY_H
#define SUPERVISOR_RUN_CHECKPOINT_MEMORY_H

#include "supervisor/run/checkpoint_work.h"

/* With the program frozen: what memory each process has, and copies of it, if it is to run on
 * while they are written. */
int checkpoint_list_memory(struct checkpoint_work *w);

/* With the program frozen: the contents of all memory without a copy. */
int checkpoint_write_memory(struct checkpoint_work *w);

/* Right before the thaw: copies on devices belong to no process of the tree any more. */
void checkpoint_keep_devices(struct checkpoint_work *w);

/* End the copies of device memory that there still are. */
void checkpoint_drop_devices(struct checkpoint_work *w);

/* The contents of the copies, while the program runs. Ends them. */
int checkpoint_write_copies(struct checkpoint_work *w);

#endif
