#include "supervisor/job/namespace_groups.h"

#include <string.h>

/* Lower ones the kernel gives out only once, when the namespace is new. */
#define FIRST_ID 300

static size_t id_count(const struct buf *ids)
{
	return buf_count(ids, pid_t);
}

/* Add @more to @ids, or leave @ids as it is and return false where both have an id. */
static bool unite(struct buf *ids, const struct buf *more)
{
	cleanup_buf struct buf all = {0};
	size_t a = 0, b = 0;

	buf_reserve(&all, ids->len + more->len);
	while (a < id_count(ids) || b < id_count(more)) {
		const pid_t *left = a < id_count(ids) ? buf_at(ids, pid_t, a) : NULL;
		const pid_t *right = b < id_count(more) ? buf_at(more, pid_t, b) : NULL;

		if (left && right && *left == *right)
			return false;
		if (!right || (left && *left < *right)) {
			buf_push(&all, pid_t, left);
			a++;
		} else {
			buf_push(&all, pid_t, right);
			b++;
		}
	}
	buf_free(ids);
	*ids = all;
	all = (struct buf){0};
	return true;
}

/* Where the longest run of ids begins that nobody needs. */
static pid_t first_free(const struct buf *ids, pid_t limit)
{
	pid_t from = FIRST_ID, best = FIRST_ID, longest = 0;

	for (size_t i = 0; i <= id_count(ids); i++) {
		pid_t to = i < id_count(ids) ? *buf_at(ids, pid_t, i) : limit;

		if (to - from > longest) {
			longest = to - from;
			best = from;
		}
		if (to >= from)
			from = to + 1;
	}
	return best;
}

/* Whether any rank of its place that may share a namespace makes that a user namespace, too. */
static bool may_have_users(const struct rank_wish *wishes, int count, const char *place)
{
	for (int i = 0; i < count; i++)
		if (wishes[i].user && !wishes[i].apart && !strcmp(wishes[i].place, place))
			return true;
	return false;
}

static bool is_same_owner(const struct rank_wish *a, const struct rank_wish *b)
{
	return a->uid == b->uid && a->gid == b->gid;
}

/* Have rank @maker and those behind it come together that can. */
static void form_group(
	const struct rank_wish *wishes, int count, int maker, struct rank_room *rooms)
{
	const struct rank_wish *first = &wishes[maker];
	struct shared_namespace_plan plan = {0};
	cleanup_buf struct buf ids = {0};
	bool users = may_have_users(wishes, count, first->place), needed = false;
	int members = 0;

	for (int i = maker; i < count; i++) {
		const struct rank_wish *w = &wishes[i];

		/* A user namespace has the user and the group of who makes it, and no others. */
		if (w->apart || rooms[i].maker >= 0 || strcmp(w->place, first->place) ||
			(users && !is_same_owner(w, first)) || !unite(&ids, &w->ids))
			continue;
		rooms[i].maker = maker;
		plan.user |= w->user;
		needed |= w->needed;
		members++;
	}
	plan.first_free = first_free(&ids, first->id_limit);
	for (int i = maker; i < count; i++) {
		if (rooms[i].maker != maker)
			continue;
		rooms[i].plan = plan;
		if (!needed || members == 1)
			rooms[i].maker = -1;
	}
}

/* Whether a rank of the same place has another room than rank @i, and one of them all wants that not to be. */
static bool is_divided(
	const struct rank_wish *wishes, int count, int i, const struct rank_room *rooms)
{
	bool others = false, whole = false;

	for (int k = 0; k < count; k++) {
		if (strcmp(wishes[k].place, wishes[i].place) != 0)
			continue;
		others |= rooms[k].maker != rooms[i].maker;
		whole |= wishes[k].whole;
	}
	return others && whole;
}

/* Rooms that not all of their place have go, one after the other: those that are left are divided still. */
static void give_up_divided(const struct rank_wish *wishes, int count, struct rank_room *rooms)
{
	for (int i = 0; i < count; i++) {
		int maker = rooms[i].maker;

		if (maker != i || !is_divided(wishes, count, i, rooms))
			continue;
		for (int k = i; k < count; k++)
			if (rooms[k].maker == maker)
				rooms[k].maker = -1;
	}
}

void namespace_groups(const struct rank_wish *wishes, int count, struct rank_room *rooms)
{
	for (int i = 0; i < count; i++)
		rooms[i] = (struct rank_room){.maker = -1};
	for (int i = 0; i < count; i++)
		if (!wishes[i].apart && rooms[i].maker < 0)
			form_group(wishes, count, i, rooms);
	give_up_divided(wishes, count, rooms);
}
