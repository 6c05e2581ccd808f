/*
 * restart_namespaces.c - what ranks tell rank 0 of the ids that their programs need, what it answers, and who makes the
 * namespaces.
 */
#include "supervisor/job/restart_namespaces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/util.h"
#include "supervisor/job/restart_barrier_private.h"
#include "supervisor/job/this_process.h"

#define IDS   "ids"
#define APART "apart"

/* Of a line with ids. */
#define IDS_LENGTH (WIRE_LINE_MAX / 2)

/* Above what the kernel can give out (PID_MAX_LIMIT). */
#define ID_LIMIT (4 << 20)

/* ---- lines ---- */

struct teller {
	struct restart_barrier *g;
	struct err *e;
};

static int look(void *arg)
{
	const struct teller *t = arg;

	return restart_barrier_look(t->g, t->e);
}

/* It may be too much for the connection before rank 0 comes to read it. */
static int tell_rank_0(struct restart_barrier *g, const char *line, struct err *e)
{
	struct teller t = {g, e};

	e->msg[0] = 0;
	if (!wire_say_waiting(&g->wires[0], line, look, &t))
		return 0;
	/* Rank 0 may have said why it has ended. */
	return e->msg[0] || restart_barrier_look(g, e) ? -1 : barrier_not_told(g, -1, NULL, e);
}

static int say_ids(struct restart_barrier *g, const struct buf *ids, struct err *e)
{
	cleanup_buf struct buf line = {0};
	size_t count = buf_count(ids, pid_t);

	for (size_t i = 0, end; i < count; i = end) {
		pid_t first = *buf_at(ids, pid_t, i);

		for (end = i + 1;
			end < count && *buf_at(ids, pid_t, end) == first + (pid_t)(end - i);)
			end++;
		if (!line.len)
			buf_printf(&line, IDS);
		buf_printf(&line, " %d-%d", first, first + (pid_t)(end - i) - 1);
		if (end < count && line.len < IDS_LENGTH)
			continue;
		buf_grow(&line, 1);
		if (tell_rank_0(g, line.data, e))
			return -1;
		line.len = 0;
	}
	return 0;
}

static int say_wish(struct restart_barrier *g, const struct rank_wish *wish, struct err *e)
{
	cleanup_free char *line = xasprintf("wish %s %d %d %d %d %d %u %u %zu", wish->place,
		wish->needed, wish->apart, wish->whole, wish->user, wish->id_limit, wish->uid,
		wish->gid, buf_count(&wish->ids, pid_t));

	return say_ids(g, &wish->ids, e) ? -1 : tell_rank_0(g, line, e);
}

static bool take_ids(struct buf *ids, const char *text)
{
	int first, last, length;

	while (sscanf(text, " %d-%d%n", &first, &last, &length) == 2) {
		size_t count = buf_count(ids, pid_t);

		if (first <= (count ? *buf_at(ids, pid_t, count - 1) : 0) || last < first ||
			last >= ID_LIMIT)
			return false;
		for (pid_t id = first; id <= last; id++)
			buf_push(ids, pid_t, &id);
		text += length;
	}
	return !*text;
}

static bool take_wish(struct rank_wish *wish, const char *text)
{
	int needed, apart, whole, user;
	size_t count;

	_Static_assert(sizeof(wish->place) == 96, "as much is read below");
	if (sscanf(text, " %95s %d %d %d %d %d %u %u %zu", wish->place, &needed, &apart, &whole,
		    &user, &wish->id_limit, &wish->uid, &wish->gid, &count) != 9 ||
		count != buf_count(&wish->ids, pid_t))
		return false;
	wish->needed = needed;
	wish->apart = apart;
	wish->whole = whole;
	wish->user = user;
	return true;
}

bool restart_namespaces_hear(struct restart_barrier *g, int rank, const char *line)
{
	unsigned long long start;
	int pid;

	if (!strncmp(line, IDS " ", strlen(IDS " ")))
		return take_ids(&g->wishes[rank].ids, line + strlen(IDS));
	if (!strncmp(line, "wish ", 5))
		return take_wish(&g->wishes[rank], line + 5);
	if (sscanf(line, "made %d %llu", &pid, &start) != 2)
		return false;
	g->firsts[rank] = (struct proc_identity){.pid = pid, .start_time = start};
	return true;
}

/* ---- each rank ---- */

static pid_t id_limit(void)
{
	cleanup_free char *text = NULL;
	size_t size;

	return read_file("/proc/sys/kernel/pid_max", &text, &size, NULL) ? 32768 : atoi(text);
}

static void fill_wish(struct rank_wish *own, const struct namespace_wish *wish)
{
	struct stat ns = {0};
	char machine[64];
	pid_t last = 0;

	this_machine(machine, sizeof(machine));
	(void)stat("/proc/self/ns/user", &ns); /* a kernel without has but one */
	snprintf(own->place, sizeof(own->place), "%s:%lu", machine, (unsigned long)ns.st_ino);
	own->needed = wish->needed;
	own->apart = wish->apart;
	own->whole = wish->whole;
	own->user = wish->user;
	own->uid = geteuid();
	own->gid = getegid();
	own->id_limit = id_limit();
	for (size_t i = 0; i < buf_count(wish->ids, pid_t); i++) {
		pid_t id = *buf_at(wish->ids, pid_t, i);

		if (id <= last)
			continue;
		buf_push(&own->ids, pid_t, &id);
		last = id;
	}
}

