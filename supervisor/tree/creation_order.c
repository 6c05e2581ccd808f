/*
 * creation_order.c - nodes are added for helpers, each node gets a creator, and in the end it
 * is checked that parents and sessions come out right.
 */
#include "supervisor/tree/creation_order.h"

#include <linux/sched.h>
#include <signal.h>
#include <string.h>

#define NONE ((size_t)-1)

size_t creation_order_count(const struct creation_order *f)
{
	return buf_count(&f->nodes, struct creation_node);
}

struct creation_node *creation_order_at(const struct creation_order *f, size_t node)
{
	BUG_ON(node >= creation_order_count(f));
	return buf_at(&f->nodes, struct creation_node, node);
}

void creation_order_free(struct creation_order *f)
{
	buf_free(&f->nodes);
}

static size_t find_node(const struct creation_order *f, pid_t pid)
{
	for (size_t i = 0; i < creation_order_count(f); i++)
		if (creation_order_at(f, i)->pid == pid)
			return i;
	return NONE;
}

static size_t add_helper(struct creation_order *f, pid_t pid, pid_t sid, size_t creator)
{
	struct creation_node helper = {
		.kind = CREATE_HELPER,
		.pid = pid,
		.sid = sid,
		.creator = creator,
		.exit_signal = SIGCHLD,
	};

	buf_push(&f->nodes, struct creation_node, &helper);
	return creation_order_count(f) - 1;
}

static size_t helper_of(struct creation_order *f, size_t node, pid_t sid, bool early)
{
	size_t successor;

	if (!creation_order_at(f, node)->has_successor) {
		successor = add_helper(f, 0, sid, node);
		creation_order_at(f, successor)->early = early;
		creation_order_at(f, node)->successor = successor;
		creation_order_at(f, node)->has_successor = true;
	}
	return creation_order_at(f, node)->successor;
}

/* A helper or zombie in session @sid: its end makes its children orphans. */
static size_t ending_node_in_session(struct creation_order *f, pid_t sid)
{
	size_t leader;

	/* The root is in the supervisor's session, at first in any case. */
	if (!sid)
		return helper_of(f, 0, 0, true);
	leader = find_node(f, sid);
	if (leader == NONE) {
		leader = add_helper(f, sid, sid, ending_node_in_session(f, 0));
		creation_order_at(f, leader)->pgid = sid;
	}
	if (creation_order_at(f, leader)->kind != CREATE_LIVING)
		return leader;
	/* The root's only helper so far may be one for the other session. */
	if (!leader)
		return add_helper(f, 0, sid, 0);
	return helper_of(f, leader, sid, false);
}

/* The session that a node is in before it creates its own. */
static pid_t session_when_created(const struct creation_order *f, size_t node)
{
	const struct creation_node *n = creation_order_at(f, node), *creator;

	if (!node)
		return 0;
	if (n->sid != n->pid)
		return n->sid;
	creator = creation_order_at(f, n->creator);
	return n->early ? session_when_created(f, n->creator) : creator->sid;
}

static bool descends_from(const struct creation_order *f, size_t node, size_t from)
{
	while (node && node != from)
		node = creation_order_at(f, node)->creator;
	return node == from;
}

/* Find who makes node @i in session @sid, in which its @parent has never been: that has taken
 * it over as an orphan (PR_SET_CHILD_SUBREAPER) from a process in it, which descended from
 * @parent. With NONE the supervisor has. */
static void find_maker_in_session(struct creation_order *f, size_t i, size_t parent, pid_t sid)
{
	size_t creator;

	if (parent != NONE && sid && find_node(f, sid) == NONE) {
		creator = add_helper(f, sid, sid, parent);
		creation_order_at(f, creator)->pgid = sid;
	} else {
		creator = ending_node_in_session(f, sid);
	}
	/* Where it would descend from itself, it is found in the end that this is not it. */
	if (descends_from(f, creator, i))
		return;
	creation_order_at(f, i)->creator = creator; /* the nodes have moved */
	if (parent != NONE)
		creation_order_at(f, parent)->adopts = true;
}

/* Whether @node, the first of a session, can have been created in session @sid: also before its
 * creator founded a session, or by a process that has ended, unless that has been decided already.
 */
static bool place_in_session(struct creation_order *f, size_t node, pid_t sid)
{
	struct creation_node *n = creation_order_at(f, node);
	const struct creation_node *creator = creation_order_at(f, n->creator);

	if (session_when_created(f, node) == sid)
		return true;
	for (size_t i = 1; i < creation_order_count(f); i++)
		if (creation_order_at(f, i)->creator == node && creation_order_at(f, i)->early)
			return false;
	if (!node || n->early)
		return false;
	/* The nodes move as helpers come. */
	if (creator->sid == creator->pid && place_in_session(f, n->creator, sid))
		creation_order_at(f, node)->early = true;
	else if (node < f->count)
		find_maker_in_session(f, node,
			f->list[node].ppid ? find_node(f, f->list[node].ppid) : NONE, sid);
	return session_when_created(f, node) == sid;
}

