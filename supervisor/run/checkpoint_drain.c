/*
 * checkpoint_drain.c - how many messages a rank has sent to whom goes to the coordinator of the job's checkpoint; how many
 * it is to have received comes back, and is written into the frozen program, whose lower half then looks for them.
 */
#include "supervisor/run/checkpoint_drain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "supervisor/job/checkpoint_part.h"
#include "supervisor/split/lower_half.h"
#include "supervisor/split/running_mpi.h"

/* Messages of one rank with itself. */
#define ALONE_LIMIT_NS 10000000000ull

static struct process *find_process(const struct checkpoint_work *w)
{
	for (size_t i = 0; i < w->tree.count; i++)
		if (w->tree.processes[i]->pid == w->mpi.pid)
			return w->tree.processes[i];
	return NULL;
}

/* ---- what has been sent ---- */

/* Of MPI_COMM_SELF, and where there are no others, nobody else need know. */
static int note_sent(struct checkpoint_work *w, size_t count, struct buf *text)
{
	const struct mpi_count *c = buf_at(&w->mpi.counts, struct mpi_count, count);
	bool own = c->number == MPI_NUMBER_SELF || !w->request->part;
	cleanup_free struct mpi_peer *peers = NULL;

	if (running_mpi_peers(&w->mpi, count, &peers, w->e))
		return -1;
	for (uint32_t i = 0; peers && i < c->size; i++) {
		if (!peers[i].sent)
			continue;
		if (own && running_mpi_set_due(&w->mpi, count, i, peers[i].sent, w->e))
			return -1;
		if (!own)
			buf_printf(text, PART_MESSAGES " %" PRIu64 " %d %" PRIu64 "\n",
				c->number, peers[i].world, peers[i].sent);
	}
	return 0;
}

static int say_sent(struct checkpoint_work *w)
{
	cleanup_buf struct buf text = {0};

	for (size_t i = 0; i < buf_count(&w->mpi.counts, struct mpi_count); i++)
		if (note_sent(w, i, &text))
			return -1;
	if (!w->request->part)
		return 0;
	buf_printf(&text, PART_SENT " %" PRIu32 "\n",
		w->mpi.pid ? w->mpi.messages.drain_round : 0);
	return part_say(w->request->part, text.data, text.len, w->e);
}

/* ---- what is due ---- */

static int set_due(struct checkpoint_work *w, size_t count, int rank, uint64_t due)
{
	const struct mpi_count *c = buf_at(&w->mpi.counts, struct mpi_count, count);
	cleanup_free struct mpi_peer *peers = NULL;

	if (running_mpi_peers(&w->mpi, count, &peers, w->e))
		return -1;
	for (uint32_t i = 0; peers && i < c->size; i++)
		if (peers[i].world == rank)
			return running_mpi_set_due(&w->mpi, count, i, due, w->e);
	return 0;
}

/* On a communicator that this rank has freed nothing can be received. */
static int take_due(struct checkpoint_work *w, const char *line)
{
	uint64_t number, due;
	int rank;

	if (sscanf(line, PART_DUE " %" SCNu64 " %d %" SCNu64, &number, &rank, &due) != 3)
		return err_set(w->e, 0, "'%s' was not understood", line);
	for (size_t i = 0; i < buf_count(&w->mpi.counts, struct mpi_count); i++)
		if (buf_at(&w->mpi.counts, struct mpi_count, i)->number == number)
			return set_due(w, i, rank, due);
	return 0;
}

enum answer {
	ANSWER_FAILED = -1,
	ANSWER_GO,
	ANSWER_SETTLE,
	ANSWER_TAKE,
};

static enum answer hear_answer(struct checkpoint_work *w)
{
	uint32_t drain_round;
	char line[128];

	for (;;) {
		if (checkpoint_given_up(w, w->e) ||
			part_hear(w->request->part, line, sizeof(line), w->e))
			return ANSWER_FAILED;
		if (!strcmp(line, PART_GO))
			return ANSWER_GO;
		if (!strcmp(line, PART_SETTLE))
			return ANSWER_SETTLE;
		if (sscanf(line, PART_TAKE " %" SCNu32, &drain_round) == 1)
			return running_mpi_set_drain_round(&w->mpi, drain_round, w->e)
				       ? ANSWER_FAILED
				       : ANSWER_TAKE;
		if (strcmp(line, PART_WAIT) && take_due(w, line))
			return ANSWER_FAILED;
	}
}

/* ---- looking for them ---- */

static int look_whether_wanted(void *arg, struct err *e)
{
	return checkpoint_given_up(arg, e);
}