/* Its first process is a child of ours, but none of the program's. */
static int make_namespace(
	struct restart_barrier *g, const struct shared_namespace_plan *plan, struct err *e)
{
	if (shared_namespace_make(plan, &g->shared, e))
		return -1;
	if (g->shared.first.pid)
		buf_push(&g->s->former_children, struct proc_identity, &g->shared.first);
	return 0;
}

/* ---- rank 0 ---- */

static bool has_wished(const struct restart_barrier *g, int rank)
{
	return g->wishes[rank].place[0];
}

static bool has_made(const struct restart_barrier *g, int rank)
{
	return g->groups[rank].maker != rank || g->firsts[rank].pid;
}

static void say_plan(struct wire *w, const char *word, const struct shared_namespace_plan *plan,
	const struct proc_identity *first)
{
	cleanup_free char *made =
		first ? xasprintf(" %d %llu", first->pid, (unsigned long long)first->start_time)
		      : xstrdup("");
	cleanup_free char *line =
		xasprintf("%s %d %d%s", word, plan->user, plan->first_free, made);

	(void)wire_say(w, line); /* missed when something is heard of it */
}

/* Who is by itself, and who makes a namespace, need not wait for anybody. */
static void tell_apart_and_makers(struct restart_barrier *g)
{
	for (int rank = 1; rank < size_of(g); rank++) {
		const struct namespace_group *group = &g->groups[rank];

		if (group->maker < 0)
			(void)wire_say(&g->wires[rank], APART);
		else if (group->maker == rank)
			say_plan(&g->wires[rank], "make", &group->plan, NULL);
	}
}

static void tell_joiners(struct restart_barrier *g)
{
	for (int rank = 1; rank < size_of(g); rank++) {
		const struct namespace_group *group = &g->groups[rank];

		if (group->maker < 0 || group->maker == rank)
			continue;
		if (g->firsts[group->maker].pid < 0)
			(void)wire_say(&g->wires[rank], APART);
		else
			say_plan(&g->wires[rank], "join", &group->plan,
				&g->firsts[group->maker]);
	}
}

static int share_as_rank_0(struct restart_barrier *g, struct err *e)
{
	if (barrier_await_ranks(g, has_wished, e))
		return -1;
	namespace_groups(g->wishes, size_of(g), g->groups);
	tell_apart_and_makers(g);
	barrier_pass_on(g);
	if (!g->groups[0].maker) {
		if (make_namespace(g, &g->groups[0].plan, e))
			return -1;
		g->firsts[0] = g->shared.first;
		if (!g->shared.first.pid)
			g->firsts[0].pid = -1;
	}
	if (barrier_await_ranks(g, has_made, e))
		return -1;
	tell_joiners(g);
	barrier_pass_on(g);
	return 0;
}

/* ---- the others ---- */

static int make_for_others(
	struct restart_barrier *g, const struct shared_namespace_plan *plan, struct err *e)
{
	cleanup_free char *line = NULL;

	if (make_namespace(g, plan, e))
		return -1;
	line = xasprintf("made %d %llu", g->shared.first.pid ? g->shared.first.pid : -1,
		(unsigned long long)g->shared.first.start_time);
	(void)wire_say(&g->wires[0], line); /* missed when the others wait for it */
	return 0;
}

static int do_as_told(struct restart_barrier *g, const char *line, struct err *e)
{
	struct shared_namespace_plan plan;
	unsigned long long start;
	int user, first, pid;

	if (!strcmp(line, APART))
		return 0;
	if (sscanf(line, "make %d %d", &user, &first) == 2) {
		plan = (struct shared_namespace_plan){user, first};
		return make_for_others(g, &plan, e);
	}
	if (sscanf(line, "join %d %d %d %llu", &user, &first, &pid, &start) == 4) {
		plan = (struct shared_namespace_plan){user, first};
		return shared_namespace_open(
			&plan, &(struct proc_identity){pid, start}, &g->shared, e);
	}
	return barrier_not_told(g, 1, line, e);
}

static int share_as_another(struct restart_barrier *g, struct err *e)
{
	cleanup_free char *line = NULL;

	if (say_wish(g, &g->wishes[rank_of(g)], e))
		return -1;
	return barrier_hear_rank_0(g, &line, e) || do_as_told(g, line, e) ? -1 : 0;
}

/* ---- all ---- */

int restart_barrier_share(void *arg, const struct namespace_wish *wish,
	const struct shared_namespace **shared, struct err *e)
{
	struct restart_barrier *g = arg;

	if (!g->shares_known) {
		fill_wish(&g->wishes[rank_of(g)], wish);
		if (rank_of(g) ? share_as_another(g, e) : share_as_rank_0(g, e))
			return -1;
		g->shares_known = true;
	}
	*shared = g->shared.first.pid ? &g->shared : NULL;
	return 0;
}

void restart_namespaces_init(struct restart_barrier *g)
{
	g->wishes = xcalloc(size_of(g), sizeof(*g->wishes));
	g->groups = xcalloc(size_of(g), sizeof(*g->groups));
	g->firsts = xcalloc(size_of(g), sizeof(*g->firsts));
	g->shared = (struct shared_namespace)SHARED_NAMESPACE_NONE;
}

void restart_namespaces_free(struct restart_barrier *g)
{
	shared_namespace_leave(&g->shared);
	for (int i = 0; i < size_of(g); i++)
		buf_free(&g->wishes[i].ids);
	free(g->wishes);
	free(g->groups);
	free(g->firsts);
}
