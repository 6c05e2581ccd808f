/*
 * coordinate.c - connects to all members, brings them to rest, takes them from stage to stage,
 * and tries again where the reason may be gone in a moment.
 */
#include "supervisor/job/coordinate_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "ckpt/members.h"
#include "ckpt/store.h"
#include "supervisor/job/member_files.h"
#include "supervisor/job/checkpoint_part.h"
#include "supervisor/job/checkpoint_turns.h"
#include "supervisor/job/quiesce.h"
#include "supervisor/job/wire.h"
#include "supervisor/start/job_control.h"

/* How long the members may take to stop, and to end an attempt that has failed. */
#define FREEZE_LIMIT_NS 60000000000ull
#define CLOSE_LIMIT_NS  20000000000ull

/* Pauses double: 0.6 s in all. */
#define ATTEMPTS_MAX   6
#define FIRST_PAUSE_NS 10000000

int coordinate_fail_for(struct coordination *c, const struct link *l, const char *text)
{
	return err_set(c->e, 0, "rank %d: %s", l->rank, text);
}

/* ---- lines ---- */

static bool begins_with_word(const char *line, const char *word)
{
	size_t n = strlen(word);

	return !strncmp(line, word, n) && (!line[n] || line[n] == ' ');
}

/* A member tells its job's id; the whole job has rank 0's. */
static int note_stored(struct coordination *c, const struct link *l, const char *line)
{
	const char *id = line + strlen(PART_STORED " ");
	const char *job = strchrnul(id, ' ');

	if (!begins_with_word(line, PART_STORED) || !*job ||
		members_parse_id(id, c->members.ids[l->rank]))
		return -1;
	return l->rank ? 0 : members_parse_id(job + 1, c->members.job_id);
}

/* What it counts, a line each, and in the end that this is all. */
static int note_counts(struct coordination *c, struct link *l, const char *line)
{
	struct quiesce_count count;
	struct quiesce_activity activity;
	struct quiesce_report report;
	int doing;

	if (sscanf(line, PART_COUNT " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu32,
		    &count.comm, &count.entered, &count.left, &count.size) == 4) {
		buf_push(&l->counts, struct quiesce_count, &count);
		return 0;
	}
	if (sscanf(line, PART_ACTIVITY " %d %" SCNu64 " %d %47s", &doing, &activity.comm,
		    &activity.peer, activity.call) == 4) {
		activity.doing = doing;
		buf_push(&l->activities, struct quiesce_activity, &activity);
		return 0;
	}
	if (sscanf(line, PART_COUNTED " %" SCNu64, &report.steps) != 1)
		return -1;
	report.activities = l->activities.data;
	report.activity_count = buf_count(&l->activities, struct quiesce_activity);
	report.counts = l->counts.data;
	report.count = buf_count(&l->counts, struct quiesce_count);
	quiesce_heard(c->quiesce, l - c->links, &report);
	l->counts.len = l->activities.len = 0;
	return 0;
}

/* What is no stage is a notice, or the answer. 0: continue to listen. */
static int deal_with(struct coordination *c, struct link *l, const char *stage, char *line)
{
	char *text = strchrnul(line, ' ');

	if (*text)
		text++;
	if (begins_with_word(line, PART_COUNT) || begins_with_word(line, PART_ACTIVITY))
		return note_counts(c, l, line);
	if (begins_with_word(line, PART_MESSAGES))
		return drain_note_sent(c, l, line);
	if (begins_with_word(line, stage)) {
		l->there = true;
		if (!strcmp(stage, PART_COUNTED) && note_counts(c, l, line))
			return coordinate_fail_for(c, l, "its answer was not understood");
		if (!strcmp(stage, PART_SENT) && drain_note_round(l, line))
			return coordinate_fail_for(c, l,
				"its supervisor is of another release of trecr, and all ranks "
				"need the same one");
		if (!strcmp(stage, PART_DRAINED) && drain_note_progress(l, line))
			return coordinate_fail_for(c, l, "its answer was not understood");
		if (!strcmp(stage, PART_STORED) && note_stored(c, l, line))
			return coordinate_fail_for(c, l, "its answer was not understood");
		return 0;
	}
	if (begins_with_word(line, "notice")) {
		cleanup_free char *notice = xasprintf("rank %d: %s", l->rank, text);

		c->request->notice(notice);
		return 0;
	}
	c->again |= begins_with_word(line, "again");
	return coordinate_fail_for(c, l, *text ? text : "its answer was not understood");
}

