/*
 * restart_barrier.c - what rank 0 does, then what the others do, then what both share.
 */
#include "supervisor/job/restart_barrier_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ckpt/hash.h"
#include "lib/util.h"
#include "supervisor/job/reach_member.h"
#include "supervisor/job/restart_namespaces.h"
#include "supervisor/control/control_client.h"
#include "supervisor/control/control_protocol.h"
#include "supervisor/control/control_socket.h"

#define GO     "go"
#define BACK   "back"
#define END    "end"
#define FAILED "failed "

/* How long ranks may come one after the other, and the end may take. */
#define ARRIVAL_NS 60000000000ull
#define END_NS     5000000000ull
#define TICK_MS    50

/* A signal that ends us has come: they are blocked, and stay so to be seen. */
static bool is_interrupted(void)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
	sigset_t set;

	(void)sigpending(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (sigismember(&set, signals[i]) == 1)
			return true;
	return false;
}

static int check_interrupted(struct err *e)
{
	return is_interrupted() ? err_set(e, 0, "a signal has ended the restart") : 0;
}

/* ---- rank 0 ---- */

static const char *check_arrival(struct restart_barrier *g, const struct control_request *r)
{
	if (r->rank <= 0 || r->size != size_of(g) || r->rank >= r->size)
		err_set(&g->problem, 0,
			"ranks of two jobs have been started: of one with %d ranks and one "
			"with %d",
			size_of(g), r->size);
	else if (strcmp(r->from, g->from))
		err_set(&g->problem, 0,
			"the ranks restart from different checkpoints: rank 0 from %s, rank %d "
			"from %s",
			g->from, r->rank, r->from);
	else if (g->wires[r->rank].fd >= 0)
		err_set(&g->problem, 0, "two processes have rank %d", r->rank);
	else
		return NULL;
	return g->problem.msg;
}

static void answer_arrival(void *arg, const struct control_request *request, struct buf *text)
{
	struct restart_barrier *g = arg;

	if (request->kind != CONTROL_ARRIVED)
		buf_printf(text, "error the job is being restarted\n");
	else if (!g->problem.msg[0] && !check_arrival(g, request))
		g->wires[request->rank].fd = fcntl(request->fd, F_DUPFD_CLOEXEC, 3);
	else
		/* It hears so in its turn. */
		buf_printf(text, END "\n");
}

static int missing_rank(const struct restart_barrier *g)
{
	for (int rank = 1; rank < size_of(g); rank++)
		if (g->wires[rank].fd < 0)
			return rank;
	return 0;
}

static int say_missing(const struct restart_barrier *g, struct err *e)
{
	cleanup_buf struct buf members = {0};

	if (!job_living_members(g->s->job->dir, &members, e))
		err_set(e, 0,
			"rank %d does not reach rank 0, on %s (--interface chooses the "
			"network)",
			missing_rank(g), g->s->job->self.host);
	return err_prefix(e, "not all ranks have joined the restart");
}

static int await_arrivals(struct restart_barrier *g, struct err *e)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + ARRIVAL_NS;

	while (missing_rank(g)) {
		g->serve(g->s, TICK_MS, answer_arrival, g);
		if (g->problem.msg[0]) {
			*e = g->problem;
			return -1;
		}
		if (check_interrupted(e))
			return -1;
		if (clock_ns(CLOCK_MONOTONIC) > deadline)
			return say_missing(g, e);
	}
	return 0;
}

static void tell_all(struct restart_barrier *g, const char *word)
{
	for (int rank = 1; rank < size_of(g); rank++)
		if (g->wires[rank].fd >= 0)
			(void)wire_say(&g->wires[rank], word); /* missed when it is heard */
}

static int take_line(struct restart_barrier *g, int rank, char *line, struct err *e)
{
	if (!strcmp(line, BACK)) {
		g->back[rank] = true;
		return 0;
	}
	if (restart_namespaces_hear(g, rank, line))
		return 0;
	control_unescape(line);
	return err_set(e, 0, "rank %d: %s", rank,
		strncmp(line, FAILED, strlen(FAILED)) ? "what it said was not understood"
						      : line + strlen(FAILED));
}

static int take_lines(struct restart_barrier *g, int rank, struct err *e)
{
	int r = 1;

	while (!g->back[rank] && r > 0) {
		cleanup_free char *line = NULL;

		r = wire_take_line(&g->wires[rank], &line);
		if (r > 0 && take_line(g, rank, line, e))
			return -1;
	}
	return r < 0 ? err_set(e, 0,
			       "rank %d: a message from it is too long, or failed "
			       "authentication",
			       rank)
		     : 0;
}

