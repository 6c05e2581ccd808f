/*
 * Members that exchange messages come to rest together (supervisor/job/quiesce.c): thousands of
 * programs of 2 to 5 ranks, made by chance, asked to come to rest at any moment. Reports and
 * limits are late, messages of different ranks overtake each other. Each time all come to rest
 * where all have made the same collective calls; then what is under way is put into queues,
 * which later receives read first, and the programs go on to their end. No message is lost,
 * doubled, or out of order. When a program cannot come to q, it is said who waits for whom.
 */
#include <stdlib.h>

#include "supervisor/job/quiesce.h"
#include "t/unit/tap.h"

#define RANKS    5
#define COMMS    4
#define OPS      60
#define MESSAGES 400
#define LONG     300 /* steps of a long computation */
#define PATIENCE 5000
#define LITTLE   150 /* for programs that cannot */

static uint64_t seed;
static unsigned named; /* checkpoints that were given up */

static unsigned chance(unsigned n)
{
	seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
	return (seed >> 11) % n;
}

/* ---- programs ---- */

enum kind {
	COMPUTE,
	SEND,
	SEND_SYNCHRONOUSLY, /* or a large message: it ends when it is received */
	RECEIVE,
	RECEIVE_ANY,
	/* Collective calls, by who waits for whom. */
	BARRIER,   /* all for all */
	BROADCAST, /* all for the root */
	REDUCE,    /* the root for all */
	FREE,      /* nobody, and the communicator is no more */
};

struct op {
	enum kind kind;
	unsigned steps; /* of a computation */
	int peer, tag;  /* a message; with RECEIVE_ANY the tag decides */
	int comm, root;
};

struct message {
	int from, to, tag;
	unsigned number; /* of the sender's to the receiver */
	unsigned delay;
	bool arrived, queued, received, taken;
};

struct rank {
	struct op ops[OPS];
	unsigned count, at, steps;
	bool sent; /* by the operation it is at */
	unsigned entered[COMMS], left[COMMS], limit[COMMS];
	bool freed[COMMS];
	bool inside, gate;
	unsigned numbers[RANKS], expected[RANKS];
	unsigned progress;
};

struct call {
	unsigned entered; /* ranks, a bit each */
};

static struct world {
	unsigned ranks, comms;
	unsigned members[COMMS]; /* a bit each */
	unsigned freed;          /* the same of communicators */
	struct rank rank[RANKS];
	struct message messages[MESSAGES];
	unsigned message_count;
	struct call calls[COMMS][RANKS * OPS];
	int stuck; /* a rank that computes for ever, or -1 */
	const char *wrong;
} w;

static bool is_member(int comm, unsigned rank)
{
	return w.members[comm] >> rank & 1;
}

static struct op *append(unsigned rank, enum kind kind)
{
	struct rank *r = &w.rank[rank];
	struct op *o = &r->ops[r->count < OPS ? r->count++ : OPS - 1];

	*o = (struct op){.kind = kind};
	return o;
}

static bool has_room(void)
{
	for (unsigned i = 0; i < w.ranks; i++)
		if (w.rank[i].count + 3 > OPS)
			return false;
	return true;
}

static void add_message(int tag)
{
	unsigned from = chance(w.ranks), to = (from + 1 + chance(w.ranks - 1)) % w.ranks;
	struct op *o;

	o = append(from, chance(3) ? SEND : SEND_SYNCHRONOUSLY);
	o->peer = to, o->tag = tag;
	o = append(to, chance(3) ? RECEIVE : RECEIVE_ANY);
	o->peer = from, o->tag = tag;
}

/* It is the communicator's last call, if it frees it; the first one stays. */
static void add_collective(void)
{
	int comm = chance(w.comms), root;
	enum kind kind = BARRIER + (comm && !chance(6) ? 3 : chance(3));

	if (w.freed >> comm & 1)
		return;
	if (kind == FREE)
		w.freed |= 1u << comm;

	do
		root = chance(w.ranks);
	while (!is_member(comm, root));
	for (unsigned i = 0; i < w.ranks; i++)
		if (is_member(comm, i)) {
			struct op *o = append(i, kind);

			o->comm = comm, o->root = root;
		}
}

/* Events of all, in an order in which they can happen, and so no program waits for ever. */
static void make_world(void)
{
	memset(&w, 0, sizeof(w));
	w.stuck = -1;
	w.ranks = 2 + chance(RANKS - 1);
	w.comms = 1 + chance(COMMS);
	for (unsigned c = 0; c < w.comms; c++)
		do
			w.members[c] = c ? chance(1 << w.ranks) : (1u << w.ranks) - 1;
		while (!w.members[c]);
	for (int tag = 1; has_room(); tag++) {
		unsigned what = chance(10);

		if (what < 4)
			add_message(tag);
		else if (what < 8)
			add_collective();
		else
			append(chance(w.ranks), COMPUTE)->steps =
				chance(8) ? chance(5) : chance(LONG);
	}
}