static int deal_with_lines(struct coordination *c, struct link *l, const char *stage)
{
	char *line;
	int r;

	while ((r = wire_take_line(&l->wire, &line)) > 0) {
		cleanup_free char *own = line;

		if (deal_with(c, l, stage, own))
			return -1;
	}
	return r < 0 ? coordinate_fail_for(c, l,
			       l->wire.sealed ? "a message from its supervisor failed "
						"authentication (altered on its way), or is "
						"too long"
					      : "a message from its supervisor is too long")
		     : 0;
}

/* Why its connection has ended. */
static int connection_lost(struct coordination *c, struct link *l, int code)
{
	wire_close(&l->wire);
	if (!code || code == ECONNRESET || code == EPIPE)
		return coordinate_fail_for(c, l, "its supervisor has ended, or given up");
	return err_set(
		c->e, code, "rank %d: the connection to its supervisor was lost", l->rank);
}

static int hear_member(struct coordination *c, struct link *l, const char *stage)
{
	int ended = wire_receive(&l->wire), code = errno;

	if (deal_with_lines(c, l, stage))
		return -1;
	if (!ended)
		return 0;
	/* Behind its answer. */
	if (l->there && !strcmp(stage, "ok")) {
		wire_close(&l->wire);
		return 0;
	}
	return connection_lost(c, l, code);
}

void coordinate_tell(struct link *l, const char *word)
{
	/* A member that is gone is missed when its answer is read. */
	if (l->wire.fd >= 0)
		(void)wire_say(&l->wire, word);
}

void coordinate_tell_all(struct coordination *c, const char *word)
{
	for (size_t i = 0; i < c->count; i++)
		coordinate_tell(&c->links[i], word);
}

/* Connected members hear that we live; the others may have been stopped. */
static void tell_all_to_wait(struct coordination *c)
{
	/* If who gave the turn has gone, it is missed as a member. */
	(void)wire_say(&c->turn, TURN_WAIT);
	for (size_t i = 0; i < c->count; i++) {
		struct link *l = &c->links[i];

		if (l->there)
			coordinate_tell(l, PART_WAIT);
		else if (l->supervisor && job_control_stopped(l->supervisor))
			(void)job_control_wake(l->supervisor); /* seen at the next tick */
	}
}

static const struct link *missing_member(const struct coordination *c)
{
	for (size_t i = 0; i < c->count; i++)
		if (!c->links[i].there)
			return &c->links[i];
	return NULL;
}

static bool is_past(uint64_t deadline_ns)
{
	return deadline_ns && clock_ns(CLOCK_MONOTONIC) > deadline_ns;
}

