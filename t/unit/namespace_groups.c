/*
 * Which ranks of a restarted job share a pid namespace (supervisor/job/namespace_groups.c): never two that need one id, two
 * of different nodes, or one that is to be apart; and the ids that are free there are nobody's.
 */
#include <stdlib.h>

#include "supervisor/job/namespace_groups.h"
#include "t/unit/tap.h"

#define RANKS 6
#define LIMIT 32768

static struct rank_wish wishes[RANKS];
static struct namespace_group groups[RANKS];

static void forget(void)
{
	for (int i = 0; i < RANKS; i++)
		buf_free(&wishes[i].ids);
	memset(wishes, 0, sizeof(wishes));
}

/* Ids @first to @last. */
static void add_ids(int rank, pid_t first, pid_t last)
{
	for (pid_t id = first; id <= last; id++)
		buf_push(&wishes[rank].ids, pid_t, &id);
}

static struct rank_wish *wish(int rank, const char *place, bool needed, pid_t first, pid_t last)
{
	struct rank_wish *w = &wishes[rank];

	snprintf(w->place, sizeof(w->place), "%s", place);
	w->needed = needed;
	w->id_limit = LIMIT;
	add_ids(rank, first, last);
	return w;
}

/* Their makers, one digit each; - for a rank by itself. */
static const char *makers(int count)
{
	static char text[RANKS + 1];

	namespace_groups(wishes, count, groups);
	for (int i = 0; i < count; i++)
		text[i] = groups[i].maker < 0 ? '-' : '0' + groups[i].maker;
	text[count] = 0;
	return text;
}

static void come_together(int count, const char *want, const char *name)
{
	const char *got = makers(count);

	if (!ok(!strcmp(got, want), "%s", name))
		diag("got '%s', wanted '%s'", got, want);
}

static void check_groups(void)
{
	wish(0, "a", false, 400, 402);
	wish(1, "a", false, 403, 405);
	come_together(2, "--", "none needs a namespace");
	wishes[1].needed = true;
	wish(2, "b", true, 406, 407);
	come_together(3, "00-", "one does: those of its node come along");
	wishes[1].user = true;
	makers(3);
	ok(groups[0].plan.user && groups[1].plan.user, "what one needs all of them have");
	wishes[0].apart = true;
	come_together(3, "---", "but for one that is to be apart");
	forget();

	wish(0, "a", true, 400, 402)->gid = 10;
	wish(1, "a", true, 403, 405)->gid = 11;
	wish(2, "a", true, 406, 407)->gid = 10;
	wish(3, "a", true, 408, 409)->gid = 11;
	wishes[3].uid = 1;
	come_together(4, "0000", "of different groups, without a user namespace");
	wishes[2].user = true;
	come_together(4, "0-0-", "but not where they have one, which maps one group only");
	wishes[3].uid = 0;
	come_together(4, "0101", "and each group its own");
	wishes[0].whole = true;
	come_together(4, "----", "nor where one is to be with all of its node");
	forget();

	wish(0, "a", true, 400, 402);
	wish(1, "a", true, 402, 403);
	wish(2, "a", true, 404, 405);
	wish(3, "a", true, 401, 401);
	add_ids(3, 500, 500);
	come_together(4, "0101", "no two have one id");
	wish(4, "b", true, 400, 400);
	wish(5, "b", true, 401, 401)->whole = true;
	come_together(6, "010144", "of another node neither");
	wishes[3].whole = true;
	come_together(
		6, "----44", "but none share one that will be with all of its node or none");
	wishes[3].whole = false;
	buf_free(&wishes[4].ids);
	buf_free(&wishes[5].ids);
	wishes[0].needed = wishes[2].needed = false;
	wishes[1].needed = wishes[3].needed = false;
	wish(4, "a", true, 400, 400);
	come_together(5, "-1111", "a group that nobody needs is none, and keeps nobody");
	forget();
}

static void check_first_free(void)
{
	wish(0, "a", true, 5, 7);
	wish(1, "a", true, 320, 330);
	makers(2);
	ok(groups[0].plan.first_free == 331, "ids are free behind low ones");
	add_ids(0, 30000, 32767);
	makers(2);
	ok(groups[1].plan.first_free == 331, "between others");
	add_ids(1, 20000, 29000);
	makers(2);
	ok(groups[0].plan.first_free == 331, "in the longest gap");
	forget();
	wish(0, "a", true, 20000, 20000);
	wish(1, "a", true, 32767, 32767);
	makers(2);
	ok(groups[0].plan.first_free == 300,
		"from the first on that is not given out only once");
	forget();
}

static unsigned chance(unsigned n)
{
	static uint64_t seed = 88172645463325252u;

	seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
	return (seed >> 11) % n;
}

static bool have_one_id(const struct buf *a, const struct buf *b)
{
	for (size_t i = 0; i < buf_count(a, pid_t); i++)
		if (bsearch(buf_at(a, pid_t, i), b->data, buf_count(b, pid_t), sizeof(pid_t),
			    compare_ints))
			return true;
	return false;
}

static bool is_right(int a, int b)
{
	if (groups[a].maker >= 0 && groups[a].maker != groups[b].maker &&
		!strcmp(wishes[a].place, wishes[b].place) &&
		(wishes[a].whole || wishes[b].whole))
		return false;
	if (groups[a].maker < 0 || groups[a].maker != groups[b].maker)
		return true;
	return !strcmp(wishes[a].place, wishes[b].place) && !wishes[a].apart &&
	       !wishes[b].apart && !have_one_id(&wishes[a].ids, &wishes[b].ids);
}

/* A group of several, whose maker is one of them, and in which somebody needs it. */
static bool is_group(int maker)
{
	bool needed = false;
	int members = 0;

	for (int i = 0; i < RANKS; i++) {
		members += groups[i].maker == maker;
		needed |= groups[i].maker == maker && wishes[i].needed;
		if (groups[i].maker == maker &&
			bsearch(&groups[maker].plan.first_free, wishes[i].ids.data,
				buf_count(&wishes[i].ids, pid_t), sizeof(pid_t), compare_ints))
			return false;
	}
	return groups[maker].maker == maker && needed && members > 1;
}

static bool try_by_chance(void)
{
	bool right = true;

	for (int i = 0; i < RANKS; i++) {
		pid_t id = 290 + chance(10);

		wish(i, chance(2) ? "a" : "b", chance(3) == 0, id, id + chance(8));
		wishes[i].apart = chance(5) == 0;
		wishes[i].whole = chance(10) == 0;
	}
	makers(RANKS);
	for (int a = 0; a < RANKS; a++) {
		for (int b = 0; b < RANKS; b++)
			right &= a == b || is_right(a, b);
		right &= groups[a].maker < 0 || is_group(groups[a].maker);
	}
	forget();
	return right;
}

int main(void)
{
	int wrong = 0;

	check_groups();
	check_first_free();
	for (int i = 0; i < 20000; i++)
		wrong += !try_by_chance();
	ok(!wrong, "of 20000 jobs by chance, all are right (%d are not)", wrong);
	return done_testing();
}