/* ---- running them ---- */

static struct message *find_message(unsigned rank, const struct op *o)
{
	struct message *found = NULL;

	for (unsigned i = 0; i < w.message_count && !found; i++) {
		struct message *m = &w.messages[i];

		if (m->to == (int)rank && m->arrived && !m->taken && m->tag == o->tag &&
			(o->kind == RECEIVE_ANY || m->from == o->peer))
			found = m;
	}
	return found;
}

static void post(unsigned rank, const struct op *o)
{
	struct message *m = &w.messages[w.message_count++];

	*m = (struct message){.from = rank,
		.to = o->peer,
		.tag = o->tag,
		.number = w.rank[rank].numbers[o->peer]++,
		.delay = chance(20)};
}

static bool was_received(unsigned rank, const struct op *o)
{
	for (unsigned i = 0; i < w.message_count; i++)
		if (w.messages[i].from == (int)rank && w.messages[i].tag == o->tag)
			return w.messages[i].received;
	return false;
}

/* The collective call that the rank is at may end. */
static bool may_leave(unsigned rank, const struct op *o)
{
	unsigned in = w.calls[o->comm][w.rank[rank].left[o->comm]].entered;

	switch (o->kind) {
	case BROADCAST:
		return in >> o->root & 1;
	case FREE:
		return true;
	case REDUCE:
		return o->root != (int)rank || in == w.members[o->comm];
	default:
		return in == w.members[o->comm];
	}
}

static bool run_collective(unsigned rank, const struct op *o)
{
	struct rank *r = &w.rank[rank];

	if (!r->inside) {
		if (r->gate && r->entered[o->comm] >= r->limit[o->comm])
			return false;
		w.calls[o->comm][r->entered[o->comm]++].entered |= 1u << rank;
		r->inside = true;
		r->progress++;
		return false;
	}
	if (!may_leave(rank, o))
		return false;
	r->left[o->comm]++;
	r->inside = false;
	r->freed[o->comm] = o->kind == FREE;
	return true;
}

static bool run_send(unsigned rank, const struct op *o)
{
	struct rank *r = &w.rank[rank];

	if (!r->sent) {
		post(rank, o);
		r->sent = true;
		r->progress++;
	}
	return o->kind == SEND || was_received(rank, o);
}

static bool run_receive(unsigned rank, const struct op *o)
{
	struct message *m = find_message(rank, o);

	if (!m)
		return false;
	if (m->taken || m->from != o->peer)
		w.wrong = "a message comes to the wrong receive";
	m->taken = m->received = true;
	return true;
}

/* Whether the operation is complete. */
static bool run_op(unsigned rank, const struct op *o)
{
	switch (o->kind) {
	case COMPUTE:
		return w.rank[rank].steps++ >= o->steps;
	case SEND:
	case SEND_SYNCHRONOUSLY:
		return run_send(rank, o);
	case RECEIVE:
	case RECEIVE_ANY:
		return run_receive(rank, o);
	default:
		return run_collective(rank, o);
	}
}

static void step(unsigned rank)
{
	struct rank *r = &w.rank[rank];

	if (r->at == r->count || w.stuck == (int)rank || !run_op(rank, &r->ops[r->at]))
		return;
	r->at++;
	r->progress++;
	r->steps = 0;
	r->sent = false;
}

/* Messages from one rank arrive in order, those of several as it happens. */
static void deliver(void)
{
	bool blocked[RANKS][RANKS] = {{0}};

	for (unsigned i = 0; i < w.message_count; i++) {
		struct message *m = &w.messages[i];

		if (m->arrived || blocked[m->from][m->to])
			continue;
		if (m->delay)
			m->delay--, blocked[m->from][m->to] = true;
		else
			m->arrived = true;
	}
}

static void run_some(unsigned steps)
{
	while (steps--) {
		step(chance(w.ranks));
		deliver();
	}
}

static bool all_ended(void)
{
	for (unsigned i = 0; i < w.ranks; i++)
		if (w.rank[i].at < w.rank[i].count)
			return false;
	return true;
}

/* ---- coming to rest ---- */

struct said {
	struct quiesce_report report;
	struct quiesce_activity activity;
	struct quiesce_count counts[COMMS];
	unsigned delay;
};

