/*
 * checkpoint_quiesce.c - what a rank has counted goes to the coordinator of the job's checkpoint, in lines
 * (job/checkpoint_part.h); the limits that come back are written into the program.
 */
#include "supervisor/run/checkpoint_quiesce.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/job/checkpoint_part.h"
#include "supervisor/job/quiesce.h"
#include "supervisor/split/lower_half.h"
#include "supervisor/split/running_mpi.h"

/* Its threads wait for the library while the lower half completes what an earlier checkpoint has begun. */
static int check_idle(const struct running_mpi *m, struct err *e)
{
	if (!m->pid || !lower_is_busy(m->pid))
		return 0;
	return err_with(e, ERR_TRY_AGAIN,
		"the lower half of process %d is still at work for an earlier checkpoint, "
		"which was given up",
		m->pid);
}

/* The program may have begun to use MPI, and may have communicators that are new. */
static int look_at_program(struct checkpoint_work *w)
{
	struct running_mpi *m = &w->mpi;

	if ((!m->pid && running_mpi_find(m, w->s->root, w->e)) || check_idle(m, w->e) ||
		running_mpi_keep_gate_closed(m, w->e) || running_mpi_read(m, w->e) ||
		running_mpi_check(m, w->request->part != NULL, w->e))
		return -1;
	for (size_t i = 0; i < buf_count(&m->counts, struct mpi_count); i++) {
		const struct mpi_count *c = buf_at(&m->counts, struct mpi_count, i);
		uint64_t limit = quiesce_limit_of(&w->limits, c->number);

		if (c->number && c->limit != limit && running_mpi_set_limit(m, i, limit, w->e))
			return -1;
	}
	return 0;
}

/* ---- what it says ---- */

static void add_activity(const struct checkpoint_work *w, enum quiesce_doing doing,
	const struct mpi_count *c, uint64_t number, struct buf *text)
{
	cleanup_free char *name = running_mpi_call_name(&w->mpi, c->call);

	buf_printf(text, PART_ACTIVITY " %d %" PRIu64 " %d %s\n", doing, number, QUIESCE_ANY,
		name);
}

/* Calls that only some members of a communicator make, or others besides, may need any rank. */
static void add_activities(
	const struct checkpoint_work *w, const struct mpi_count *c, struct buf *text)
{
	bool own = c->number & MPI_NUMBER_OF_SOME && c->beyond; /* this rank's only */

	if (c->parked)
		add_activity(w, QUIESCE_PARKED, c, c->number, text);
	/* What it asks again and again may be another rank's to change. */
	if (c->parked && own)
		add_activity(w, QUIESCE_WAITS, c, MPI_NUMBER_WORLD, text);
	if (c->left >= c->entered)
		return;
	if (!own)
		add_activity(w, QUIESCE_INSIDE, c, c->number, text);
	if (c->number & MPI_NUMBER_OF_SOME || c->beyond)
		add_activity(w, QUIESCE_WAITS, c, MPI_NUMBER_WORLD, text);
}

static void add_wait(const struct checkpoint_work *w, uint64_t number, int peer, uint32_t call,
	struct buf *text)
{
	cleanup_free char *name = running_mpi_call_name(&w->mpi, call);

	buf_printf(text, PART_ACTIVITY " %d %" PRIu64 " %d %s\n", QUIESCE_WAITS, number, peer,
		name);
}

/* A rank that looks for a message again and again may wait for it, though in no call. */
static void add_waits(struct checkpoint_work *w, struct buf *text)
{
	struct running_mpi *m = &w->mpi;

	if (!m->pid)
		return;
	for (size_t i = 0; i < MPI_WAITS; i++)
		if (m->messages.waits[i].used)
			add_wait(w, m->messages.waits[i].number, m->messages.waits[i].peer,
				m->messages.waits[i].call, text);
	if (m->messages.polls != m->polls)
		add_wait(w, MPI_NUMBER_WORLD, QUIESCE_ANY, m->messages.poll_call, text);
	m->polls = m->messages.polls;
}

static uint64_t mix_hash(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * 0x100000001b3;
}

