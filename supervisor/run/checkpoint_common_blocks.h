/*
 * checkpoint_common_blocks.h - which processes of a tree may have blocks in common that a checkpoint stores once.
 */
#ifndef SUPERVISOR_RUN_CHECKPOINT_COMMON_BLOCKS_H
#define SUPERVISOR_RUN_CHECKPOINT_COMMON_BLOCKS_H

#include "supervisor/run/checkpoint_work.h"

/* Whether others may find blocks of process @i, whose memory has been listed: it has enough of it. */
bool checkpoint_may_be_peer(const struct checkpoint_work *w, size_t i);

/* When it is known how much memory each has, and before any is written: w->roles, and w->peers if there are
 * such processes. A restart has @besides descriptors for other things than open files of the program. */
void checkpoint_begin_peers(struct checkpoint_work *w, uint64_t besides);

#endif
