/*
 * restart_barrier_private.h - the state of a restart's barrier, and what restart_barrier.c does for
 * restart_namespaces.c: waiting for lines of other ranks.
 */
#ifndef SUPERVISOR_JOB_RESTART_BARRIER_PRIVATE_H
#define SUPERVISOR_JOB_RESTART_BARRIER_PRIVATE_H

#include "supervisor/job/member_files.h"
#include "supervisor/job/namespace_groups.h"
#include "supervisor/job/restart_barrier.h"
#include "supervisor/job/wire.h"

struct restart_barrier {
	struct supervisor *s;
	const char *from;
	serve_requests *serve;
	struct wire *wires;       /* by rank; of other ranks than 0 that to rank 0 only */
	struct job_member rank_0; /* that the wire leads to, of other ranks than 0 */
	bool *back;               /* by rank */
	bool over;                /* all run, or rank 0 has told all to end */
	bool told;                /* rank 0 reports the failure, or has reported it */
	struct err problem;       /* with the members that have come */
	char word[17];            /* restart_barrier_word() */
	/* restart_namespaces.c */
	struct rank_wish *wishes;       /* by rank; of other ranks than 0 their own only */
	struct namespace_group *groups; /* by rank, of rank 0, when it has all wishes */
	struct proc_identity *
		firsts; /* by rank, of rank 0: of the namespace that it has made; pid 0: not yet, -1: none
				      * can be shared there */
	bool shares_known; /* the next is */
	struct shared_namespace shared;
};

static inline int rank_of(const struct restart_barrier *g)
{
	return g->s->job->rank;
}

static inline int size_of(const struct restart_barrier *g)
{
	return g->s->job->size;
}

/* Of rank 0: until @has_come says so of all other ranks; -1 when one of them has failed. */
int barrier_await_ranks(struct restart_barrier *g,
	bool (*has_come)(const struct restart_barrier *g, int rank), struct err *e);

/* Of rank 0: what has been said to ranks on other machines goes on its way now, and not when rank 0 waits for something. */
void barrier_pass_on(struct restart_barrier *g);

/* Of the others: the next line that rank 0 says, the caller's to free. */
int barrier_hear_rank_0(struct restart_barrier *g, char **line, struct err *e);
/* It (@r is 1) is not what rank 0 says when all is well; or there is none, and @r is what wire_take_line() has returned.
 * Returns -1. */
int barrier_not_told(struct restart_barrier *g, int r, const char *line, struct err *e);

#endif
