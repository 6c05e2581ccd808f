/*
 * tree/freeze_private.h - the parts of a freeze (freeze.h): find and attach, stop, and stop a
 * process that has a lower half.
 *
 * Functions return -1 with the error set, or 0; a thread or process that ends meanwhile is no
 * error.
 */
#ifndef SUPERVISOR_TREE_FREEZE_PRIVATE_H
#define SUPERVISOR_TREE_FREEZE_PRIVATE_H

#include "supervisor/tree/freeze.h"

struct freezer {
	const struct freeze_target *target;
	struct tree *tree;
	bool found_new; /* in this pass */
};

/* ---- seize.c ---- */

/* NULL: @p has no such thread, as far as is known. */
struct thread *freezer_find_thread(struct process *p, pid_t tid);

/* Is @tid still there, and more than a zombie? */
bool freezer_task_alive(pid_t pid, pid_t tid);

/* Add to the tree what is not yet there, without attaching to it; or take it out again. */
struct process *freezer_add_process(struct freezer *f, pid_t pid, pid_t parent);
void freezer_drop_process(struct tree *tree, size_t i);

/* Whether process @pid, a child of the supervisor's, is one that it had before, and none of the tree. */
bool freezer_is_former_child(const struct freeze_target *target, pid_t pid);

/* Attach to thread @tid, which runs on. 1: it has ended. */
int freezer_attach(struct freezer *f, struct process *p, pid_t tid, struct err *e);

/* Attach to what is new, and ask it to stop: threads of @p, its children, and processes whose
 * parents have ended. The ids of all threads that it was seen to have come to lie in *tids, the caller's to free in any case;
 * children are looked for among theirs. */
int freezer_seize_threads(
	struct freezer *f, struct process *p, pid_t **tids, size_t *tid_count, struct err *e);
int freezer_add_children(struct freezer *f, struct process *p, const pid_t *tids,
	size_t tid_count, struct err *e);
int freezer_add_orphans(struct freezer *f, struct err *e);

/* ---- stop_threads.c ---- */

/* A thread that was stopped is so no more when another of its process executes a program: it
 * has been killed, or it is the main thread, whose id the other one has got. */
int freezer_recheck(struct freezer *f, struct thread *t, struct err *e);

/* The same of all threads of @p that are not among @tids, those that it was seen to have: execve(2) has ended them,
 * and freeze_unblock() has waited for them while another thread was attached to. */
int freezer_recheck_missing(
	struct freezer *f, struct process *p, const pid_t *tids, size_t count, struct err *e);

/* Nothing from @t for a while: look what it waits for. Fails after the deadline. */
int freezer_nothing_heard(
	struct freezer *f, struct process *p, struct thread *t, struct err *e);

/* Bring one seized thread into a trap stop. Signals on their way are let through, as they
 * would have been a moment earlier. */
int freezer_stop_thread(struct freezer *f, struct process *p, struct thread *t, struct err *e);

/* ---- vfork_wait.c ---- */

/* If @t waits for a child in vfork(2): let that run until it no longer does. */
int freezer_end_vfork(struct freezer *f, const struct thread *t, struct err *e);

/* ---- stop_upper_half.c ---- */

/* Stop the threads of a process with a lower half where they are outside of it. */
int freezer_stop_above(struct freezer *f, struct process *p, struct err *e);

/* A stopped process's lower half is stopped with it, and cannot be asked for anything. -1. */
int freezer_refuse_stopped(const struct process *p, struct err *e);

#endif