/* All that it has said: ids may be many lines. */
static int hear_rank(struct restart_barrier *g, int rank, struct err *e)
{
	struct wire *w = &g->wires[rank];
	size_t had;
	int ended;

	do {
		had = w->in.len;
		ended = wire_receive(w);
		had = w->in.len - had;
		if (take_lines(g, rank, e))
			return -1;
	} while (had && !g->back[rank]);
	return ended && !g->back[rank] ? err_set(e, 0,
						 "rank %d: its trecr-restart has ended, or "
						 "cannot be reached any "
						 "more",
						 rank)
				       : 0;
}

int barrier_await_ranks(struct restart_barrier *g,
	bool (*has_come)(const struct restart_barrier *g, int rank), struct err *e)
{
	for (int rank = 1; rank < size_of(g);) {
		if (has_come(g, rank)) {
			rank++;
			continue;
		}
		for (int other = 1; other < size_of(g); other++)
			if (!g->back[other] && hear_rank(g, other, e))
				return -1;
		if (check_interrupted(e))
			return -1;
		if (!has_come(g, rank))
			g->serve(g->s, TICK_MS / 10, answer_arrival, g);
	}
	return 0;
}

void barrier_pass_on(struct restart_barrier *g)
{
	if (g->s->job->port)
		g->serve(g->s, 0, answer_arrival, g);
}

static bool is_back(const struct restart_barrier *g, int rank)
{
	return g->back[rank];
}

/* Lines to other machines go through the port, which is served by us. */
static void flush_wires(struct restart_barrier *g, uint64_t limit_ns)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + limit_ns;
	bool open = true;

	while (open && clock_ns(CLOCK_MONOTONIC) < deadline) {
		open = false;
		g->serve(g->s, TICK_MS / 10, answer_arrival, g);
		for (int rank = 1; rank < size_of(g); rank++) {
			if (g->wires[rank].fd >= 0 && wire_receive(&g->wires[rank]))
				wire_close(&g->wires[rank]);
			open |= g->wires[rank].fd >= 0;
		}
	}
}

/* ---- the others ---- */

static int connect_to_rank_0(struct restart_barrier *g, struct wire *w, struct err *e)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + ARRIVAL_NS;
	struct job_member *m = &g->rank_0;
	pid_t supervisor;

	while (job_member_of(g->s->job->dir, 0, m) ||
		reach_member(m, control_connect, w, &supervisor, e)) {
		if (check_interrupted(e))
			return -1;
		g->told = job_is_given_up(g->s->job);
		if (g->told)
			return err_set(e, 0, "rank 0 has given up");
		if (clock_ns(CLOCK_MONOTONIC) > deadline) {
			if (job_member_of(g->s->job->dir, 0, m))
				(void)say_missing(g, e);
			g->told = !job_may_complain(g->s->job->dir);
			return -1;
		}
		sleep_ns(TICK_MS * 1000000);
	}
	return 0;
}

/* Rank 0 says why the restart does not continue, or rank 1 if rank 0 has gone without a word. @r is the
 * result of wire_take_line(). Rank 0 may give up before it has read that this rank has come, and this rank
 * may have come after rank 0 noted that it gives up. */
int barrier_not_told(struct restart_barrier *g, int r, const char *line, struct err *e)
{
	g->told = (r > 0 ? !strcmp(line, END) : rank_of(g) != 1) ||
		  job_is_given_up(g->s->job) || job_is_given_up_by(g->s->job, &g->rank_0);
	return err_set(
		e, 0, "%s", r > 0 ? line : "rank 0 has ended, or cannot be reached any more");
}

int barrier_hear_rank_0(struct restart_barrier *g, char **line, struct err *e)
{
	struct wire *w = &g->wires[0];
	struct pollfd fd = {.fd = w->fd, .events = POLLIN};
	int r;

	while (!(r = wire_take_line(w, line))) {
		if (check_interrupted(e))
			return -1;
		if (poll(&fd, 1, 4 * TICK_MS) > 0 && wire_receive(w)) {
			r = wire_take_line(w, line);
			break;
		}
	}
	return r > 0 ? 0 : barrier_not_told(g, r, NULL, e);
}

/* What rank 0 says next is "go". */
static int await_go(struct restart_barrier *g, struct err *e)
{
	cleanup_free char *line = NULL;

	if (barrier_hear_rank_0(g, &line, e))
		return -1;
	return strcmp(line, GO) ? barrier_not_told(g, 1, line, e) : 0;
}

