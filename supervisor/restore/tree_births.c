/*
 * Who makes whom. The new processes stand still all the time, but for the calls that they are
 * told to make, one after the other (birth_call.h): so each step is done when the next one
 * begins, and it is all the same whether they share memory.
 *
 * First all are made, each before or after its maker has founded its session; then process
 * groups are founded, then joined.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/limits.h"
#include "supervisor/restore/attempt.h"
#include "supervisor/restore/restore_stage.h"

/* Where helpers' ids are looked for. */
#define HELPER_ID_FIRST 300

/* ---- errors ---- */

static int prefix_node(struct restore *r, size_t node)
{
	const struct birth_order *order = &r->birth.order;

	return node && node < order->count
		       ? err_prefix(r->e, "process %d (%s)", order->list[node].pid,
				 image_string(r->c->job, order->list[node].comm))
		       : -1;
}

/* Have @node make call @nr, which must not fail. */
static int make_call(struct restore *r, size_t node, const char *what, int64_t *result, long nr,
	const uint64_t args[6])
{
	if (birth_call(r, &r->newborns[node], result, nr, args))
		return -1;
	if (*result >= 0)
		return 0;
	err_set(r->e, -*result, "cannot %s", what);
	return prefix_node(r, node);
}
#define NODE_CALL(r, node, what, result, nr, ...)                                              \
	make_call((r), (node), (what), (result), (nr), (const uint64_t[6]){__VA_ARGS__})

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
		if (!birth_needs(&r->birth, r->helper_id) &&
			birth_clone(r, maker, made, flags, r->helper_id, exit_signal, &result))
			return -1;
	return result < 0 ? limit_err(r->e, -result, SYS_clone3, "cannot create a helper") : 0;
}