/* What is under way of operations on windows others may have to complete, and it may be gigabytes. */
static int explain_windows(struct checkpoint_work *w)
{
	if (running_mpi_read(&w->mpi, NULL) || w->mpi.messages.windows == MPI_WINDOWS_COMPLETE)
		return -1;
	return err_set(w->e, 0,
		w->mpi.messages.windows == MPI_WINDOWS_AWAITED
			? "process %d waits for other ranks to complete operations on MPI "
			  "windows with it, which have not come in time, or have begun "
			  "operations that take longer (--drain-timeout gives them more)"
			: "operations of process %d on MPI windows are not complete in time "
			  "(--drain-timeout gives them more)",
		w->mpi.pid);
}

/* How long an order that was given up may take to end, and how often it is looked at. */
#define END_LIMIT_NS 100000000ull
#define END_LOOK_NS  1000000

/* The lower half's agent hears within milliseconds that it was given up; while threads run, it must not look at
 * requests. But what other ranks have to do for operations on windows may take any time, and that is all that it does
 * then. */
static void await_end(struct checkpoint_work *w)
{
	uint64_t limit = clock_ns(CLOCK_MONOTONIC) + END_LIMIT_NS;

	while (lower_is_busy(w->mpi.pid) && clock_ns(CLOCK_MONOTONIC) < limit &&
		!running_mpi_read(&w->mpi, NULL) &&
		w->mpi.messages.windows == MPI_WINDOWS_COMPLETE)
		nanosleep(&(struct timespec){.tv_nsec = END_LOOK_NS}, NULL);
}

/* The order knows how long others are waited for, a bit longer than here: nobody is left to give it up when this is
 * killed. */
#define LONGER_NS 2000000000ull

static int order_messages(struct checkpoint_work *w, struct process *p, bool take)
{
	static const struct lower_transfer none;
	uint64_t patience_ns = take ? w->request->drain_ns : ALONE_LIMIT_NS;
	uint64_t limit = clock_ns(CLOCK_MONOTONIC) + patience_ns;
	uint64_t devices_ns = p->lower->patience_ns;
	bool late;
	int r;

	p->lower->look = look_whether_wanted;
	p->lower->look_arg = w;
	p->lower->patience_ns = patience_ns + LONGER_NS;
	r = lower_order(p, LOWER_MESSAGES, &none, take, limit, w->e);
	p->lower->look = NULL;
	p->lower->patience_ns = devices_ns;
	if (!r)
		return 0;
	late = clock_ns(CLOCK_MONOTONIC) >= limit;
	r = late ? explain_windows(w) : r;
	await_end(w);
	return r;
}

static int query_messages(struct checkpoint_work *w, bool take)
{
	struct process *p = find_process(w);

	if (!p || !p->lower || p->lower->state != RECORDS_UP)
		return 0;
	return order_messages(w, p, take) || running_mpi_read(&w->mpi, w->e) ? -1 : 0;
}

static bool is_drained(const struct checkpoint_work *w)
{
	return !w->mpi.pid || !w->mpi.state.initialised || w->mpi.state.finalized ||
	       w->mpi.messages.drained;
}

static int say_drained(struct checkpoint_work *w)
{
	const struct mpi_wait *wait = &w->mpi.messages.wait;
	cleanup_free char *name =
		wait->call ? running_mpi_call_name(&w->mpi, wait->call) : xstrdup("-");
	cleanup_free char *line = xasprintf(PART_DRAINED " %d %u %d %s\n", is_drained(w),
		is_drained(w) ? 0 : w->mpi.messages.synchronous, wait->peer, name);

	return part_say(w->request->part, line, strlen(line), w->e);
}

static int drain_alone(struct checkpoint_work *w)
{
	uint64_t limit = clock_ns(CLOCK_MONOTONIC) + ALONE_LIMIT_NS;

	if (say_sent(w) ||
		running_mpi_set_drain_round(&w->mpi, w->mpi.messages.drain_round + 1, w->e))
		return -1;
	do {
		if (checkpoint_given_up(w, w->e) || query_messages(w, false))
			return -1;
		if (w->mpi.messages.synchronous && !is_drained(w))
			return err_with(w->e, ERR_TRY_AGAIN,
				"process %d has sent a message by MPI_Ssend that it has not "
				"asked for",
				w->mpi.pid);
		if (query_messages(w, true))
			return -1;
		if (!is_drained(w) && clock_ns(CLOCK_MONOTONIC) > limit)
			return err_set(w->e, 0,
				"messages of process %d to itself could not be received",
				w->mpi.pid);
	} while (!is_drained(w));
	return 0;
}

int checkpoint_drain(struct checkpoint_work *w)
{
	enum answer answer;

	if (running_mpi_read(&w->mpi, w->e))
		return -1;
	if (!w->request->part)
		return w->mpi.pid ? drain_alone(w) : 0;
	if (say_sent(w))
		return -1;
	while ((answer = hear_answer(w)) > ANSWER_GO)
		if (query_messages(w, answer == ANSWER_TAKE) || say_drained(w))
			return -1;
	return answer == ANSWER_GO ? 0 : -1;
}
