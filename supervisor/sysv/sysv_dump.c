/*
 * What the kernel says of System V objects it says by system calls only, in the caller's IPC
 * namespace; and the program may be in another than the supervisor. So a process of the tree
 * asks.
 */
#include "supervisor/sysv/sysv.h"

#include <errno.h>
#include <unistd.h>

#include "lib/notices.h"
#include "lib/util.h"
#include "supervisor/fd/objects_dump.h"
#include "supervisor/sysv/semaphore_undo.h"
#include "supervisor/sysv/sysv_kinds.h"
#include "supervisor/sysv/sysv_owner.h"

struct unclear_objects {
	struct buf names;
	size_t count;
};

/* Where all objects are looked at, and the process of the tree that copies what is its. */
struct search {
	struct fd_dump *d;
	const struct tree *tree;
	bool own_namespace;
	struct buf others; /* struct sysv_other_set */
	/* What may be the tree's, and is not saved: SYSV_PERHAPS_TREE, SYSV_UNUSED. */
	struct unclear_objects ended, unused;
	struct sysv_asker look;
	struct sysv_asker copy; /* another one than above, with no process until there is
				 * something to copy */
};

static struct sysv_asker *asker_for_copies(struct search *s, struct err *e)
{
	if (s->own_namespace)
		return &s->look;
	if (!s->copy.process && sysv_asker_begin(&s->copy, s->tree->processes[0], e)) {
		s->copy.process = NULL;
		return NULL;
	}
	return &s->copy;
}

static enum sysv_owner owner_of(
	struct search *s, const struct sysv_kind *k, const struct sysv_status *o)
{
	struct sysv_other_set set = {o->id, o->size};
	enum sysv_owner owner;

	if (fd_object_numbered(s->d, k->kind, o->id))
		return SYSV_OTHERS; /* known already */
	owner = s->own_namespace ? SYSV_TREE : sysv_owner_of(s->tree, k, o);
	if (owner != SYSV_OTHERS && k->is_left_out && k->is_left_out(s->d, s->tree, o))
		return SYSV_OTHERS;
	if (owner == SYSV_OTHERS && k->has_undo)
		buf_push(&s->others, struct sysv_other_set, &set);
	return owner;
}

/* So many are named. */
#define UNCERTAIN_NAMED 3

static void note_unclear(
	struct unclear_objects *x, const struct sysv_kind *k, const struct sysv_status *o)
{
	if (++x->count <= UNCERTAIN_NAMED)
		buf_printf(&x->names, "%s%s %d", x->count > 1 ? ", " : "", k->what, o->id);
}

static void tell_unclear(struct unclear_objects *x, const char *why)
{
	if (x->count > UNCERTAIN_NAMED)
		buf_printf(&x->names, " and %zu more", x->count - UNCERTAIN_NAMED);
	if (x->count)
		notice_add("not in the checkpoint: %.*s, as %s", (int)x->names.len,
			(const char *)x->names.data, why);
	buf_free(&x->names);
}

static void tell_all_unclear(struct search *s)
{
	tell_unclear(&s->ended, "the processes that used it have ended, and nothing says "
				"whether they were the program's");
	tell_unclear(&s->unused, "nobody has used it yet, and nothing says whether the "
				 "program made it (a restart finds it if it still exists)");
}

/* Before another way to run calls in the tree is begun. */
static int end_copier(struct search *s, int failed, struct err *e)
{
	if (!s->copy.process)
		return failed ? -1 : 0;
	failed = sysv_asker_end(&s->copy, failed, e);
	s->copy.process = NULL;
	return failed;
}

/* A process whose end does something to a set has used it, whichever was the last. */
static int look_for_undo(
	struct search *s, const struct sysv_status *o, enum sysv_owner *owner, struct err *e)
{
	int r = end_copier(s, 0, e) ? -1 : sysv_undo_in_tree(s->tree, o->id, o->size, e);

	if (r > 0)
		*owner = SYSV_TREE;
	return r < 0 ? -1 : 0;
}

static bool is_gone(struct search *s, const struct sysv_kind *k, int id)
{
	struct sysv_status now;
	int r = k->ask(&s->look, IPC_STAT, id, &now, NULL);

	if (!r)
		sysv_status_free(&now);
	return r == EINVAL || r == EIDRM;
}