static int come_to_rank_0(struct restart_barrier *g, struct err *e)
{
	struct wire *w = &g->wires[0];
	cleanup_free char *line =
		xasprintf("arrived %d %d %s", rank_of(g), size_of(g), g->from);

	if (connect_to_rank_0(g, w, e))
		return -1;
	/* If it does not get there, that shows when the answer is waited for. */
	(void)wire_say(w, line);
	return await_go(g, e);
}

/* ---- both ---- */

static void free_barrier(struct restart_barrier *g)
{
	for (int i = 0; i < size_of(g); i++)
		wire_close(&g->wires[i]);
	free(g->wires);
	free(g->back);
	restart_namespaces_free(g);
	free(g);
}

void restart_barrier_end(struct restart_barrier *g)
{
	if (!g->over && !rank_of(g)) {
		job_note_given_up(g->s->job);
		tell_all(g, END);
		flush_wires(g, END_NS / 5);
	}
	free_barrier(g);
}

struct restart_barrier *restart_barrier_begin(struct supervisor *s, const char *from,
	serve_requests *serve, bool *silent, struct err *e)
{
	struct restart_barrier *g = xcalloc(1, sizeof(*g));
	int failed;

	*g = (struct restart_barrier){.s = s, .from = from, .serve = serve};
	g->wires = xcalloc(size_of(g), sizeof(*g->wires));
	g->back = xcalloc(size_of(g), sizeof(*g->back));
	restart_namespaces_init(g);
	for (int i = 0; i < size_of(g); i++)
		g->wires[i].fd = -1;
	failed = rank_of(g) ? come_to_rank_0(g, e) : await_arrivals(g, e);
	if (!failed) {
		if (!rank_of(g))
			tell_all(g, GO);
		return g;
	}
	*silent = g->told;
	restart_barrier_end(g);
	return NULL;
}

/* Rank 0's supervisor is another process for each restart. */
const char *restart_barrier_word(struct restart_barrier *g, struct err *e)
{
	cleanup_free char *text = NULL;
	struct job_member m = g->s->job->self;

	if (rank_of(g) && job_member_of(g->s->job->dir, 0, &m)) {
		err_set(e, 0, "rank 0 has ended, or cannot be reached any more");
		return NULL;
	}
	text = xasprintf("%s %d %llu", m.machine, m.supervisor, m.start_time);
	snprintf(g->word, sizeof(g->word), "%016llx",
		(unsigned long long)hash64(text, strlen(text)));
	return g->word;
}

int restart_barrier_wait(void *arg, struct err *e)
{
	struct restart_barrier *g = arg;

	if (!rank_of(g)) {
		if (barrier_await_ranks(g, is_back, e))
			return -1;
		tell_all(g, GO);
		/* So that they hear of it: the port has nobody else to serve it yet. */
		if (g->s->job->port)
			flush_wires(g, END_NS);
	} else if (wire_say(&g->wires[0], BACK)) {
		g->told = rank_of(g) != 1;
		return err_set(e, 0, "rank 0 has ended, or cannot be reached any more");
	} else if (await_go(g, e)) {
		return -1;
	}
	wire_close(&g->wires[0]);
	g->over = true;
	return 0;
}

static int look_at_rank_0(struct restart_barrier *g, struct err *e)
{
	struct wire *w = &g->wires[0];
	int ended = wire_receive(w);
	cleanup_free char *line = NULL;
	int r = wire_take_line(w, &line);

	return r || ended ? barrier_not_told(g, r, line, e) : 0;
}

int restart_barrier_look(void *arg, struct err *e)
{
	struct restart_barrier *g = arg;

	if (check_interrupted(e))
		return -1;
	if (rank_of(g))
		return look_at_rank_0(g, e);
	g->serve(g->s, 0, answer_arrival, g);
	for (int rank = 1; rank < size_of(g); rank++)
		if (!g->back[rank] && hear_rank(g, rank, e))
			return -1;
	return 0;
}

/* Rank 0 says it, if it is still there. */
static bool leave_it_to_rank_0(struct restart_barrier *g, const struct err *e)
{
	cleanup_buf struct buf text = {0};
	struct err ignored = ERR_INIT;

	buf_printf(&text, FAILED);
	control_escape(&text, e->msg);
	buf_grow(&text, 1);
	if (wire_say(&g->wires[0], text.data))
		return false;
	(void)await_go(g, &ignored);
	return g->told;
}

bool restart_barrier_failed(struct restart_barrier *g, struct err *e)
{
	if (g->over)
		return false;
	if (rank_of(g))
		return g->told || leave_it_to_rank_0(g, e);
	return false;
}
