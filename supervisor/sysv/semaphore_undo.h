/*
 * semaphore_undo.h - what the end of a process does to System V semaphores (SEM_UNDO).
 */
#ifndef SUPERVISOR_SYSV_SEMAPHORE_UNDO_H
#define SUPERVISOR_SYSV_SEMAPHORE_UNDO_H

#include "supervisor/fd/fd.h"
#include "supervisor/target/process.h"

/* A set that is not in the dump, as others use it. */
struct sysv_other_set {
	int id;
	unsigned count; /* of semaphores */
};

/* Adds to each set of semaphores in the dump what the end of @p would do to them. Refuses what
 * several processes have in common, and what is to be done to @others: elements struct
 * sysv_other_set. */
int sysv_dump_undo(
	struct fd_dump *d, struct process *p, const struct buf *others, struct err *e);

/* Whether the end of any process of @tree does something to a set of @count semaphores: 1, 0,
 * or -1 on failure. */
int sysv_undo_in_tree(const struct tree *tree, int id, unsigned count, struct err *e);

#endif
