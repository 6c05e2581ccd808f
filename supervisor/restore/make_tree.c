/*
 * make_tree.c - all processes of the tree are made by the first, and by each other, each before
 * or after its maker has founded its session (sessions_and_groups.c). The new processes stand
 * still all the time, but for the calls that they are told to make, one after the other
 * (newborn_call.h): so each step is done when the next one begins, and it is all the same
 * whether they share memory.
 */
#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/limits.h"
#include "supervisor/restore/restart_attempt.h"
#include "supervisor/restore/restore_stage.h"

/* Where helpers' ids are looked for. */
#define HELPER_ID_FIRST 300

/* ---- errors ---- */

int restore_prefix_node(struct restore *r, size_t node)
{
	const struct creation_order *order = &r->creation.order;

	return node && node < order->count
		       ? err_prefix(r->e, "process %d (%s)", order->list[node].pid,
				 image_string(r->c->job, order->list[node].comm))
		       : -1;
}

int restore_node_call(struct restore *r, size_t node, const char *what, int64_t *result,
	long nr, const uint64_t args[6])
{
	if (newborn_call(r, &r->newborns[node], result, nr, args))
		return -1;
	if (*result >= 0)
		return 0;
	err_set(r->e, -*result, "cannot %s", what);
	return restore_prefix_node(r, node);
}

/* ---- making children ---- */

/* Any id will do for a helper that is in nobody's way: what the kernel would choose may be an
 * id that a process or thread to come has to get. */
int restore_make_helper(struct restore *r, struct newborn *maker, struct newborn *made,
	uint64_t flags, int exit_signal)
{
	int64_t result = -EEXIST;

	if (!r->helper_id)
		r->helper_id = HELPER_ID_FIRST;
	for (; result == -EEXIST; r->helper_id++)
		if (!creation_needs(&r->creation, r->helper_id) &&
			newborn_clone(
				r, maker, made, flags, r->helper_id, exit_signal, &result))
			return -1;
	return result < 0 ? limit_err(r->e, -result, SYS_clone3, "cannot create a helper") : 0;
}

static int make_process(struct restore *r, size_t node, struct newborn *maker)
{
	const struct creation_node *n = creation_order_at(&r->creation.order, node);
	int64_t result;

	if (newborn_clone(
		    r, maker, &r->newborns[node], n->shares, n->pid, n->exit_signal, &result))
		return -1;
	if (result == -EEXIST) {
		r->id_taken = true;
		return err_with(r->e, ERR_ID_TAKEN, "process id %d is in use", n->pid);
	}
	return result < 0 ? limit_err(r->e, -result, SYS_clone3,
				    "cannot create a process with id %d", n->pid)
			  : 0;
}

/* Process @node has been made: fill in its struct new_process, which describes it from now on. */
static void record_process(struct restore *r, size_t node)
{
	struct new_process *np = &r->processes[node];
	struct tracee *t = &np->process.threads[0].tracee;

	np->process.pid = np->process.task = t->pid = t->tid = r->newborns[node].t.tid;
	restore_advance(np, RESTORE_MADE);
}

static int make_child(struct restore *r, size_t node)
{
	const struct creation_node *n = creation_order_at(&r->creation.order, node);
	struct newborn *maker = &r->newborns[n->creator];

	if (n->pid ? make_process(r, node, maker)
		   : restore_make_helper(
			     r, maker, &r->newborns[node], n->shares, n->exit_signal))
		return restore_prefix_node(r, n->creator);
	if (node < r->count)
		record_process(r, node);
	return 0;
}

static int make_children(struct restore *r, size_t node, bool early)
{
	bool passes = true;

	for (size_t i = 1; i < creation_order_count(&r->creation.order); i++) {
		const struct creation_node *n = creation_order_at(&r->creation.order, i);

		if (n->creator == node && n->early == early &&
			(restore_pass_inherited(r, node, i, &passes) || make_child(r, i)))
			return -1;
	}
	return restore_pass_inherited(r, node, node, &passes);
}

/* Create @node's children, and the children of each. */
static int create_children(struct restore *r, size_t node)
{
	const struct creation_node *n = creation_order_at(&r->creation.order, node);
	int64_t result;

	/* Its children are to know of it from the start; add_prctls() has the final word. */
	if (n->adopts && NODE_CALL(r, node, "become the parent of orphans", &result, SYS_prctl,
				 PR_SET_CHILD_SUBREAPER, 1))
		return -1;
	if (restore_fill_inherited(r, node) || make_children(r, node, true) ||
		(n->pid && n->sid == n->pid && restore_found_session(r, node)) ||
		make_children(r, node, false))
		return -1;
	for (size_t i = 1; i < creation_order_count(&r->creation.order); i++)
		if (creation_order_at(&r->creation.order, i)->creator == node &&
			create_children(r, i))
			return -1;
	return 0;
}

int restore_make_tree(struct restore *r)
{
	return create_children(r, 0);
}

/* ---- ends ---- */

int restore_reap(struct restore *r, struct newborn *maker, struct newborn *made)
{
	int64_t result;

	if (NEWBORN_CALL(r, maker, &result, SYS_wait4, made->id, 0, WNOHANG | __WALL))
		return -1;
	return result == made->id ? 0
				  : err_set(r->e, result < 0 ? -result : 0,
					    "cannot wait for helper %d", made->id);
}
