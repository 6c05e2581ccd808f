/*
 * restore/birth.h - the first part of a restart, in the new processes themselves: from the one
 * that spawn_restored() makes to all of the tree, with the open files that they share, in
 * their sessions and groups, each about to execute its program's file.
 */
#ifndef SUPERVISOR_RESTORE_BIRTH_H
#define SUPERVISOR_RESTORE_BIRTH_H

#include "supervisor/restore/child_before_exec.h"
#include "supervisor/tree/birth_order.h"

struct birth {
	const struct checkpoint *c;
	struct fd_restore_options fd_options; /* the caller's to fill before birth_main() */
	struct birth_order order;
	struct restore_child *children; /* by process of the checkpoint */
	struct buf ids;                 /* pid_t, ordered: all that the tree needs */
	int error_pipe[2];              /* a struct err comes out of [0] when one fails */
	struct birth_meeting *meeting;  /* in memory that all share */

	size_t followers; /* processes whose descriptors another one puts in place */

	/* In the new processes. */
	_Atomic uint32_t turn; /* 1: a process that shares this memory is at work */
	struct fd_restore *fds;
	pid_t *made; /* by node: the children that this process has made */
};

/* Before the first process is made. Fails where the tree cannot be made again. */
int birth_init(struct birth *b, const struct checkpoint *c, struct err *e);
void birth_free(struct birth *b);

/* One of the tree's ids that something else has here; 0: all are free. */
pid_t birth_id_in_use(const struct birth *b);

/* What the first process runs; for spawn_restored(). All but helpers and zombies end in an
 * execve(2). */
void birth_main(void *arg);

/* Whether all have been made and have come to where they wait for each other: a helper or
 * zombie that ends before that, or another that does so at any time, leaves the others waiting.
 */
bool birth_done(const struct birth *b);

/* After one has ended before its time, when all others have been killed: why. Returns -1. The
 * remedy is ERR_ID_TAKEN when an id has been taken since birth_id_in_use(). */
int birth_error(struct birth *b, struct err *e);

#endif
