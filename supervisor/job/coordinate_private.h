/* coordinate_private.h - what the files that coordinate a checkpoint of a job share. */
#ifndef SUPERVISOR_JOB_COORDINATE_PRIVATE_H
#define SUPERVISOR_JOB_COORDINATE_PRIVATE_H

#include "ckpt/members.h"
#include "supervisor/job/coordinate.h"
#include "supervisor/job/quiesce.h"
#include "supervisor/job/wire.h"

/* The connection to a member. */
struct link {
	int rank;
	struct wire wire;
	pid_t supervisor; /* that can be woken up, 0: of another machine */
	bool there;       /* it has reached the stage that is waited for */
	struct buf counts,
		activities; /* struct quiesce_count, quiesce_activity: what it is about to have said */
	/* coordinate_drain.c */
	struct buf due; /* lines: how many messages others have sent it */
	uint32_t
		drain_round; /* the last checkpoint that it has completed operations on windows for */
	struct drain_progress {
		int drained;
		unsigned synchronous; /* sends that have not been matched */
		int peer;             /* that it waits for, -1: any */
		char call[48];        /* in which call, "-": in none */
	} progress;
};

struct coordination {
	const struct coordinate_request *request;
	struct err *e;
	struct wire turn; /* to who gave it, and waits for its end */
	struct link *links;
	size_t count;
	struct quiesce *quiesce;
	unsigned keep;
	struct store *store;
	int dirfd;
	uint64_t sequence;
	struct members members;
	bool again; /* the reason of the failure is gone in a moment, maybe */
};

/* The failure of a member, which said @text. -1. */
int coordinate_fail_for(struct coordination *c, const struct link *l, const char *text);

/* Say a line to a member, or to all. */
void coordinate_tell(struct link *l, const char *word);
void coordinate_tell_all(struct coordination *c, const char *word);

/* Until all members are at @stage. */
int coordinate_await(struct coordination *c, const char *stage, uint64_t deadline_ns);

/* ---- coordinate_drain.c ---- */

/* All are frozen: have what ranks have sent each other received. */
int drain_messages(struct coordination *c);

/* Lines of a member: how many messages it has sent to another one, that this is all, and how far it is. 0 or -1. */
int drain_note_sent(struct coordination *c, const struct link *l, const char *line);
int drain_note_round(struct link *l, const char *line);
int drain_note_progress(struct link *l, const char *line);

#endif
