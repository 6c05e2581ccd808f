/*
 * restore/newborn_main.h - the first part of a restart: from the process that spawn_restored() makes
 * to all of the tree, with the open files that they share, in their sessions and groups, each
 * about to execute its program's file. What is done in the new processes; who makes whom is
 * restore/make_tree.c.
 */
#ifndef SUPERVISOR_RESTORE_NEWBORN_MAIN_H
#define SUPERVISOR_RESTORE_NEWBORN_MAIN_H

#include <linux/sched.h>

#include "supervisor/restore/child_before_exec.h"
#include "supervisor/tree/creation_order.h"

/* In memory that the supervisor and all new processes share, where system calls of theirs find
 * their arguments. */
struct creation_page {
	struct clone_args clone;
	pid_t id;
	char terminal_path[16];
	int terminal[]; /* by process and zombie: the descriptor of its terminal; -1: none */
};

struct creation {
	const struct checkpoint *c;
	struct fd_restore_options fd_options; /* the caller's to fill before creation_main() */
	struct creation_order order;
	struct restore_child *children; /* by process of the checkpoint */
	struct buf ids;                 /* pid_t, ordered: all that the tree needs */
	int error_pipe[2];              /* a struct err comes out of [0] when one fails */
	struct creation_page *page;
	size_t page_size; /* bytes mapped: behind it is struct restart_fds of each process */

	struct fd_restore *fds; /* in the new processes */
};

/* Before the first process is made. Fails where the tree cannot be made again. */
int creation_init(struct creation *creation, const struct checkpoint *c, struct err *e);
void creation_free(struct creation *creation);

/* One of the tree's ids that something else has here; 0: all are free. */
pid_t creation_id_in_use(const struct creation *creation);

/* Whether a process, thread, group or session of the tree has the id @id. */
bool creation_needs(const struct creation *creation, pid_t id);

/* What the first process runs; for spawn_restored(). Then it stands still (newborn_call.h). */
void creation_main(void *arg);

/* What each process that lives on, or its proxy, runs: it executes the program's file, or
 * stands still where it must not (creation_order.h). */
void creation_run_process(struct creation *creation, size_t node);

/* And each that has ended: it ends. */
void creation_run_zombie(struct creation *creation, size_t node);

/* After one has ended before its time, when all others have been killed: why. Returns -1. The
 * remedy is ERR_ID_TAKEN when an id has been taken since creation_id_in_use(). */
int creation_error(struct creation *creation, struct err *e);

#endif