/* Who is not stopped may have removed it since it was listed: then there is nothing to be saved. */
static int add_object(
	struct search *s, const struct sysv_kind *k, const struct sysv_status *o, struct err *e)
{
	struct sysv_asker *a = asker_for_copies(s, e);
	struct err why = ERR_INIT;
	struct fd_object object;

	if (!a)
		return -1;
	object = sysv_new_object(s->d, k, o);
	if (!k->copy(a, &object, o, &why)) {
		fd_object_add(s->d, &object);
		return 0;
	}
	fd_object_free(&object);
	if (is_gone(s, k, o->id))
		return 0;
	if (e)
		*e = why;
	return -1;
}

static int dump_object(
	struct search *s, const struct sysv_kind *k, struct sysv_status *o, struct err *e)
{
	enum sysv_owner owner = owner_of(s, k, o);

	if (owner == SYSV_PERHAPS_TREE && k->has_undo && look_for_undo(s, o, &owner, e))
		return -1;
	if (owner == SYSV_PERHAPS_TREE || owner == SYSV_UNUSED)
		note_unclear(owner == SYSV_UNUSED ? &s->unused : &s->ended, k, o);
	return owner == SYSV_TREE ? add_object(s, k, o, e) : 0;
}

/* An object of this user's, or of the tree's own namespace, may have a mode that keeps us from looking at it: it is not
 * to be lost all the same. As ask() of struct sysv_kind. */
static int ask_in_any_case(struct search *s, const struct sysv_kind *k, int index,
	struct sysv_status *o, struct err *e)
{
	int r = k->ask(&s->look, k->stat, index, o, e);

	if (r != EACCES)
		return r;
	r = k->ask(&s->look, k->stat_any, index, o, e);
	if (r || s->own_namespace || o->perm.uid == geteuid() || o->perm.cuid == geteuid())
		return r;
	sysv_status_free(o);
	return EACCES;
}

static int dump_kind(struct search *s, const struct sysv_kind *k, struct err *e)
{
	int64_t highest;

	if (k->highest(&s->look, &highest, e))
		return -1;
	for (int64_t i = 0; i <= highest; i++) {
		struct sysv_status o;
		int r = ask_in_any_case(s, k, i, &o, e);

		/* Positive: not there, or an object that this user may not look at. */
		if (!r) {
			r = dump_object(s, k, &o, e);
			sysv_status_free(&o);
		}
		if (r < 0)
			return -1;
	}
	return 0;
}

static int finish_object(
	struct search *s, const struct sysv_kind *k, struct fd_object *o, struct err *e)
{
	int unfinished = k->is_unfinished(o, e);
	struct sysv_asker *a;

	if (unfinished <= 0)
		return unfinished;
	a = asker_for_copies(s, e);
	return a ? k->copy(a, o, NULL, e) : -1;
}

/* What no mapping shows whole. */
static int finish_objects(struct search *s, struct err *e)
{
	struct fd_dump *d = s->d;

	for (uint32_t n = 1; n <= buf_count(&d->objects, struct fd_object); n++) {
		struct fd_object *o = fd_object_at(d, n);
		const struct sysv_kind *k = sysv_kind_of(o->o.kind);

		if (k && k->is_unfinished && finish_object(s, k, o, e))
			return -1;
	}
	return 0;
}

static int dump_all(struct search *s, struct err *e)
{
	for (size_t i = 0; i < SYSV_KINDS; i++)
		if (dump_kind(s, sysv_kinds[i], e))
			return -1;
	return finish_objects(s, e);
}

static int dump_undos(const struct search *s, struct err *e)
{
	for (size_t i = 0; i < s->tree->living; i++)
		if (sysv_dump_undo(s->d, s->tree->processes[i], &s->others, e))
			return -1;
	return 0;
}

int sysv_dump_rest(struct fd_dump *d, const struct tree *tree, struct err *e)
{
	struct search s = {.d = d, .tree = tree, .own_namespace = sysv_has_own_namespace(tree)};
	int failed = 0;

	if (!s.own_namespace)
		sysv_asker_here(&s.look);
	else if (sysv_asker_begin(&s.look, tree->processes[0], e))
		return -1;
	failed = dump_all(&s, e);
	failed = end_copier(&s, failed, e);
	failed = sysv_asker_end(&s.look, failed, e);
	if (!failed)
		failed = dump_undos(&s, e);
	tell_all_unclear(&s);
	buf_free(&s.others);
	return failed;
}