static void find_creator(struct creation_order *f, size_t i)
{
	const struct creation_node *n = creation_order_at(f, i),
				   *parent = creation_order_at(f, n->creator);
	size_t creator = n->creator;
	pid_t sid = n->sid;

	if (!f->list[i].ppid)
		find_maker_in_session(f, i, NONE, sid == n->pid ? 0 : sid);
	else if (sid == n->pid || sid == parent->sid)
		return;
	else if (parent->sid == parent->pid && place_in_session(f, creator, sid))
		creation_order_at(f, i)->early = true;
	else
		find_maker_in_session(f, i, creator, sid);
}

/* The parent that process @node has when it is created; NONE: the supervisor. */
static size_t parent_when_created(const struct creation_order *f, size_t node)
{
	while (node && creation_order_at(f, node)->shares & CLONE_PARENT)
		node = creation_order_at(f, node)->creator;
	return node ? creation_order_at(f, node)->creator : NONE;
}

/* Its parent when all helpers have ended (find_new_reaper() in the kernel); 0: no process of the
 * tree. */
static pid_t parent_in_the_end(const struct creation_order *f, size_t node)
{
	size_t at = parent_when_created(f, node);
	bool orphan = false;

	while (at != NONE) {
		const struct creation_node *n = creation_order_at(f, at);

		if (n->kind == CREATE_LIVING && (n->adopts || !orphan))
			return n->pid;
		orphan = true;
		at = parent_when_created(f, at);
	}
	return 0;
}

static bool has_its_session(const struct creation_order *f, size_t node)
{
	const struct creation_node *n = creation_order_at(f, node);
	pid_t sid = n->early ? session_when_created(f, n->creator)
			     : creation_order_at(f, n->creator)->sid;

	return n->sid == n->pid || n->sid == sid;
}

/* That what has been worked out for one is still so after what has been for others. */
static int check_parents(const struct creation_order *f, struct err *e)
{
	for (size_t i = 1; i < f->count; i++) {
		const struct image_job_process *p = &f->list[i];
		cleanup_free char *session = p->sid ? xasprintf("session %d", p->sid)
						    : xstrdup("trecr's own session");

		if (parent_in_the_end(f, i) != p->ppid || !has_its_session(f, i))
			return err_set(e, 0,
				"process %d is in %s, but its parent %d has never been in it, "
				"nor a process whose orphan it could be: that cannot be "
				"restored (try again when process %d has ended)",
				p->pid, session, p->ppid, p->pid);
	}
	return 0;
}

/* ---- what is shared ---- */

static const uint64_t clone_flags[IMAGE_SHARED_KINDS] = {
	[IMAGE_SHARED_MEMORY] = CLONE_VM,
	[IMAGE_SHARED_FILES] = CLONE_FILES,
	[IMAGE_SHARED_DIRECTORY] = CLONE_FS,
	[IMAGE_SHARED_SIGNALS] = CLONE_SIGHAND,
};

/* What process @i has in common with earlier ones. */
static uint32_t shared_by(const struct creation_order *f, size_t i)
{
	uint32_t flags = 0;

	for (int k = 0; k < IMAGE_SHARED_KINDS; k++)
		if (f->sharing[i].with[k] != i)
			flags |= clone_flags[k];
	return flags;
}

/* Whether process @other shares all that @i shares with earlier processes. */
static bool shares_as_much(const struct creation_order *f, size_t other, size_t i)
{
	for (int k = 0; k < IMAGE_SHARED_KINDS; k++) {
		uint32_t with = f->sharing[i].with[k];

		if (with != i && f->sharing[other].with[k] != with)
			return false;
	}
	return true;
}

/* Whether process @maker can create a process in the session of @i, and whether it must do so
 * before it creates a session (@early). */
static bool can_create_in_session(
	const struct creation_order *f, size_t maker, size_t i, bool *early)
{
	const struct creation_node *n = creation_order_at(f, i);

	*early = n->sid != n->pid && n->sid != creation_order_at(f, maker)->sid;
	return !*early || n->sid == session_when_created(f, maker);
}

static bool is_sibling(const struct creation_order *f, size_t maker, size_t i)
{
	const struct creation_node *n = creation_order_at(f, i),
				   *m = creation_order_at(f, maker);

	/* Made by CLONE_PARENT, it gets its maker's. */
	if (f->list[maker].ppid != f->list[i].ppid || m->exit_signal != n->exit_signal)
		return false;
	return !maker || m->creator == n->creator || m->shares & CLONE_PARENT;
}

/* A helper that shares it all stands between @maker and the orphan @i. */
static size_t add_go_between(struct creation_order *f, size_t maker, size_t i, bool early)
{
	pid_t sid = creation_order_at(f, early ? i : maker)->sid;
	size_t helper = add_helper(f, 0, sid, maker);

	creation_order_at(f, helper)->shares = shared_by(f, i);
	creation_order_at(f, helper)->early = early;
	return helper;
}