static int make_process(struct restore *r, size_t node, struct newborn *maker)
{
	const struct birth_node *n = birth_order_at(&r->birth.order, node);
	int64_t result;

	if (birth_clone(
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

/* What is one of the checkpoint's from now on. */
static void welcome(struct restore *r, size_t node)
{
	struct restore_one *one = &r->processes[node];
	struct tracee *t = &one->process.threads[0].tracee;

	one->process.pid = one->process.task = t->pid = t->tid = r->newborns[node].t.tid;
	restore_advance(one, RESTORE_MADE);
}

static int make_child(struct restore *r, size_t node)
{
	const struct birth_node *n = birth_order_at(&r->birth.order, node);
	struct newborn *maker = &r->newborns[n->creator];

	if (n->pid ? make_process(r, node, maker)
		   : restore_make_helper(
			     r, maker, &r->newborns[node], n->shares, n->exit_signal))
		return prefix_node(r, n->creator);
	if (node < r->count)
		welcome(r, node);
	return 0;
}

static int make_children(struct restore *r, size_t node, bool early)
{
	for (size_t i = 1; i < birth_order_count(&r->birth.order); i++) {
		const struct birth_node *n = birth_order_at(&r->birth.order, i);

		if (n->creator == node && n->early == early && make_child(r, i))
			return -1;
	}
	return 0;
}

/* The terminal comes with it: children have theirs from their parents. */
static int found_session(struct restore *r, size_t node)
{
	const struct birth_order *order = &r->birth.order;
	uint32_t terminal = node < order->count ? order->list[node].terminal : 0;
	int64_t result;

	if (NODE_CALL(r, node, "found a session", &result, SYS_setsid))
		return -1;
	if (!terminal || r->birth.fd_options.alive)
		return 0;
	if (birth_call(r, &r->newborns[node], &result, SYS_ioctl,
		    (const uint64_t[6]){r->birth.page->terminal[node], TIOCSCTTY}))
		return -1;
	if (!result)
		return 0;
	err_set(r->e, -result, "cannot make /dev/pts/%u the session's terminal", terminal - 1);
	return prefix_node(r, node);
}

/* @node's children, and theirs. */
static int grow(struct restore *r, size_t node)
{
	const struct birth_node *n = birth_order_at(&r->birth.order, node);
	int64_t result;

	/* Its children are to know of it from the start; add_prctls() has the final word. */
	if (n->adopts && NODE_CALL(r, node, "become the parent of orphans", &result, SYS_prctl,
				 PR_SET_CHILD_SUBREAPER, 1))
		return -1;
	if (make_children(r, node, true) ||
		(n->pid && n->sid == n->pid && found_session(r, node)) ||
		make_children(r, node, false))
		return -1;
	for (size_t i = 1; i < birth_order_count(&r->birth.order); i++)
		if (birth_order_at(&r->birth.order, i)->creator == node && grow(r, i))
			return -1;
	return 0;
}

/* ---- process groups ---- */

static int found_group(struct restore *r, size_t node)
{
	int64_t result;

	return NODE_CALL(r, node, "found a process group", &result, SYS_setpgid);
}

static int join_group(struct restore *r, size_t node)
{
	pid_t group = birth_order_at(&r->birth.order, node)->pgid;
	int64_t result;

	if (!group || NODE_CALL(r, node, "tell its process group", &result, SYS_getpgid))
		return group ? -1 : 0;
	return result == group ? 0
			       : NODE_CALL(r, node, "join its process group", &result,
					 SYS_setpgid, 0, group);
}

static int for_nodes(struct restore *r, bool leads, int (*step)(struct restore *r, size_t node))
{
	for (size_t i = 0; i < birth_order_count(&r->birth.order); i++)
		if (birth_order_at(&r->birth.order, i)->leads == leads && step(r, i))
			return -1;
	return 0;
}

/* A process that has founded a group and left it since stays in it until the others are there.
 */
int restore_make_tree(struct restore *r)
{
	return grow(r, 0) || for_nodes(r, true, found_group) ||
			       for_nodes(r, false, join_group) || for_nodes(r, true, join_group)
		       ? -1
		       : 0;
}

/* ---- terminals ---- */

/* As the process did by itself (TIOCNOTTY), where its session has one. */
static int give_terminal_up(struct restore *r, size_t node)
{
	struct newborn *n = &r->newborns[node];
	struct birth_page *page = r->birth.page;
	int64_t fd, result;

	if (BIRTH_CALL(r, n, &fd, SYS_openat, AT_FDCWD, (uintptr_t)page->terminal_path,
		    O_RDWR | O_CLOEXEC))
		return -1;
	if (fd == -ENXIO)
		return 0;
	if (fd < 0) {
		err_set(r->e, -fd, "cannot open /dev/tty");
		return prefix_node(r, node);
	}
	return NODE_CALL(r, node, "give a terminal up", &result, SYS_ioctl, fd, TIOCNOTTY) ||
			       NODE_CALL(r, node, "close a terminal", &result, SYS_close, fd)
		       ? -1
		       : 0;
}

/* A group in the background is stopped otherwise: with the signal for that blocked. */
static int come_to_foreground(struct restore *r, size_t node)
{
	struct newborn *n = &r->newborns[node];
	struct birth_page *page = r->birth.page;
	int64_t group, result;
	uint64_t mask;

	if (NODE_CALL(r, node, "tell its process group", &group, SYS_getpgid))
		return -1;
	page->id = group;
	if (tracee_get_sigmask(&n->t, &mask, r->e) || tracee_set_sigmask(&n->t, ~0ull, r->e) ||
		BIRTH_CALL(r, n, &result, SYS_ioctl, page->terminal[node], TIOCSPGRP,
			(uintptr_t)&page->id) ||
		tracee_set_sigmask(&n->t, mask, r->e))
		return -1;
	if (!result)
		return 0;
	err_set(r->e, -result, "cannot become the foreground group of /dev/pts/%u",
		r->birth.order.list[node].terminal - 1);
	return prefix_node(r, node);
}

static int settle_terminal(struct restore *r, size_t node)
{
	const struct image_job_process *entry = &r->birth.order.list[node];

	if (!entry->sid)
		return 0;
	if (!entry->terminal)
		return entry->sid == entry->pid ? 0 : give_terminal_up(r, node);
	return entry->flags & IMAGE_JOB_PROCESS_FOREGROUND ? come_to_foreground(r, node) : 0;
}

/* A zombie has none any more, whatever its session has. */
int restore_settle_terminals(struct restore *r)
{
	for (size_t i = 0; i < r->count && !r->birth.fd_options.alive; i++)
		if (settle_terminal(r, i))
			return -1;
	return 0;
}

/* ---- ends ---- */

int restore_reap(struct restore *r, struct newborn *maker, struct newborn *made)
{
	int64_t result;

	if (BIRTH_CALL(r, maker, &result, SYS_wait4, made->id, 0, WNOHANG | __WALL))
		return -1;
	return result == made->id ? 0
				  : err_set(r->e, result < 0 ? -result : 0,
					    "cannot wait for helper %d", made->id);
}
