/*
 * coordinate_drain.c - messages between two ranks, when all members are frozen: each says how many it has sent to whom,
 * and is told how many it is to have received. Then all look for messages, turn by turn, until all have them: a member
 * that has finished makes progress for the others.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/job/checkpoint_part.h"
#include "supervisor/job/coordinate_private.h"

/* How often it is looked whether synchronous sends come to their ends; each time may take 20 ms. */
#define SETTLE_ROUNDS 25

int drain_note_sent(struct coordination *c, const struct link *l, const char *line)
{
	uint64_t number, count;
	unsigned to;

	if (sscanf(line, PART_MESSAGES " %" SCNu64 " %u %" SCNu64, &number, &to, &count) != 3 ||
		to >= c->count)
		return coordinate_fail_for(c, l, "its answer was not understood");
	buf_printf(&c->links[to].due, PART_DUE " %" PRIu64 " %d %" PRIu64 "\n", number, l->rank,
		count);
	return 0;
}

int drain_note_round(struct link *l, const char *line)
{
	return sscanf(line, PART_SENT " %" SCNu32, &l->drain_round) == 1 ? 0 : -1;
}

int drain_note_progress(struct link *l, const char *line)
{
	struct drain_progress *p = &l->progress;

	return sscanf(line, PART_DRAINED " %d %u %d %47s", &p->drained, &p->synchronous,
		       &p->peer, p->call) == 4
		       ? 0
		       : -1;
}

/* Each line by itself: over a network each is authenticated. */
static void tell_due(struct link *l)
{
	char *line = l->due.data, *end;

	for (size_t left = l->due.len; left && (end = memchr(line, '\n', left));
		line = end + 1) {
		left -= end + 1 - line;
		*end = 0;
		coordinate_tell(l, line);
	}
	l->due.len = 0;
}

static void explain_member(const struct link *l, struct buf *text)
{
	const struct drain_progress *p = &l->progress;

	buf_printf(text, "%srank %d ", text->len ? "; " : "", l->rank);
	if (!strcmp(p->call, "-"))
		buf_printf(text, "misses messages from");
	else
		buf_printf(text, "waits in %s for", p->call);
	if (p->peer < 0)
		buf_printf(text, " other ranks");
	else
		buf_printf(text, " rank %d", p->peer);
}

/* @settling: of synchronous sends only. */
static char *explain_members(const struct coordination *c, bool settling)
{
	cleanup_buf struct buf text = {0};

	for (size_t i = 0; i < c->count; i++)
		if (settling ? c->links[i].progress.synchronous > 0
			     : !c->links[i].progress.drained)
			explain_member(&c->links[i], &text);
	return xasprintf("%.*s", (int)text.len, text.len ? (char *)text.data : "");
}

static int fail_to_drain(struct coordination *c)
{
	cleanup_free char *why = explain_members(c, false);

	return err_set(c->e, 0,
		"messages between the ranks could not be received (--drain-timeout gives them "
		"more time): %s",
		why);
}

/* A synchronous send ends when its message is received, which the drain would do in the place of the program. */
static int fail_to_settle(struct coordination *c)
{
	cleanup_free char *why = explain_members(c, true);

	c->again = true;
	return err_set(c->e, 0,
		"a synchronous send (MPI_Ssend) whose message no rank has asked for cannot be "
		"saved: %s",
		why);
}

static bool has_settled(const struct coordination *c)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->links[i].progress.synchronous)
			return false;
	return true;
}

static bool has_drained(const struct coordination *c)
{
	for (size_t i = 0; i < c->count; i++)
		if (!c->links[i].progress.drained)
			return false;
	return true;
}

static int query_members(struct coordination *c, const char *how)
{
	coordinate_tell_all(c, how);
	return coordinate_await(c, PART_DRAINED, c->request->deadline_ns);
}

static int settle_synchronous_sends(struct coordination *c)
{
	for (int i = 0; i < SETTLE_ROUNDS; i++) {
		if (query_members(c, PART_SETTLE))
			return -1;
		if (has_settled(c))
			return 0;
	}
	return fail_to_settle(c);
}

/* The order to take messages, with a number for this checkpoint: members that have not heard of the last one have
 * missed numbers. */
static char *order_to_take(const struct coordination *c)
{
	uint32_t last = 0;

	for (size_t i = 0; i < c->count; i++)
		last = c->links[i].drain_round > last ? c->links[i].drain_round : last;
	return xasprintf(PART_TAKE " %" PRIu32, last + 1);
}

int drain_messages(struct coordination *c)
{
	cleanup_free char *take = NULL;
	uint64_t limit;

	if (coordinate_await(c, PART_SENT, c->request->deadline_ns))
		return -1;
	for (size_t i = 0; i < c->count; i++)
		tell_due(&c->links[i]);
	if (settle_synchronous_sends(c))
		return -1;
	take = order_to_take(c);
	limit = clock_ns(CLOCK_MONOTONIC) + c->request->rest_ns;
	do {
		if (query_members(c, take))
			return -1;
		if (!has_drained(c) && clock_ns(CLOCK_MONOTONIC) > limit)
			return fail_to_drain(c);
	} while (!has_drained(c));
	coordinate_tell_all(c, PART_GO);
	return 0;
}