/* What a member has not done that has not come to @stage. */
static const char *missing_step(const char *stage)
{
	static const struct {
		const char *stage, *step;
	} steps[] = {
		{PART_COUNTED, "has not told whether its program comes to rest"},
		{PART_FROZEN, "has not stopped its program"},
		{PART_SENT, "has not told how many messages its program has sent"},
		{PART_DRAINED, "has not received the messages to its program"},
		{PART_SETTLED, "has not waited to the end for asynchronous I/O of its program"},
		{PART_WRITTEN, "has not written its program's memory"},
		{PART_STORED, "has not completed its part of the checkpoint"},
		{PART_TRIED, "has not tried to restart its program"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		if (!strcmp(steps[i].stage, stage))
			return steps[i].step;
	return "has not answered";
}

static int fail_late(struct coordination *c, const char *stage)
{
	const struct link *l = missing_member(c);

	if (is_past(c->request->deadline_ns))
		return err_set(c->e, 0, "rank %d: its supervisor %s in the time that %s gives",
			l->rank, missing_step(stage), c->request->deadline_option);
	return err_set(c->e, 0, "rank %d: its supervisor %s within %llu s", l->rank,
		missing_step(stage), FREEZE_LIMIT_NS / 1000000000);
}

static int hear_all(struct coordination *c, const char *stage, int wait_ms)
{
	cleanup_free struct pollfd *fds = xcalloc(c->count, sizeof(*fds));
	int r;

	for (size_t i = 0; i < c->count; i++)
		fds[i] = (struct pollfd){.fd = c->links[i].wire.fd, .events = POLLIN};
	r = poll(fds, c->count, wait_ms);
	for (size_t i = 0; r > 0 && i < c->count; i++)
		if (fds[i].revents && hear_member(c, &c->links[i], stage))
			return -1;
	return 0;
}

/* Until all members are at @stage. */
int coordinate_await(struct coordination *c, const char *stage, uint64_t deadline_ns)
{
	uint64_t next_tick = 0;

	for (size_t i = 0; i < c->count; i++)
		c->links[i].there = false;
	while (missing_member(c)) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		if (deadline_ns && now > deadline_ns)
			return fail_late(c, stage);
		if (now >= next_tick) {
			tell_all_to_wait(c);
			next_tick = now + PART_WAIT_MS * 1000000ull;
		}
		if (hear_all(c, stage, PART_WAIT_MS / 10))
			return -1;
	}
	return 0;
}

/* ---- members ---- */

static int connect_all(struct coordination *c)
{
	cleanup_buf struct buf members = {0};

	if (job_living_members(c->request->dir, &members, c->e))
		return -1;
	c->count = buf_count(&members, struct job_member);
	c->links = xcalloc(c->count, sizeof(*c->links));
	c->members.ids = xcalloc(c->count, sizeof(*c->members.ids));
	c->members.count = c->count;
	for (size_t i = 0; i < c->count; i++)
		c->links[i].wire = (struct wire)WIRE_CLOSED;
	for (size_t i = 0; i < c->count; i++) {
		const struct job_member *m = buf_at(&members, struct job_member, i);
		struct link *l = &c->links[i];

		l->rank = m->rank;
		c->keep = m->keep > c->keep ? m->keep : c->keep;
		if (reach_member(m, c->request->connect, &l->wire, &l->supervisor, c->e))
			return err_prefix(c->e, "rank %d", l->rank);
	}
	return 0;
}

static void ask_all(struct coordination *c)
{
	cleanup_free char *line =
		xasprintf("part=%" PRIu64 " %s", c->sequence, c->request->text);

	coordinate_tell_all(c, line);
}

/* Members that are still at work give up when they see that nobody listens. When their sockets
 * are closed, they no longer write. */
static void dismiss_members(struct coordination *c)
{
	uint64_t limit = clock_ns(CLOCK_MONOTONIC) + CLOSE_LIMIT_NS;

	for (size_t i = 0; i < c->count; i++)
		if (c->links[i].wire.fd >= 0)
			(void)shutdown(c->links[i].wire.fd, SHUT_WR);
	for (size_t i = 0; i < c->count; i++) {
		struct link *l = &c->links[i];
		struct pollfd fd = {.fd = l->wire.fd, .events = POLLIN};
		char rest[256];

		while (l->wire.fd >= 0 && clock_ns(CLOCK_MONOTONIC) < limit)
			if (poll(&fd, 1, 100) > 0 && recv(fd.fd, rest, sizeof(rest), 0) <= 0)
				break;
		wire_close(&l->wire);
		buf_free(&l->counts);
		buf_free(&l->activities);
		buf_free(&l->due);
	}
	free(c->links);
	c->links = NULL;
	c->count = 0;
}

/* ---- all come to rest ---- */

/* Between two looks at programs that are on their way, at first and at most. */
#define LOOK_NS     1000000
#define LOOK_MAX_NS 20000000

static void tell_limits(struct coordination *c)
{
	size_t count;
	const struct quiesce_limit *limits = quiesce_limits(c->quiesce, &count);

	for (size_t i = 0; i < count; i++) {
		cleanup_free char *line = xasprintf(
			PART_LIMIT " %" PRIu64 " %" PRIu64, limits[i].comm, limits[i].limit);

		coordinate_tell_all(c, line);
	}
}

static int fail_at_rest(struct coordination *c, const char *option)
{
	cleanup_free char *why = quiesce_explain(c->quiesce);

	return err_set(c->e, 0,
		"the ranks do not come to rest together (%s gives them more time): %s", option,
		why);
}

/* A member that has seen first that the time is over, or is heard last, may not be the one that others wait for. */
static int fail_before_rest(struct coordination *c)
{
	cleanup_free char *why = quiesce_explain(c->quiesce);

	if (is_past(c->request->deadline_ns) && *why)
		err_append(c->e, "; the ranks had not come to rest together: %s", why);
	return -1;
}

static int bring_to_rest(struct coordination *c)
{
	uint64_t limit = clock_ns(CLOCK_MONOTONIC) + c->request->rest_ns, pause = LOOK_NS;

	for (;;) {
		enum quiesce_verdict verdict;

		if (coordinate_await(c, PART_COUNTED, c->request->deadline_ns))
			return fail_before_rest(c);
		verdict = quiesce_decide(c->quiesce);
		if (verdict == QUIESCE_REACHED)
			break;
		if (is_past(limit))
			return fail_at_rest(c, "--drain-timeout");
		if (is_past(c->request->deadline_ns))
			return fail_at_rest(c, c->request->deadline_option);
		if (verdict == QUIESCE_RAISE) {
			tell_limits(c);
			pause = LOOK_NS;
		} else {
			sleep_ns(pause);
			pause = pause < LOOK_MAX_NS ? 2 * pause : pause;
		}
		coordinate_tell_all(c, PART_LOOK);
	}
	coordinate_tell_all(c, PART_GO);
	return 0;
}

/* ---- one checkpoint ---- */

static int complete_checkpoint(struct coordination *c, char **path)
{
	cleanup_free char *what = xasprintf("%s/%s", store_dir(c->store), store_name(c->store));

	if (members_write(c->dirfd, &c->members, what, c->e) ||
		store_commit(c->store, path, c->e))
		return -1;
	coordinate_tell_all(c, PART_GO);
	return 0;
}

/* So that all end, or none, whichever member dies from now on. */
static int decide_end(struct coordination *c, const char *path)
{
	if (part_decide(path, PART_ENDED, c->e))
		return -1;
	coordinate_tell_all(c, PART_GO);
	return 0;
}

static int end_all(struct coordination *c, const char *path)
{
	if (!coordinate_await(c, PART_TRIED, c->request->deadline_ns) && !decide_end(c, path)) {
		if (coordinate_await(c, PART_KILLED, 0))
			return -1;
		coordinate_tell_all(c, PART_GO);
		/* Who does not say so has ended, too. */
		(void)coordinate_await(c, "ok", clock_ns(CLOCK_MONOTONIC) + CLOSE_LIMIT_NS);
		return 0;
	}
	err_prefix(c->e, "the checkpoint %s is complete, but the job resumes", path);
	return COORDINATE_KEPT;
}

static int take_job_checkpoint(struct coordination *c, char **path)
{
	uint64_t deadline = c->request->deadline_ns;
	uint64_t freeze;

	ask_all(c);
	if (bring_to_rest(c))
		return -1;
	freeze = clock_ns(CLOCK_MONOTONIC) + FREEZE_LIMIT_NS;
	if (coordinate_await(c, PART_FROZEN, deadline && deadline < freeze ? deadline : freeze))
		return -1;
	coordinate_tell_all(c, PART_GO);
	if (drain_messages(c))
		return -1;
	if (coordinate_await(c, PART_SETTLED, deadline))
		return -1;
	coordinate_tell_all(c, PART_GO);
	if (coordinate_await(c, PART_WRITTEN, deadline))
		return -1;
	coordinate_tell_all(c, PART_GO);
	if (coordinate_await(c, PART_STORED, deadline) || complete_checkpoint(c, path))
		return -1;
	if (c->request->stop)
		return end_all(c, *path);
	/* It is complete, whatever becomes of them. */
	(void)coordinate_await(c, "ok", clock_ns(CLOCK_MONOTONIC) + CLOSE_LIMIT_NS);
	return 0;
}

static int attempt_job_checkpoint(struct coordination *c, char **path)
{
	static const uint8_t nobody[16];
	struct err ignored = ERR_INIT;
	int r = -1;

	c->again = false;
	if (connect_all(c))
		goto out;
	c->quiesce = quiesce_new(c->count);
	c->store = store_open(c->request->dir, nobody, NULL, c->e);
	if (!c->store || store_begin(c->store, &c->dirfd, &c->sequence, c->e))
		goto out;
	r = take_job_checkpoint(c, path);
	/* One too many does no harm; the next one tries again. */
	if (!r)
		(void)store_prune(c->store, c->members.job_id, c->keep, &ignored);
out:
	dismiss_members(c);
	quiesce_free(c->quiesce);
	c->quiesce = NULL;
	store_close(c->store);
	c->store = NULL;
	members_free(&c->members);
	return r;
}

static bool try_job_again(const struct coordination *c, unsigned attempts)
{
	if (!c->again || attempts == ATTEMPTS_MAX)
		return false;
	sleep_ns(FIRST_PAUSE_NS << attempts);
	return true;
}

/* ---- our turn ---- */

static int hear_turn(struct coordination *c, char **line)
{
	struct pollfd fd = {.fd = c->turn.fd, .events = POLLIN};
	int ended = 0, r;

	if (poll(&fd, 1, PART_WAIT_MS / 10) > 0)
		ended = wire_receive(&c->turn);
	r = wire_take_line(&c->turn, line);
	return !r && ended ? -1 : r;
}

/* 0, or COORDINATE_MERGED, or -1. */
static int await_turn(struct coordination *c, pid_t supervisor)
{
	uint64_t deadline = c->request->deadline_ns;
	cleanup_free char *line = NULL;
	int r;

	while (!(r = hear_turn(c, &line))) {
		if (deadline && clock_ns(CLOCK_MONOTONIC) > deadline)
			return err_set(c->e, 0,
				"another checkpoint of the job in %s is being taken",
				c->request->dir);
		if (supervisor && job_control_stopped(supervisor))
			(void)job_control_wake(supervisor); /* or at the next tick */
	}
	if (r > 0 && !strcmp(line, TURN_GRANTED))
		return 0;
	if (r > 0 && !strcmp(line, TURN_MERGED))
		return COORDINATE_MERGED;
	return err_set(c->e, 0, "rank 0: %s",
		r > 0 && begins_with_word(line, "error") ? line + strlen("error ")
							 : "its supervisor has ended");
}

/* From rank 0 (checkpoint_turns.h). */
static int take_turn(struct coordination *c)
{
	cleanup_buf struct buf members = {0};
	cleanup_free char *line = xasprintf(
		"turn %d%s", c->request->signalled, c->request->again ? " again" : "");
	pid_t supervisor;

	if (job_living_members(c->request->dir, &members, c->e))
		return -1;
	if (reach_member(buf_at(&members, struct job_member, 0), c->request->connect, &c->turn,
		    &supervisor, c->e) ||
		(wire_say(&c->turn, line) && err_set(c->e, 0, "its supervisor has ended")))
		return err_prefix(c->e, "rank 0");
	return await_turn(c, supervisor);
}

int coordinate(const struct coordinate_request *request, char **path, struct err *e)
{
	struct coordination c = {.request = request, .e = e, .turn = WIRE_CLOSED};
	unsigned attempts = 0;
	int r = take_turn(&c);

	*path = NULL;
	if (!r)
		while ((r = attempt_job_checkpoint(&c, path)) == -1 &&
			try_job_again(&c, attempts++))
			;
	wire_close(&c.turn);
	return r;
}
