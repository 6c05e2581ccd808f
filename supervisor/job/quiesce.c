/*
 * quiesce.c - the coordinator's decision: from the counts of all members, up to which
 * collective call each may run.
 */
#include "supervisor/job/quiesce.h"

#include <string.h>

struct member {
	uint64_t steps;
	struct buf activities; /* struct quiesce_activity */
	struct buf counts;     /* struct quiesce_count */
	bool heard;            /* at all */
	bool news;             /* since quiesce_decide() was asked last */
	bool still;            /* and nothing has changed by that */
	bool visited;          /* by release_member() */
};

struct quiesce {
	struct member *members;
	size_t count;
	struct buf limits; /* struct quiesce_limit */
	bool raised;       /* since quiesce_decide() was asked last */
};

struct quiesce *quiesce_new(size_t members)
{
	struct quiesce *r = xcalloc(1, sizeof(*r));

	r->members = xcalloc(members, sizeof(*r->members));
	r->count = members;
	return r;
}

void quiesce_free(struct quiesce *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->count; i++)
		buf_free(&r->members[i].activities), buf_free(&r->members[i].counts);
	free(r->members);
	buf_free(&r->limits);
	free(r);
}

/* ---- limits ---- */

struct quiesce_limit *quiesce_find_limit(const struct buf *limits, uint64_t comm)
{
	for (size_t i = 0; i < buf_count(limits, struct quiesce_limit); i++)
		if (buf_at(limits, struct quiesce_limit, i)->comm == comm)
			return buf_at(limits, struct quiesce_limit, i);
	return NULL;
}

uint64_t quiesce_limit_of(const struct buf *limits, uint64_t comm)
{
	const struct quiesce_limit *limit = quiesce_find_limit(limits, comm);

	return limit ? limit->limit : 0;
}

static void raise_limit(struct quiesce *r, uint64_t comm, uint64_t to)
{
	struct quiesce_limit *limit = quiesce_find_limit(&r->limits, comm);
	const struct quiesce_limit first = {comm, to};

	if (to <= quiesce_limit_of(&r->limits, comm))
		return;
	if (limit)
		limit->limit = to;
	else
		buf_push(&r->limits, struct quiesce_limit, &first);
	r->raised = true;
}

const struct quiesce_limit *quiesce_limits(const struct quiesce *r, size_t *count)
{
	*count = buf_count(&r->limits, struct quiesce_limit);
	return r->limits.data;
}

/* ---- what members said ---- */

static const struct quiesce_count *count_of(const struct member *m, uint64_t comm)
{
	for (size_t i = 0; i < buf_count(&m->counts, struct quiesce_count); i++)
		if (buf_at(&m->counts, struct quiesce_count, i)->comm == comm)
			return buf_at(&m->counts, struct quiesce_count, i);
	return NULL;
}

static bool is_at_the_same(const struct member *m, const struct quiesce_report *report)
{
	if (m->steps != report->steps ||
		buf_count(&m->activities, struct quiesce_activity) != report->activity_count)
		return false;
	for (size_t i = 0; i < report->activity_count; i++) {
		const struct quiesce_activity *a =
			buf_at(&m->activities, struct quiesce_activity, i);

		if (a->doing != report->activities[i].doing ||
			a->comm != report->activities[i].comm)
			return false;
	}
	return true;
}

void quiesce_heard(struct quiesce *r, size_t member, const struct quiesce_report *report)
{
	struct member *m = &r->members[member];

	m->still = m->heard && is_at_the_same(m, report);
	m->steps = report->steps;
	m->activities.len = m->counts.len = 0;
	buf_add(&m->activities, report->activities,
		report->activity_count * sizeof(*report->activities));
	buf_add(&m->counts, report->counts, report->count * sizeof(*report->counts));
	m->heard = m->news = true;
	/* What has been entered, all others are to enter, too. */
	for (size_t i = 0; i < report->count; i++)
		raise_limit(r, report->counts[i].comm, report->counts[i].entered);
}

static bool is_missed_by_some(const struct quiesce *r, const struct quiesce_count *c)
{
	size_t reported = 0;

	for (size_t i = 0; i < r->count; i++)
		reported += count_of(&r->members[i], c->comm) != NULL;
	return reported < c->size;
}

/* Some collective call that others have entered is still before it. The last one frees the communicator. */
static bool is_behind(const struct quiesce *r, const struct member *m)
{
	for (size_t i = 0; i < buf_count(&m->counts, struct quiesce_count); i++) {
		const struct quiesce_count *c = buf_at(&m->counts, struct quiesce_count, i);

		if (c->entered < quiesce_limit_of(&r->limits, c->comm) ||
			is_missed_by_some(r, c))
			return true;
	}
	return false;
}

static bool is_inside(const struct member *m)
{
	for (size_t i = 0; i < buf_count(&m->counts, struct quiesce_count); i++) {
		const struct quiesce_count *c = buf_at(&m->counts, struct quiesce_count, i);

		if (c->left < c->entered)
			return true;
	}
	return false;
}

static bool all_at_rest(const struct quiesce *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (is_behind(r, &r->members[i]) || is_inside(&r->members[i]))
			return false;
	return true;
}

/* ---- members that others wait for continue ---- */

