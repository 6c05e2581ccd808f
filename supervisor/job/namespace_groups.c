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
	const struct rank_wish *wishes, int count, int maker, struct namespace_group *groups)
{
	const struct rank_wish *first = &wishes[maker];
	struct shared_namespace_plan plan = {0};
	cleanup_buf struct buf ids = {0};
	bool users = may_have_users(wishes, count, first->place), needed = false;
	int members = 0;

	for (int i = maker; i < count; i++) {
		const struct rank_wish *w = &wishes[i];

		/* A user namespace has the user and the group of who makes it, and no others. */
		if (w->apart || groups[i].maker >= 0 || strcmp(w->place, first->place) ||
			(users && !is_same_owner(w, first)) || !unite(&ids, &w->ids))
			continue;
		groups[i].maker = maker;
		plan.user |= w->user;
		needed |= w->needed;
		members++;
	}
	plan.first_free = first_free(&ids, first->id_limit);
	for (int i = maker; i < count; i++) {
		if (groups[i].maker != maker)
			continue;
		groups[i].plan = plan;
		if (!needed || members == 1)
			groups[i].maker = -1;
	}
}

/* Whether a rank of the same place is in another group than rank @i, and one of them all wants the place undivided. */
static bool is_divided(
	const struct rank_wish *wishes, int count, int i, const struct namespace_group *groups)
{
	bool others = false, whole = false;

	for (int k = 0; k < count; k++) {
		if (strcmp(wishes[k].place, wishes[i].place) != 0)
			continue;
		others |= groups[k].maker != groups[i].maker;
		whole |= wishes[k].whole;
	}
	return others && whole;
}

/* Dissolve the groups that do not have all ranks of their place, one after the other: the rest is divided still. */
static void dissolve_divided(
	const struct rank_wish *wishes, int count, struct namespace_group *groups)
{
	for (int i = 0; i < count; i++) {
		int maker = groups[i].maker;

		if (maker != i || !is_divided(wishes, count, i, groups))
			continue;
		for (int k = i; k < count; k++)
			if (groups[k].maker == maker)
				groups[k].maker = -1;
	}
}

void namespace_groups(const struct rank_wish *wishes, int count, struct namespace_group *groups)
{
	for (int i = 0; i < count; i++)
		groups[i] = (struct namespace_group){.maker = -1};
	for (int i = 0; i < count; i++)
		if (!wishes[i].apart && groups[i].maker < 0)
			form_group(wishes, count, i, groups);
	dissolve_divided(wishes, count, groups);
}
