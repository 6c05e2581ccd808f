/*
 * quiesce.h - when members that exchange messages may be stopped together (doc/decisions/mpi-quiescing.md).
 *
 * A rank must not be stopped where others need it to come to rest. So each member counts, for
 * each communicator, the collective calls that it has entered and those it has left. While it
 * is to come to rest it enters none beyond the *limit* that it was told, but parks in front of
 * it. At rest, all members of each communicator have entered as many and left them all; then
 * what is under way are messages between two ranks, which are received before a member is
 * saved.
 *
 * There is no MPI in here, nor time or connections: the coordinator (coordinate.c) reports what members
 * have told it, and asks what to do.
 */
#ifndef SUPERVISOR_JOB_QUIESCE_H
#define SUPERVISOR_JOB_QUIESCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"
#include "lib/util.h"

#define QUIESCE_ANY (-1)

enum quiesce_doing {
	QUIESCE_PARKED, /* in front of a collective call on `comm` that exceeds the limit */
	QUIESCE_WAITS,  /* for a message from, or taken by, the rank `peer`, or QUIESCE_ANY */
	QUIESCE_INSIDE, /* in a collective call on `comm` */
};

/* What a member has done on a communicator. The number is the same to all of its members, and
 * another one for each that there ever was. */
struct quiesce_count {
	uint64_t comm;
	uint64_t entered, left;
	uint32_t
		size; /* how many members it has; 0: any. Members that have freed it no longer report it */
};

/* What a thread of a member is at. */
struct quiesce_activity {
	enum quiesce_doing doing;
	uint64_t comm;
	int peer;
	char call[48]; /* its name, or "" */
};

/* What a member says: all its counts, also zeros. A thread that computes, or is about to call, is at
 * nothing. */
struct quiesce_report {
	const struct quiesce_activity *activities;
	size_t activity_count;
	uint64_t steps; /* another number when it has done anything since */
	const struct quiesce_count *counts;
	size_t count;
};

struct quiesce_limit {
	uint64_t comm, limit;
};

/* The one for @comm in @limits (struct quiesce_limit), or NULL; 0 where there is none. */
struct quiesce_limit *quiesce_find_limit(const struct buf *limits, uint64_t comm);
uint64_t quiesce_limit_of(const struct buf *limits, uint64_t comm);

struct quiesce;

/* @members are numbered from 0 on, by their rank. */
struct quiesce *quiesce_new(size_t members);
void quiesce_free(struct quiesce *r);

/* What @member said after it was told that it is to come to rest. */
void quiesce_heard(struct quiesce *r, size_t member, const struct quiesce_report *report);

enum quiesce_verdict {
	QUIESCE_WAIT,  /* nothing to be done until more is heard */
	QUIESCE_RAISE, /* tell the members the limits, which are higher now */
	QUIESCE_REACHED,
};

/*
 * To be asked when all members have reported since it was asked last. Members for which others
 * wait that stand still without having come to rest may continue.
 */
enum quiesce_verdict quiesce_decide(struct quiesce *r);

/* The limits as they are now; of a communicator that is not among them it is 0. Valid until
 * the next call on @r. */
const struct quiesce_limit *quiesce_limits(const struct quiesce *r, size_t *count);

/* Why they do not come to rest: which rank waits for which in which call. The caller frees it.
 */
char *quiesce_explain(const struct quiesce *r);

#endif
