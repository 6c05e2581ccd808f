/*
 * mpi_ranks.c - what a member's own program says, then how rank 0 decides and how the others hear of it.
 */
#include "supervisor/job/mpi_ranks.h"

#include <time.h>

#include "supervisor/job/this_process.h"

#define SECOND_NS 1000000000ull

/* The loop has other things to do. */
#define SLICE_NS (20 * 1000 * 1000ull)

/* For ranks that live and have not begun: with Open MPI's async_mpi_init they may still. And for those of other machines
 * that do not answer. A rank that never calls MPI_Init makes the others wait for so long. */
#define COME_NS (2 * SECOND_NS)

/* For a rank 0 that has begun: it decides soon after it has initialised MPI, as the others have. */
#define DECIDE_NS (60 * SECOND_NS)

#define COUNT_MAX 0x7fff /* of which the double has as many digits */

int mpi_ranks_begin(struct job *job, pid_t program, struct err *e)
{
	struct job_member *self = &job->self;
	pid_t former = job->mpi.program;

	/* Beside another one, as where a program starts a job of its own. */
	if (former && former != program && process_start_time(former))
		self->mpi_refused = true;
	else
		job->mpi = (typeof(job->mpi)){.program = program};
	if (job->mpi.program == program)
		self->mpi_begun++;
	self->mpi_refused |= self->mpi_begun >= COUNT_MAX;
	return job_write_self(job, e);
}

static enum mpi_ranks verdict_of(const struct job_member *zero, unsigned begun)
{
	if (zero->mpi_verdict >> 1 < begun)
		return MPI_RANKS_LATER;
	return zero->mpi_verdict == (begun << 1 | 1) ? MPI_RANKS_ALL : MPI_RANKS_NOT_ALL;
}

/* Whether it is time to give up since the program has asked. */
static bool has_waited(const struct job *job, uint64_t limit_ns)
{
	return clock_ns(CLOCK_MONOTONIC) - job->mpi.asked_ns >= limit_ns;
}

/* ---- rank 0 ---- */

static enum mpi_ranks look_at(const struct job *job, int rank, job_probe *probe)
{
	unsigned begun = job->self.mpi_begun;
	struct job_member m;

	if (job_member_of(job->dir, rank, &m) || m.size != job->size || m.mpi_refused ||
		m.mpi_begun > begun)
		return MPI_RANKS_NOT_ALL;
	if (m.mpi_begun < begun || (m.life == MEMBER_UNSURE && !probe(&m)))
		return MPI_RANKS_LATER;
	return MPI_RANKS_ALL;
}

/* For as long as a slice, from where the last one has ended. */
static enum mpi_ranks look_at_all(struct job *job, job_probe *probe)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + SLICE_NS;
	enum mpi_ranks found = MPI_RANKS_ALL;

	if (job->self.mpi_refused)
		return MPI_RANKS_NOT_ALL;
	while (found == MPI_RANKS_ALL && job->mpi.looked + 1 < job->size) {
		if (clock_ns(CLOCK_MONOTONIC) >= end)
			return MPI_RANKS_LATER;
		found = look_at(job, job->mpi.looked + 1, probe);
		job->mpi.looked += found == MPI_RANKS_ALL;
	}
	return found == MPI_RANKS_LATER && has_waited(job, COME_NS) ? MPI_RANKS_NOT_ALL : found;
}

static enum mpi_ranks decide(struct job *job, job_probe *probe)
{
	struct job_member *self = &job->self;
	enum mpi_ranks found = verdict_of(self, self->mpi_begun);
	unsigned former = self->mpi_verdict;

	if (found == MPI_RANKS_LATER)
		found = look_at_all(job, probe);
	if (found == MPI_RANKS_LATER)
		return found;
	self->mpi_verdict = self->mpi_begun << 1 | (found == MPI_RANKS_ALL);
	/* Nobody is told before it is written. */
	if (!job_write_self(job, NULL))
		return found;
	self->mpi_verdict = former;
	return has_waited(job, DECIDE_NS) ? MPI_RANKS_NOT_ALL : MPI_RANKS_LATER;
}

/* ---- the others ---- */

/* Rank 0 has begun before it looks at us: so if it begins behind this it finds that we have refused; else we see, when
 * asked again, that it has begun. */
static enum mpi_ranks refuse(struct job *job)
{
	if (job->self.mpi_refused)
		return MPI_RANKS_NOT_ALL;
	job->self.mpi_refused = true;
	(void)job_write_self(job, NULL);
	return MPI_RANKS_LATER;
}

/* A file that a rank 0 of an earlier job has left may say anything. */
static enum mpi_ranks hear_verdict(struct job *job, job_probe *probe)
{
	unsigned begun = job->self.mpi_begun;
	struct job_member zero;
	enum mpi_ranks verdict;

	if (job_member_of(job->dir, 0, &zero) || zero.size != job->size)
		return MPI_RANKS_NOT_ALL;
	verdict = verdict_of(&zero, begun);
	if (verdict == MPI_RANKS_ALL && zero.life == MEMBER_UNSURE && !probe(&zero))
		verdict = MPI_RANKS_LATER;
	if (verdict != MPI_RANKS_LATER)
		return verdict;
	return has_waited(job, zero.mpi_begun < begun ? COME_NS : DECIDE_NS) ? refuse(job)
									     : verdict;
}

enum mpi_ranks mpi_ranks_ask(struct job *job, pid_t program, job_probe *probe)
{
	if (program != job->mpi.program)
		return MPI_RANKS_NOT_ALL;
	if (!job->mpi.asked_ns)
		job->mpi.asked_ns = clock_ns(CLOCK_MONOTONIC);
	return job->rank ? hear_verdict(job, probe) : decide(job, probe);
}