static int say_counts(struct checkpoint_work *w)
{
	cleanup_buf struct buf text = {0};
	uint64_t steps = 0;
	bool world = false;

	for (size_t i = 0; i < buf_count(&w->mpi.counts, struct mpi_count); i++) {
		const struct mpi_count *c = buf_at(&w->mpi.counts, struct mpi_count, i);

		if (!c->number || c->number == MPI_NUMBER_SELF)
			continue;
		world |= c->number == MPI_NUMBER_WORLD;
		buf_printf(&text, PART_COUNT " %" PRIu64 " %" PRIu64 " %" PRIu64 " %u\n",
			c->number, c->entered, c->left, c->members);
		add_activities(w, c, &text);
		steps = mix_hash(mix_hash(mix_hash(steps, c->number), c->entered), c->left);
	}
	if (w->mpi.pid)
		steps = mix_hash(steps, w->mpi.messages.steps);
	add_waits(w, &text);
	/* What uses no MPI, others may wait for in MPI_Init. */
	if (!world)
		buf_printf(&text, PART_COUNT " %d 0 0 0\n", MPI_NUMBER_WORLD);
	buf_printf(&text, PART_COUNTED " %" PRIu64 "\n", steps);
	return part_say(w->request->part, text.data, text.len, w->e);
}

/* ---- what it hears ---- */

static int take_limit(struct checkpoint_work *w, const char *line)
{
	struct quiesce_limit l, *known;

	if (sscanf(line, PART_LIMIT " %" SCNu64 " %" SCNu64, &l.comm, &l.limit) != 2)
		return err_set(w->e, 0, "'%s' was not understood", line);
	known = quiesce_find_limit(&w->limits, l.comm);
	if (known)
		known->limit = l.limit;
	else
		buf_push(&w->limits, struct quiesce_limit, &l);
	return 0;
}

/* 1: it is to look again; 0: all have come to rest. */
static int hear_limits(struct checkpoint_work *w)
{
	char line[64];

	for (;;) {
		if (checkpoint_given_up(w, w->e) ||
			part_hear(w->request->part, line, sizeof(line), w->e))
			return -1;
		if (!strcmp(line, PART_GO) || !strcmp(line, PART_LOOK))
			return !strcmp(line, PART_LOOK);
		if (strcmp(line, PART_WAIT) ? take_limit(w, line)
					    : running_mpi_keep_gate_closed(&w->mpi, w->e))
			return -1;
	}
}

int checkpoint_quiesce(struct checkpoint_work *w)
{
	int r = 1;

	if (!w->request->part)
		return running_mpi_find(&w->mpi, w->s->root, w->e) ||
				       running_mpi_read(&w->mpi, w->e) ||
				       running_mpi_check(&w->mpi, false, w->e)
			       ? -1
			       : 0;
	while (r == 1) {
		if (look_at_program(w) || say_counts(w))
			return -1;
		r = hear_limits(w);
	}
	return r;
}

/* A program that has heard nothing for long enters its call by itself, and a program without MPI may have begun to use
 * it. */
int checkpoint_quiesce_check(struct checkpoint_work *w)
{
	struct running_mpi *m = &w->mpi;

	if (!w->request->part)
		return 0;
	if ((!m->pid && running_mpi_find(m, w->s->root, w->e)) || running_mpi_read(m, w->e) ||
		running_mpi_check(m, true, w->e))
		return -1;
	for (size_t i = 0; i < buf_count(&m->counts, struct mpi_count); i++) {
		const struct mpi_count *c = buf_at(&m->counts, struct mpi_count, i);

		if (c->number && c->number != MPI_NUMBER_SELF &&
			(c->entered != c->left ||
				(!(c->number & MPI_NUMBER_OF_SOME) &&
					c->entered != quiesce_limit_of(&w->limits, c->number))))
			return err_with(w->e, ERR_TRY_AGAIN,
				"process %d did not stay in front of the collective call that "
				"it "
				"had come to",
				m->pid);
	}
	return 0;
}

void checkpoint_quiesce_end(struct checkpoint_work *w)
{
	running_mpi_open_gate(&w->mpi);
	running_mpi_free(&w->mpi);
	buf_free(&w->limits);
}
