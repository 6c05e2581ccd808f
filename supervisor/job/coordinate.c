#include "supervisor/job/coordinate.h"

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
#include "supervisor/job/members.h"
#include "supervisor/job/part.h"
#include "supervisor/start/job_control.h"

/* How long the members may take to stand still, and to end an attempt that has failed. */
#define FREEZE_LIMIT_NS 60000000000ull
#define CLOSE_LIMIT_NS  20000000000ull

/* Pauses double: 0.6 s in all. */
#define ATTEMPTS_MAX   6
#define FIRST_PAUSE_NS 10000000

/* The connection to a member. */
struct link {
	int rank, fd; /* -1: closed */
	pid_t supervisor;
	struct buf in; /* what has not been dealt with */
	bool there;    /* it has reached the stage that is waited for */
};

struct coordination {
	const struct coordinate_request *request;
	struct err *e;
	struct link *links;
	size_t count;
	unsigned keep;
	struct store *store;
	int dirfd;
	uint64_t sequence;
	struct members members;
	bool again; /* the reason of the failure is gone in a moment, maybe */
};

static int fail(struct coordination *c, const struct link *l, const char *text)
{
	return err_set(c->e, 0, "rank %d: %s", l->rank, text);
}

/* ---- lines ---- */

static bool begins(const char *line, const char *word)
{
	size_t n = strlen(word);

	return !strncmp(line, word, n) && (!line[n] || line[n] == ' ');
}

/* A member tells its id, and rank 0's job is that of all. */
static int note_stored(struct coordination *c, const struct link *l, const char *line)
{
	const char *id = line + strlen(PART_STORED " ");
	const char *job = strchrnul(id, ' ');

	if (!begins(line, PART_STORED) || !*job ||
		members_parse_id(id, c->members.ids[l->rank]))
		return -1;
	return l->rank ? 0 : members_parse_id(job + 1, c->members.job_id);
}

/* What is no stage is a notice, or the answer. 0: go on listening. */
static int deal_with(struct coordination *c, struct link *l, const char *stage, char *line)
{
	char *text = strchrnul(line, ' ');

	if (*text)
		text++;
	if (begins(line, stage)) {
		l->there = true;
		if (!strcmp(stage, PART_STORED) && note_stored(c, l, line))
			return fail(c, l, "its answer was not understood");
		return 0;
	}
	if (begins(line, "notice")) {
		cleanup_free char *notice = xasprintf("rank %d: %s", l->rank, text);

		c->request->notice(notice);
		return 0;
	}
	c->again |= begins(line, "again");
	return fail(c, l, *text ? text : "its answer was not understood");
}

static int deal_with_lines(struct coordination *c, struct link *l, const char *stage)
{
	char *end;

	while ((end = memchr(l->in.data, '\n', l->in.len))) {
		cleanup_free char *line = strndup(l->in.data, end - (char *)l->in.data);
		size_t used = end + 1 - (char *)l->in.data;

		memmove(l->in.data, end + 1, l->in.len - used);
		l->in.len -= used;
		if (deal_with(c, l, stage, line))
			return -1;
	}
	return 0;
}

static int hear(struct coordination *c, struct link *l, const char *stage)
{
	char part[4096];
	ssize_t n = recv(l->fd, part, sizeof(part), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		util_close(&l->fd);
		l->fd = -1;
		/* Behind its answer. */
		if (l->there && !strcmp(stage, "ok"))
			return 0;
		return fail(c, l, "its supervisor has ended, or given up");
	}
	buf_add(&l->in, part, n);
	return deal_with_lines(c, l, stage);
}