static void release_member(struct quiesce *r, size_t member);

/* Members of @comm; if @behind, only members that have not entered what others have. */
static void release_of(struct quiesce *r, uint64_t comm, bool behind)
{
	for (size_t i = 0; i < r->count; i++) {
		const struct quiesce_count *c = count_of(&r->members[i], comm);

		if (c && (!behind || c->entered < quiesce_limit_of(&r->limits, comm)))
			release_member(r, i);
	}
}

/* A thread that is parked may go one call further, else the threads that it waits for. */
static void release_thread(
	struct quiesce *r, const struct member *m, const struct quiesce_activity *a)
{
	const struct quiesce_count *c = count_of(m, a->comm);

	switch (a->doing) {
	case QUIESCE_PARKED:
		if (c)
			raise_limit(r, c->comm, c->entered + 1);
		break;
	case QUIESCE_INSIDE:
		release_of(r, a->comm, true);
		break;
	case QUIESCE_WAITS:
		if (a->peer == QUIESCE_ANY)
			release_of(r, a->comm, false);
		else if (a->peer >= 0 && (size_t)a->peer < r->count)
			release_member(r, a->peer);
		break;
	}
}

/* @member is needed. */
static void release_member(struct quiesce *r, size_t member)
{
	struct member *m = &r->members[member];

	/* A member that is at something may be at what is waited for. */
	if (m->visited || !m->still)
		return;
	m->visited = true;
	for (size_t i = 0; i < buf_count(&m->activities, struct quiesce_activity); i++)
		release_thread(r, m, buf_at(&m->activities, struct quiesce_activity, i));
}

/* A member in a call that all have entered may be in another one inside of it, or wait for members that no
 * count shows. */
static void release_all_needed(struct quiesce *r)
{
	for (size_t i = 0; i < r->count; i++)
		r->members[i].visited = false;
	for (size_t i = 0; i < r->count; i++)
		if (is_behind(r, &r->members[i]) || is_inside(&r->members[i]))
			release_member(r, i);
}

enum quiesce_verdict quiesce_decide(struct quiesce *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (!r->members[i].news)
			return QUIESCE_WAIT;
	for (size_t i = 0; i < r->count; i++)
		r->members[i].news = false;
	if (all_at_rest(r) && !r->raised)
		return QUIESCE_REACHED;
	if (!r->raised)
		release_all_needed(r);
	if (!r->raised)
		return QUIESCE_WAIT;
	r->raised = false;
	return QUIESCE_RAISE;
}

/* ---- why it takes so long ---- */

static void explain_thread(const struct quiesce_activity *a, struct buf *text)
{
	switch (a->doing) {
	case QUIESCE_PARKED:
		buf_printf(text, "is kept in front of %s", a->call);
		break;
	case QUIESCE_INSIDE:
		buf_printf(text, "waits in %s for ranks that have not entered it", a->call);
		break;
	case QUIESCE_WAITS:
		if (a->peer == QUIESCE_ANY)
			buf_printf(text, "waits in %s for any rank", a->call);
		else
			buf_printf(text, "waits in %s for rank %d", a->call, a->peer);
		break;
	}
}

static void explain_member(const struct quiesce *r, size_t rank, struct buf *text)
{
	const struct member *m = &r->members[rank];
	size_t count = buf_count(&m->activities, struct quiesce_activity);

	buf_printf(text, "%srank %zu ", text->len ? "; " : "", rank);
	if (!count)
		buf_printf(text, is_behind(r, m)
					 ? "computes, or waits for memory that ranks share "
					   "(MPI_Win_sync in "
					   "such a loop shows it), and has not come to a "
					   "collective call "
					   "yet that others have entered"
					 : "computes, or waits for memory that ranks share");
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_printf(text, ", ");
		explain_thread(buf_at(&m->activities, struct quiesce_activity, i), text);
	}
}

/* With the ranks that it waits for: one of them may do something else than calls of MPI. */
static void explain_chain(const struct quiesce *r, size_t rank, bool *told, struct buf *text)
{
	const struct member *m = &r->members[rank];

	if (told[rank])
		return;
	told[rank] = true;
	explain_member(r, rank, text);
	for (size_t i = 0; i < buf_count(&m->activities, struct quiesce_activity); i++) {
		const struct quiesce_activity *a =
			buf_at(&m->activities, struct quiesce_activity, i);

		for (size_t k = 0; k < r->count && a->doing == QUIESCE_WAITS; k++)
			if (a->peer == (int)k ||
				(a->peer == QUIESCE_ANY && !buf_count(&r->members[k].activities,
								   struct quiesce_activity)))
				explain_chain(r, k, told, text);
	}
}

char *quiesce_explain(const struct quiesce *r)
{
	cleanup_free bool *told = xcalloc(r->count, sizeof(*told));
	cleanup_buf struct buf text = {0};

	for (size_t i = 0; i < r->count; i++)
		if (!r->members[i].heard)
			buf_printf(
				&text, "%srank %zu has not answered", text.len ? "; " : "", i);
		else if (is_behind(r, &r->members[i]) || is_inside(&r->members[i]))
			explain_chain(r, i, told, &text);
	return xasprintf("%.*s", (int)text.len, text.len ? (char *)text.data : "");
}
