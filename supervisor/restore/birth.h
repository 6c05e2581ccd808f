/*
 * restore/birth.h - the first part of a restart: from the process that spawn_restored() makes
 * to all of the tree, with the open files that they share, in their sessions and groups, each
 * about to execute its program's file. What is done in the new processes; who makes whom is
 * restore/tree_births.c.
 */
#ifndef SUPERVISOR_RESTORE_BIRTH_H
#define SUPERVISOR_RESTORE_BIRTH_H

#include <linux/sched.h>

#include "supervisor/restore/child_before_exec.h"
#include "supervisor/tree/birth_order.h"

/* In memory that the supervisor and all new processes share, where system calls of theirs find
 * their arguments. */
struct birth_page {
	struct clone_args clone;
	pid_t id;
	char terminal_path[16];
	int terminal[]; /* by process and zombie: the descriptor of its terminal; -1: none */
};

struct birth {
	const struct checkpoint *c;
	struct fd_restore_options fd_options; /* the caller's to fill before birth_main() */
	struct birth_order order;
	struct restore_child *children; /* by process of the checkpoint */
	struct buf ids;                 /* pid_t, ordered: all that the tree needs */
	int error_pipe[2];              /* a struct err comes out of [0] when one fails */
	struct birth_page *page;
	size_t page_size;

	struct fd_restore *fds; /* in the new processes */
};

/* Before the first process is made. Fails where the tree cannot be made again. */
int birth_init(struct birth *b, const struct checkpoint *c, struct err *e);
void birth_free(struct birth *b);

/* One of the tree's ids that something else has here; 0: all are free. */
pid_t birth_id_in_use(const struct birth *b);

/* Whether @id is one that a process, thread, group or session of the tree has. */
bool birth_needs(const struct birth *b, pid_t id);

/* What the first process runs; for spawn_restored(). Then it stands still (birth_call.h). */
void birth_main(void *arg);

/* What each process that lives on, or its agent, runs: it executes the program's file, or
 * stands still where it must not (birth_order.h). */
void birth_become(struct birth *b, size_t node);

/* And each that has ended: it ends. */
void birth_die(struct birth *b, size_t node);

/* After one has ended before its time, when all others have been killed: why. Returns -1. The
 * remedy is ERR_ID_TAKEN when an id has been taken since birth_id_in_use(). */
int birth_error(struct birth *b, struct err *e);

#endif
