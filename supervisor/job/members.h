/*
 * members.h - who belongs to a job: one supervisor for each rank that a launcher started, in
 *one directory of checkpoints.
 *
 *	DIR/ranks/RANK	held (flock) by the supervisor of this rank while it lives, with a line
 *			about it: "member RANK SIZE PID HOST KEEP FROM"
 *	DIR/ranks/turn	held by whoever takes a checkpoint of the job: one at a time
 */
#ifndef SUPERVISOR_JOB_MEMBERS_H
#define SUPERVISOR_JOB_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/err.h"
#include "lib/util.h"

#define JOB_SIZE_MAX 4096

struct job {
	char *dir; /* absolute */
	int rank, size;
	int fd; /* of its file; the lock goes when it is closed */
};

struct job_member {
	bool alive;
	int rank, size;
	pid_t supervisor;
	char host[65];
	unsigned keep;
	char from[40]; /* the checkpoint that it was restarted from; "-": none */
};

/* Become member @rank of the job in @dir, which is made if need be. NULL on failure, and when
 * such a member lives. */
struct job *job_join(
	const char *dir, int rank, int size, unsigned keep, const char *from, struct err *e);

/* The members of the job in @dir, all of which live on this machine: fails, and says which one
 * does not. */
int job_living_members(const char *dir, struct buf *members, struct err *e);

/* The same for a restart: waits a while until all have come, and compares what they were
 * restarted from. */
int job_await_members(const struct job *job, const char *from, struct err *e);

/* Wait for our turn to take a checkpoint, until @deadline_ns (0: for ever). Returns a
 * descriptor to be closed in the end, or -1. */
int job_take_turn(const char *dir, uint64_t deadline_ns, struct err *e);

#endif