/* Whether it is at anything. */
static bool describe_op(unsigned rank, struct quiesce_activity *activity)
{
	const struct rank *r = &w.rank[rank];
	const struct op *o = &r->ops[r->at];

	if (r->at == r->count || w.stuck == (int)rank || o->kind == COMPUTE || o->kind == SEND)
		return false;
	activity->peer = o->kind == RECEIVE_ANY ? QUIESCE_ANY : o->peer;
	activity->comm = o->kind >= BARRIER ? 100 + o->comm : 100;
	strcpy(activity->call, o->kind >= BARRIER ? "MPI_Barrier" : "MPI_Recv");
	if (o->kind < BARRIER)
		activity->doing = QUIESCE_WAITS;
	else if (r->inside)
		activity->doing = QUIESCE_INSIDE;
	else if (r->entered[o->comm] >= r->limit[o->comm])
		activity->doing = QUIESCE_PARKED;
	else
		return false;
	return true;
}

static void say(unsigned rank, struct said *s)
{
	struct rank *r = &w.rank[rank];

	memset(s, 0, sizeof(*s));
	s->delay = chance(30);
	s->report.steps = r->progress;
	s->report.activities = &s->activity;
	s->report.activity_count = describe_op(rank, &s->activity);
	for (unsigned c = 0; c < w.comms; c++)
		if (is_member(c, rank) && !r->freed[c])
			s->counts[s->report.count++] = (struct quiesce_count){100 + c,
				r->entered[c], r->left[c], __builtin_popcount(w.members[c])};
	s->report.counts = s->counts;
}

/* Limits come to each rank by themselves, late. */
static void tell(const struct quiesce *q, unsigned rank)
{
	size_t n;
	const struct quiesce_limit *l = quiesce_limits(q, &n);

	w.rank[rank].gate = true;
	for (size_t i = 0; i < n; i++)
		w.rank[rank].limit[l[i].comm - 100] = l[i].limit;
}

/* Each says what it does, at a moment of its own. */
static void hear_all(struct quiesce *q, bool told)
{
	struct said said[RANKS];
	unsigned heard = 0, asked = 0, all = (1u << w.ranks) - 1;

	while (heard != all) {
		unsigned rank = chance(w.ranks);

		run_some(chance(4));
		if (!(asked >> rank & 1)) {
			if (told)
				tell(q, rank);
			run_some(chance(4));
			say(rank, &said[rank]);
			asked |= 1u << rank;
		} else if (!(heard >> rank & 1) && !said[rank].delay--) {
			quiesce_heard(q, rank, &said[rank].report);
			heard |= 1u << rank;
		}
	}
}

static bool come_to_rest(struct quiesce *q, unsigned patience)
{
	enum quiesce_verdict verdict;
	bool told = true;

	while (patience--) {
		hear_all(q, told);
		verdict = quiesce_decide(q);
		if (verdict == QUIESCE_REACHED)
			return true;
		told = verdict == QUIESCE_RAISE;
	}
	return false;
}

static void check_cut(void)
{
	for (unsigned c = 0; c < w.comms; c++)
		for (unsigned i = 0, n = 0, first = 0; i < w.ranks; i++) {
			const struct rank *r = &w.rank[i];

			if (!is_member(c, i))
				continue;
			if (r->entered[c] != r->left[c] || (n && r->entered[c] != first))
				w.wrong = "a collective call is under way at rest";
			first = r->entered[c], n++;
		}
}

/* All stand still: what is under way is received. Counts say when that is all. */
static void drain(void)
{
	unsigned sent = 0, received = 0;

	for (unsigned i = 0; i < w.ranks; i++)
		for (unsigned k = 0; k < w.ranks; k++)
			sent += w.rank[i].numbers[k];
	for (unsigned i = 0; i < w.message_count; i++)
		received += w.messages[i].received;
	for (unsigned i = 0; received < sent; i = (i + 1) % w.message_count) {
		struct message *m = &w.messages[i];

		deliver();
		if (m->arrived && !m->received) {
			m->received = m->queued = true;
			received++;
		}
	}
	for (unsigned i = 0; i < w.message_count; i++)
		if (!w.messages[i].received)
			w.wrong = "a message is left under way";
}

static void let_go(void)
{
	for (unsigned i = 0; i < w.ranks; i++) {
		w.rank[i].gate = false;
		memset(w.rank[i].limit, 0, sizeof(w.rank[i].limit));
	}
}

/* A rank does not come: either nobody needs it to, or it is named. */
static void checkpoint_of_stuck(void)
{
	struct quiesce *q = quiesce_new(w.ranks);
	int stuck = chance(w.ranks);
	char name[32], *why;

	snprintf(name, sizeof(name), "rank %d computes", stuck);
	if (!w.rank[stuck].inside && w.rank[stuck].at < w.rank[stuck].count)
		w.stuck = stuck;
	if (come_to_rest(q, w.stuck < 0 ? PATIENCE : LITTLE)) {
		check_cut();
		drain();
	} else {
		why = quiesce_explain(q);
		if (w.stuck < 0 || !strstr(why, name))
			w.wrong = "who keeps the others from coming to rest is not named";
		if (w.wrong)
			diag("%s; %s", name, why);
		named++;
		free(why);
	}
	quiesce_free(q);
	let_go();
	w.stuck = -1;
}

