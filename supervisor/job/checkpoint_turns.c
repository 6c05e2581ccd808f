/*
 * checkpoint_turns.c - a request for a turn is granted, put off, or told that the one under
 * way serves for it, too.
 */
#include "supervisor/job/checkpoint_turns.h"

#include <string.h>
#include <time.h>

#include "lib/util.h"
#include "supervisor/job/member_files.h"
#include "supervisor/job/checkpoint_part.h"
#include "supervisor/job/wire.h"

/* Signals to the ranks of a job come within this time. */
#define MERGE_NS 10000000000ull

struct asker {
	struct wire wire;
	int signalled;
	bool again;
	uint64_t heard_ns;
};

struct turns {
	struct asker *askers[TURNS_MAX]; /* in the order they came */
	size_t count;
	bool granted; /* the first has the turn */
	/* The last turn for a signal: when it was granted, and whose signals it was for. */
	uint64_t signal_ns;
	bool covered[JOB_SIZE_MAX];
};

struct turns *turns_new(void)
{
	return xcalloc(1, sizeof(struct turns));
}

static void remove_asker(struct turns *t, size_t i)
{
	wire_close(&t->askers[i]->wire);
	free(t->askers[i]);
	t->count--;
	memmove(&t->askers[i], &t->askers[i + 1], (t->count - i) * sizeof(t->askers[0]));
	if (!i)
		t->granted = false;
}

void turns_close(struct turns *t)
{
	while (t && t->count)
		remove_asker(t, t->count - 1);
}

/* Whether another checkpoint that is being taken, or has just been, is for @signalled's signal,
 * too. */
static bool merges_with_turn(struct turns *t, int signalled, bool again)
{
	if (signalled < 0 || again || !t->signal_ns || t->covered[signalled] ||
		clock_ns(CLOCK_MONOTONIC) > t->signal_ns + MERGE_NS)
		return false;
	t->covered[signalled] = true;
	return true;
}

static void note_granted(struct turns *t, int signalled)
{
	t->signal_ns = 0;
	if (signalled < 0)
		return;
	memset(t->covered, 0, sizeof(t->covered));
	t->covered[signalled] = true;
	t->signal_ns = clock_ns(CLOCK_MONOTONIC);
}

static void grant_turn(struct turns *t)
{
	while (t->count && !t->granted) {
		struct asker *a = t->askers[0];
		bool merged = merges_with_turn(t, a->signalled, a->again);

		if (wire_say(&a->wire, merged ? TURN_MERGED : TURN_GRANTED) || merged) {
			remove_asker(t, 0);
			continue;
		}
		note_granted(t, a->signalled);
		a->heard_ns = clock_ns(CLOCK_MONOTONIC);
		t->granted = true;
	}
}

void turns_ask(struct turns *t, int fd, int signalled, bool again)
{
	struct wire wire = {.fd = fd};
	struct asker *a;

	if (t->count == TURNS_MAX || signalled >= JOB_SIZE_MAX ||
		merges_with_turn(t, signalled, again)) {
		/* So many are waiting that one more checkpoint makes no difference to a signal.
		 */
		(void)wire_say(&wire,
			signalled < 0 ? "error too many checkpoints are waiting" : TURN_MERGED);
		wire_close(&wire);
		return;
	}
	a = xcalloc(1, sizeof(*a));
	*a = (struct asker){.wire = wire, .signalled = signalled, .again = again};
	t->askers[t->count++] = a;
	grant_turn(t);
}

size_t turns_poll(const struct turns *t, struct pollfd *fds)
{
	if (!t)
		return 0;
	for (size_t i = 0; i < t->count; i++)
		fds[i] = (struct pollfd){.fd = t->askers[i]->wire.fd, .events = POLLIN};
	return t->count;
}

static bool has_gone(struct asker *a)
{
	char *line;
	int r;

	if (wire_receive(&a->wire))
		return true;
	while ((r = wire_take_line(&a->wire, &line)) > 0) {
		a->heard_ns = clock_ns(CLOCK_MONOTONIC);
		free(line);
	}
	return r < 0;
}

void turns_serve(struct turns *t, const struct pollfd *fds, size_t count)
{
	if (!t)
		return;
	/* What was polled for came first, and none has gone since. */
	for (size_t i = count; i-- > 0;)
		if (fds[i].revents && has_gone(t->askers[i]))
			remove_asker(t, i);
	/* A coordinator that is suspended for long loses its turn: the members have given it up, too. */
	if (t->granted && clock_ns(CLOCK_MONOTONIC) >
				  t->askers[0]->heard_ns + PART_SILENCE_MS * 1000000ull)
		remove_asker(t, 0);
	grant_turn(t);
}

int turns_wait_ms(const struct turns *t)
{
	return t && t->granted ? 1000 : -1;
}