static void tell(const struct link *l, const char *word)
{
	cleanup_free char *line = xasprintf("%s\n", word);

	/* Who has gone is missed when it is to be heard. */
	(void)send(l->fd, line, strlen(line), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void tell_all(const struct coordination *c, const char *word)
{
	for (size_t i = 0; i < c->count; i++)
		tell(&c->links[i], word);
}

/* Those that are there hear that we live; the others may have been stopped. */
static void tick(const struct coordination *c)
{
	for (size_t i = 0; i < c->count; i++) {
		const struct link *l = &c->links[i];

		if (l->there)
			tell(l, PART_WAIT);
		else if (job_control_stopped(l->supervisor))
			(void)job_control_wake(l->supervisor); /* seen at the next tick */
	}
}

static const struct link *missing(const struct coordination *c)
{
	for (size_t i = 0; i < c->count; i++)
		if (!c->links[i].there)
			return &c->links[i];
	return NULL;
}

static int hear_all(struct coordination *c, const char *stage, int wait_ms)
{
	cleanup_free struct pollfd *fds = xcalloc(c->count, sizeof(*fds));
	int r;

	for (size_t i = 0; i < c->count; i++)
		fds[i] = (struct pollfd){.fd = c->links[i].fd, .events = POLLIN};
	r = poll(fds, c->count, wait_ms);
	for (size_t i = 0; r > 0 && i < c->count; i++)
		if (fds[i].revents && hear(c, &c->links[i], stage))
			return -1;
	return 0;
}

/* Until all members are at @stage. */
static int await_all(struct coordination *c, const char *stage, uint64_t deadline_ns)
{
	uint64_t next_tick = 0;

	for (size_t i = 0; i < c->count; i++)
		c->links[i].there = false;
	while (missing(c)) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		if (deadline_ns && now > deadline_ns)
			return fail(c, missing(c), "the time for it is over");
		if (now >= next_tick) {
			tick(c);
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
		c->links[i].fd = -1;
	for (size_t i = 0; i < c->count; i++) {
		const struct job_member *m = buf_at(&members, struct job_member, i);
		struct link *l = &c->links[i];

		l->rank = m->rank;
		c->keep = m->keep > c->keep ? m->keep : c->keep;
		l->fd = c->request->connect(m->supervisor, &l->supervisor, c->e);
		if (l->fd < 0)
			return err_prefix(c->e, "rank %d", l->rank);
	}
	return 0;
}

static void ask_all(struct coordination *c)
{
	cleanup_free char *line =
		xasprintf("part=%" PRIu64 " %s", c->sequence, c->request->text);

	tell_all(c, line);
}

/* Members that are still at work give up when they see that nobody listens. When their sockets
 * are closed, they no longer write. */
static void dismiss(struct coordination *c)
{
	uint64_t limit = clock_ns(CLOCK_MONOTONIC) + CLOSE_LIMIT_NS;

	for (size_t i = 0; i < c->count; i++)
		if (c->links[i].fd >= 0)
			(void)shutdown(c->links[i].fd, SHUT_WR);
	for (size_t i = 0; i < c->count; i++) {
		struct link *l = &c->links[i];
		struct pollfd fd = {.fd = l->fd, .events = POLLIN};
		char rest[256];

		while (l->fd >= 0 && clock_ns(CLOCK_MONOTONIC) < limit)
			if (poll(&fd, 1, 100) > 0 && recv(l->fd, rest, sizeof(rest), 0) <= 0)
				break;
		if (l->fd >= 0)
			util_close(&l->fd);
		buf_free(&l->in);
	}
	free(c->links);
	c->links = NULL;
	c->count = 0;
}

/* ---- one checkpoint ---- */

static int complete(struct coordination *c, char **path)
{
	cleanup_free char *what = xasprintf("%s/%s", store_dir(c->store), store_name(c->store));

	if (members_write(c->dirfd, &c->members, what, c->e) ||
		store_commit(c->store, path, c->e))
		return -1;
	tell_all(c, PART_GO);
	return 0;
}

/* So that all end, or none, whoever dies from now on. */
static int decide_end(struct coordination *c, const char *path)
{
	cleanup_free char *name = xasprintf("%s/" PART_ENDED_FILE, path);
	cleanup_fd int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0 || fsync(fd))
		return err_set(c->e, errno, "cannot create %s", name);
	tell_all(c, PART_GO);
	return 0;
}

static int end_all(struct coordination *c, const char *path)
{
	if (!await_all(c, PART_TRIED, c->request->deadline_ns) && !decide_end(c, path))
		return await_all(c, "ok", 0);
	err_prefix(c->e, "the checkpoint %s is complete, but the job resumes", path);
	return COORDINATE_KEPT;
}

static int take(struct coordination *c, char **path)
{
	uint64_t deadline = c->request->deadline_ns;
	uint64_t freeze = clock_ns(CLOCK_MONOTONIC) + FREEZE_LIMIT_NS;

	ask_all(c);
	if (await_all(c, PART_FROZEN, deadline && deadline < freeze ? deadline : freeze))
		return -1;
	tell_all(c, PART_GO);
	if (await_all(c, PART_WRITTEN, deadline))
		return -1;
	tell_all(c, PART_GO);
	if (await_all(c, PART_STORED, deadline) || complete(c, path))
		return -1;
	if (c->request->stop)
		return end_all(c, *path);
	/* It is complete, whatever becomes of them. */
	(void)await_all(c, "ok", clock_ns(CLOCK_MONOTONIC) + CLOSE_LIMIT_NS);
	return 0;
}

static int attempt(struct coordination *c, char **path)
{
	static const uint8_t nobody[16];
	struct err ignored = ERR_INIT;
	int r = -1;

	c->again = false;
	if (connect_all(c))
		goto out;
	c->store = store_open(c->request->dir, nobody, NULL, c->e);
	if (!c->store || store_begin(c->store, &c->dirfd, &c->sequence, c->e))
		goto out;
	r = take(c, path);
	/* One too many does no harm; the next one tries again. */
	if (!r)
		(void)store_prune(c->store, c->members.job_id, c->keep, &ignored);
out:
	dismiss(c);
	store_close(c->store);
	c->store = NULL;
	members_free(&c->members);
	return r;
}

static bool try_again(const struct coordination *c, unsigned attempts)
{
	struct timespec pause = {.tv_nsec = FIRST_PAUSE_NS << attempts};

	if (!c->again || attempts == ATTEMPTS_MAX)
		return false;
	(void)nanosleep(&pause, NULL);
	return true;
}

int coordinate(const struct coordinate_request *request, char **path, struct err *e)
{
	struct coordination c = {.request = request, .e = e};
	cleanup_fd int turn = job_take_turn(request->dir, request->deadline_ns, e);
	unsigned attempts = 0;
	int r;

	*path = NULL;
	if (turn < 0)
		return -1;
	while ((r = attempt(&c, path)) == -1 && try_again(&c, attempts++))
		;
	return r;
}