static void checkpoint(void)
{
	struct quiesce *q = quiesce_new(w.ranks);

	if (!come_to_rest(q, PATIENCE)) {
		char *why = quiesce_explain(q);

		w.wrong = "it does not come to rest";
		diag("%s", why);
		free(why);
	} else {
		check_cut();
		drain();
	}
	quiesce_free(q);
	let_go();
}

/* To its end, with some checkpoints on the way. */
static const char *run_world(void (*one)(void))
{
	unsigned checkpoints = 1 + chance(4), limit = 200000;

	make_world();
	while (checkpoints-- && !w.wrong) {
		run_some(chance(w.ranks * 120));
		one();
	}
	while (!all_ended() && !w.wrong && --limit)
		run_some(100);
	if (!limit)
		w.wrong = "it does not come to its end";
	for (unsigned i = 0; i < w.message_count; i++)
		if (!w.messages[i].taken && !w.wrong)
			w.wrong = "a message is lost";
	return w.wrong;
}

static bool run_worlds(unsigned count, void (*one)(void))
{
	const char *wrong = NULL;
	unsigned long first = 0;

	for (unsigned long s = 1; s <= count && !wrong; s++) {
		seed = s * 0x9e3779b97f4a7c15ull;
		wrong = run_world(one);
		first = s;
	}
	if (wrong)
		diag("program %lu: %s", first, wrong);
	return !wrong;
}

static void test_schedules(unsigned count)
{
	ok(run_worlds(count, checkpoint), "%u programs come to rest wherever they are asked to",
		count);
	ok(run_worlds(count / 4, checkpoint_of_stuck) && named,
		"%u of which a rank does not come: it is named, or needed by nobody, and they "
		"go on",
		count / 4);
	diag("%u times it was named", named);
}

/* ---- programs that cannot ---- */

static void report(struct quiesce *q, size_t rank, enum quiesce_doing doing, int peer,
	const char *call, uint64_t entered, uint64_t left)
{
	const struct quiesce_count count = {7, entered, left, 0};
	struct quiesce_activity activity = {.doing = doing, .comm = 7, .peer = peer};
	const struct quiesce_report r = {.activities = &activity,
		.activity_count = call != NULL,
		.counts = &count,
		.count = 1};

	if (call)
		strcpy(activity.call, call);
	quiesce_heard(q, rank, &r);
}

static void test_reasons(void)
{
	struct quiesce *q = quiesce_new(3);
	char *why = NULL;

	ok(quiesce_decide(q) == QUIESCE_WAIT, "nothing is decided before all have been heard");
	for (int i = 0; i < 4; i++) {
		free(why);
		report(q, 0, QUIESCE_INSIDE, 0, "MPI_Barrier", 5, 4);
		report(q, 1, QUIESCE_WAITS, 2, "MPI_Recv", 4, 4);
		report(q, 2, QUIESCE_WAITS, 0, NULL, 4, 4);
		ok(quiesce_decide(q) == (i ? QUIESCE_WAIT : QUIESCE_RAISE),
			"nobody is to be let go");
		why = quiesce_explain(q);
	}
	says(why, "rank 0 waits in MPI_Barrier", "who waits in a collective call is named");
	says(why, "rank 1 waits in MPI_Recv for rank 2", "who waits for whom is named");
	says(why, "rank 2 computes", "who computes is named");
	says(why, "or waits for memory that ranks share", "and what else it may be at");
	free(why);
	quiesce_free(q);
}

/* Rank 1 needs a message that rank 0 sends behind a call that it is kept in front of. */
static void test_release(void)
{
	struct quiesce *q = quiesce_new(3);
	const struct quiesce_limit *l;
	size_t n;

	for (int i = 0; i < 2; i++) {
		report(q, 0, QUIESCE_PARKED, 0, "MPI_Bcast", 5, 5);
		report(q, 1, QUIESCE_WAITS, 0, "MPI_Recv", 4, 4);
		report(q, 2, QUIESCE_WAITS, 0, NULL, 5, 5);
		ok(quiesce_decide(q) == QUIESCE_RAISE,
			i ? "it is let go on" : "limits are told");
	}
	l = quiesce_limits(q, &n);
	ok(n == 1 && l->comm == 7 && l->limit == 6, "by one call");
	quiesce_free(q);
}

int main(int argc, char **argv)
{
	test_reasons();
	test_release();
	test_schedules(argc > 1 ? atoi(argv[1]) : 4000);
	return done_testing();
}
