/*
 * member_files.h - who belongs to a job: one supervisor for each rank that a launcher started,
 * in one directory of checkpoints.
 *
 *	DIR/ranks/RANK	held (flock) by the supervisor of this rank while it lives; lines that
 *			tell about it, and how it is reached
 *
 * The nodes of a job share DIR. Where their file system keeps locks to each node, a member of
 * another node is known to live by its answer. Each file has the secret of its member, and is
 * readable by nobody else (wire.h).
 */
#ifndef SUPERVISOR_JOB_MEMBER_FILES_H
#define SUPERVISOR_JOB_MEMBER_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/err.h"
#include "lib/util.h"
#include "supervisor/job/addresses.h"
#include "supervisor/job/wire.h"

#define JOB_SIZE_MAX 4096

enum member_life {
	MEMBER_DEAD,
	MEMBER_UNSURE, /* of another machine, and not locked as seen from here */
	MEMBER_LIVES,
};

struct job_member {
	enum member_life life;
	int rank, size;
	pid_t supervisor;
	char host[65];
	unsigned keep;
	unsigned interval_s; /* of its periodic checkpoints, 0: none */
	char from[40];       /* the checkpoint that it was restarted from; "-": none */
	/* Its pid namespace, by the id of the machine's boot: within it, the process id and the
	 * start time name it. */
	char machine[64];
	unsigned long long start_time;
	unsigned mpi_begun, mpi_verdict; /* mpi_ranks.h */
	bool mpi_refused;
	int local; /* how many ranks its launcher has started on its node, 0: not known */
	int port;  /* at its addresses; 0: it is not reached from other machines */
	struct addresses addresses;
	uint8_t secret[WIRE_KEY];
};

struct job {
	char *dir; /* absolute */
	int rank, size;
	int fd; /* of its file; the lock goes when it is closed */
	struct job_member self;
	struct member_port *port; /* NULL: no other machines */
	struct turns *turns;      /* of rank 0 */
	struct {
		pid_t program; /* the last that has begun to initialise MPI, 0: none */
		int looked; /* of rank 0: so many other ranks have been found to have the stub */
		uint64_t asked_ns; /* CLOCK_MONOTONIC: first asked since then, 0: not yet */
	} mpi;                     /* mpi_ranks.c */
	bool signal_served; /* by the last checkpoint: a signal had come before the freeze */
};

/* Asks whether a member that is not known to live does. */
typedef bool job_probe(const struct job_member *m);

/* Become the member of the job in @dir, which is made if need be, that @self describes (what
 * tells about this process is filled in). NULL on failure, and when such a member lives. */
struct job *job_join(
	const char *dir, const struct job_member *self, job_probe *probe, struct err *e);

/* What job->self says of MPI has changed. The text stays as long as it was, so there is no moment at which it is not
 * complete. */
int job_write_self(const struct job *job, struct err *e);

/* The program has ended: the file becomes empty. */
void job_leave(struct job *job);

/* The members of the job in @dir, all of which live as far as can be seen: fails, and says
 * which one does not. Struct job_member, by rank. */
int job_living_members(const char *dir, struct buf *members, struct err *e);

/* Member @rank, if it lives as far as can be seen. */
int job_member_of(const char *dir, int rank, struct job_member *m);

/* Whether @m runs in the pid namespace that we are in. */
bool job_member_is_here(const struct job_member *m);

/* Of several that are refused for the same reason at about the same time, one is to say so. */
bool job_may_complain(const char *dir);

/* Rank 0 has told why all ranks give up their restart, also ranks that it does not reach. */
void job_note_given_up(const struct job *job);
/* Whether it has, since @job's member came. */
bool job_is_given_up(const struct job *job);
/* Whether the rank 0 that has was @m, also where @job's member came later. */
bool job_is_given_up_by(const struct job *job, const struct job_member *m);

#endif
