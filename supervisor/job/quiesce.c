#include "supervisor/job/quiesce.h"

#include <string.h>

struct member {
	struct quiesce_report said;
	struct buf counts; /* struct quiesce_count */
	char call[64];
	bool heard;   /* at all */
	bool news;    /* since quiesce_decide() was asked last */
	bool still;   /* and nothing has changed by that */
	bool visited; /* by release_member() */
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
		buf_free(&r->members[i].counts);
	free(r->members);
	buf_free(&r->limits);
	free(r);
}

/* ---- limits ---- */

static struct quiesce_limit *find_limit(const struct quiesce *r, uint64_t comm)
{
	for (size_t i = 0; i < buf_count(&r->limits, struct quiesce_limit); i++)
		if (buf_at(&r->limits, struct quiesce_limit, i)->comm == comm)
			return buf_at(&r->limits, struct quiesce_limit, i);
	return NULL;
}

static uint64_t limit_of(const struct quiesce *r, uint64_t comm)
{
	const struct quiesce_limit *limit = find_limit(r, comm);

	return limit ? limit->limit : 0;
}

static void raise_limit(struct quiesce *r, uint64_t comm, uint64_t to)
{
	struct quiesce_limit *limit = find_limit(r, comm);
	const struct quiesce_limit first = {comm, to};

	if (to <= limit_of(r, comm))
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

void quiesce_heard(struct quiesce *r, size_t member, const struct quiesce_report *report)
{
	struct member *m = &r->members[member];

	m->still = m->heard && m->said.steps == report->steps && m->said.doing == report->doing;
	m->counts.len = 0;
	buf_add(&m->counts, report->counts, report->count * sizeof(*report->counts));
	m->said = *report;
	m->call[0] = 0;
	if (report->call)
		snprintf(m->call, sizeof(m->call), "%s", report->call);
	m->heard = m->news = true;
	/* What has been entered, all others are to enter, too. */
	for (size_t i = 0; i < report->count; i++)
		raise_limit(r, report->counts[i].comm, report->counts[i].entered);
}

/* Some collective call that others have entered is still before it. */
static bool is_behind(const struct quiesce *r, const struct member *m)
{
	for (size_t i = 0; i < buf_count(&m->counts, struct quiesce_count); i++) {
		const struct quiesce_count *c = buf_at(&m->counts, struct quiesce_count, i);

		if (c->entered < limit_of(r, c->comm))
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

/* Members of @comm; of those, if @behind, the ones that have not entered what others have. */
static void release_of(struct quiesce *r, uint64_t comm, bool behind)
{
	for (size_t i = 0; i < r->count; i++) {
		const struct quiesce_count *c = count_of(&r->members[i], comm);

		if (c && (!behind || c->entered < limit_of(r, comm)))
			release_member(r, i);
	}
}

/* @member is needed: if it is parked it may go one call further, else whom it waits for. */
static void release_member(struct quiesce *r, size_t member)
{
	struct member *m = &r->members[member];
	const struct quiesce_count *c = count_of(m, m->said.comm);

	/* One that is at something may be at what is waited for. */
	if (m->visited || !m->still)
		return;
	m->visited = true;
	switch (m->said.doing) {
	case QUIESCE_RUNS:
		break;
	case QUIESCE_PARKED:
		if (c)
			raise_limit(r, c->comm, c->entered + 1);
		break;
	case QUIESCE_INSIDE:
		release_of(r, m->said.comm, true);
		break;
	case QUIESCE_WAITS:
		if (m->said.peer == QUIESCE_ANY)
			release_of(r, m->said.comm, false);
		else if (m->said.peer >= 0 && (size_t)m->said.peer < r->count)
			release_member(r, m->said.peer);
		break;
	}
}

static void release_all_behind(struct quiesce *r)
{
	for (size_t i = 0; i < r->count; i++)
		r->members[i].visited = false;
	for (size_t i = 0; i < r->count; i++)
		if (is_behind(r, &r->members[i]))
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
		release_all_behind(r);
	if (!r->raised)
		return QUIESCE_WAIT;
	r->raised = false;
	return QUIESCE_RAISE;
}

/* ---- why it takes so long ---- */

static void explain_member(const struct quiesce *r, size_t rank, struct buf *text)
{
	const struct member *m = &r->members[rank];

	buf_printf(text, "%srank %zu ", text->len ? "; " : "", rank);
	switch (m->said.doing) {
	case QUIESCE_RUNS:
		buf_printf(text, "computes, and has not come to a collective call yet that "
				 "others have entered");
		break;
	case QUIESCE_PARKED:
		buf_printf(text, "is kept in front of %s", m->call);
		break;
	case QUIESCE_INSIDE:
		buf_printf(text, "waits in %s for ranks that have not entered it", m->call);
		break;
	case QUIESCE_WAITS:
		if (m->said.peer == QUIESCE_ANY)
			buf_printf(text, "waits in %s for any rank", m->call);
		else
			buf_printf(text, "waits in %s for rank %d", m->call, m->said.peer);
		break;
	}
}

char *quiesce_explain(const struct quiesce *r)
{
	cleanup_buf struct buf text = {0};

	for (size_t i = 0; i < r->count; i++)
		if (!r->members[i].heard)
			buf_printf(
				&text, "%srank %zu has not answered", text.len ? "; " : "", i);
		else if (is_behind(r, &r->members[i]) || is_inside(&r->members[i]))
			explain_member(r, i, &text);
	return xasprintf("%.*s", (int)text.len, text.len ? (char *)text.data : "");
}