static int find_maker(struct creation_order *f, size_t i, struct err *e)
{
	size_t parent = creation_order_at(f, i)->creator;
	bool early;

	/* The process is an orphan, whether adopted or not. */
	if (!f->list[i].ppid || parent >= f->count || f->list[parent].pid != f->list[i].ppid)
		parent = NONE;
	creation_order_at(f, i)->shares = shared_by(f, i);
	if (parent != NONE && shares_as_much(f, parent, i))
		return 0;
	for (size_t k = 0; k < i; k++) {
		if (!shares_as_much(f, k, i) || !can_create_in_session(f, k, i, &early) ||
			!is_sibling(f, k, i))
			continue;
		creation_order_at(f, i)->creator = k;
		creation_order_at(f, i)->early = early;
		creation_order_at(f, i)->shares |= CLONE_PARENT;
		return 0;
	}
	for (size_t k = 0; parent == NONE && k < i; k++) {
		if (!shares_as_much(f, k, i) || !can_create_in_session(f, k, i, &early))
			continue;
		creation_order_at(f, i)->creator = add_go_between(f, k, i, early);
		creation_order_at(f, i)->early = false;
		return 0;
	}
	return err_set(e, 0,
		"process %d (child of %d) shares memory or descriptors with processes that "
		"cannot have created it, which cannot be restored",
		f->list[i].pid, f->list[i].ppid);
}

static int find_makers(struct creation_order *f, struct err *e)
{
	for (size_t i = 0; i < f->count; i++)
		creation_order_at(f, i)->exit_signal = f->sharing[i].exit_signal;
	for (size_t i = 1; i < f->count; i++)
		if (shared_by(f, i) && find_maker(f, i, e))
			return -1;
	for (size_t i = 0; i < f->count; i++) {
		struct creation_node *n = creation_order_at(f, i);
		pid_t ppid = f->list[i].ppid;
		size_t parent = ppid ? find_node(f, ppid) : NONE;

		for (int k = 0; k < IMAGE_SHARED_KINDS; k++) {
			n->stays |= f->sharing[i].with[k] != i;
			creation_order_at(f, f->sharing[i].with[k])->stays |=
				f->sharing[i].with[k] != i;
		}
		if (n->exit_signal == SIGCHLD)
			continue;
		n->stays = true;
		if (parent != NONE)
			creation_order_at(f, parent)->stays = true;
	}
	return 0;
}

/* ---- */

static int find_group(struct creation_order *f, size_t i, struct err *e)
{
	pid_t pgid = creation_order_at(f, i)->pgid, sid = creation_order_at(f, i)->sid;
	size_t leader;

	if (!pgid)
		return !sid ? 0
			    : err_set(e, 0,
				      "process %d is in the supervisor's process group, but "
				      "in another session",
				      creation_order_at(f, i)->pid);
	leader = find_node(f, pgid);
	if (leader == NONE) {
		size_t creator = ending_node_in_session(f, sid);

		leader = add_helper(f, pgid, sid, creator);
	}
	if (creation_order_at(f, leader)->sid != sid)
		return err_set(e, 0,
			"process %d is in process group %d, which is of another session",
			creation_order_at(f, i)->pid, pgid);
	/* A process that creates a session is the first of a group, too. */
	creation_order_at(f, leader)->leads = pgid != sid;
	return 0;
}

/* An image can claim that a process descends from itself. */
static int check_roots(const struct creation_order *f, struct err *e)
{
	for (size_t i = 0; i < creation_order_count(f); i++) {
		size_t at = i, steps = 0;

		while (at && steps++ < creation_order_count(f))
			at = creation_order_at(f, at)->creator;
		if (at)
			return err_set(e, 0, "process %d descends from itself",
				creation_order_at(f, i)->pid);
	}
	return 0;
}

int creation_order_plan(struct creation_order *f, const struct image_job_process *list,
	const struct image_sharing *sharing, size_t count, struct err *e)
{
	memset(f, 0, sizeof(*f));
	f->list = list;
	f->sharing = sharing;
	f->count = count;
	for (size_t i = 0; i < count; i++) {
		struct creation_node node = {
			.kind = list[i].flags & IMAGE_JOB_PROCESS_ZOMBIE ? CREATE_ZOMBIE
									 : CREATE_LIVING,
			.pid = list[i].pid,
			.pgid = list[i].pgid,
			.sid = list[i].sid,
			.exit_signal = SIGCHLD,
		};

		buf_push(&f->nodes, struct creation_node, &node);
	}
	if (list[0].sid && list[0].sid != list[0].pid)
		return err_set(e, 0,
			"process %d is in session %d, which no process of the tree leads",
			list[0].pid, list[0].sid);
	for (size_t i = 1; i < count; i++)
		if (list[i].ppid)
			creation_order_at(f, i)->creator = find_node(f, list[i].ppid);
	for (size_t i = 1; i < count; i++)
		find_creator(f, i);
	if (sharing && find_makers(f, e))
		return -1;
	for (size_t i = 0; i < count; i++)
		if (find_group(f, i, e))
			return -1;
	return check_roots(f, e) || check_parents(f, e) ? -1 : 0;
}
