/*
 * semaphore_undo.h - what the end of a process does to System V semaphores (SEM_UNDO).
 */
#ifndef SUPERVISOR_SYSV_SEMAPHORE_UNDO_H
#define SUPERVISOR_SYSV_SEMAPHORE_UNDO_H

#include <sys/types.h>
#include <time.h>

#include "supervisor/fd/fd.h"
#include "supervisor/target/process.h"

/* A set that is not in the dump, as others use it, or may. */
struct sysv_other_set {
	int id;
	unsigned count;     /* of semaphores */
	uid_t uid, creator; /* its owner's, and that of who made it */
	time_t operated;    /* when somebody last did (semop); 0: never */
};

/* Adds to each set of semaphores in the dump what the end of @p would do to them. Refuses what
 * several processes have in common, what is to be done to @others (elements struct
 * sysv_other_set), and what cannot be known, as @p may no longer operate on a set. */
int sysv_dump_undo(
	struct fd_dump *d, struct process *p, const struct buf *others, struct err *e);

/* Whether the end of any process of @tree does something to @set: 1, 0, or -1 on failure, and where that
 * cannot be known. */
int sysv_undo_in_tree(const struct tree *tree, const struct sysv_other_set *set, struct err *e);

#endif
