/*
 * sessions_and_groups.c - the sessions of the new processes with their controlling terminals,
 * their process groups, and the foreground group of each terminal. Sessions are founded while the tree is
 * made (make_tree.c), as children inherit them; groups when it is there: first all are founded,
 * then joined.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/restore/restart_attempt.h"

/* ---- sessions ---- */

/* The controlling terminal is set with the session, as children inherit it. */
int restore_found_session(struct restore *r, size_t node)
{
	const struct creation_order *order = &r->creation.order;
	uint32_t terminal = node < order->count ? order->list[node].terminal : 0;
	int64_t result;

	if (NODE_CALL(r, node, "found a session", &result, SYS_setsid))
		return -1;
	if (!terminal || r->creation.fd_options.alive)
		return 0;
	if (newborn_call(r, &r->newborns[node], &result, SYS_ioctl,
		    (const uint64_t[6]){r->creation.page->terminal[node], TIOCSCTTY}))
		return -1;
	if (!result)
		return 0;
	err_set(r->e, -result, "cannot make /dev/pts/%u the session's terminal", terminal - 1);
	return restore_prefix_node(r, node);
}

/* ---- process groups ---- */

static int found_group(struct restore *r, size_t node)
{
	int64_t result;

	return NODE_CALL(r, node, "found a process group", &result, SYS_setpgid);
}

/* Our id of the new process that has the id @id, or 0. */
static pid_t our_id(const struct restore *r, pid_t id)
{
	for (size_t i = 0; i < creation_order_count(&r->creation.order); i++)
		if (r->newborns[i].id == id)
			return r->newborns[i].t.tid;
	return 0;
}

/* As most are, from the process that made them. It can be seen from here without a call in the process, if the group
 * is that of a new process, and if this kernel shows us its id. */
static bool is_in_group(const struct restore *r, size_t node, pid_t group)
{
	pid_t leader = our_id(r, group);

	return leader && getpgid(r->newborns[node].t.tid) == leader;
}

static int join_group(struct restore *r, size_t node)
{
	pid_t group = creation_order_at(&r->creation.order, node)->pgid;
	int64_t result;

	if (group && is_in_group(r, node, group))
		return 0;
	if (!group || NODE_CALL(r, node, "tell its process group", &result, SYS_getpgid))
		return group ? -1 : 0;
	return result == group ? 0
			       : NODE_CALL(r, node, "join its process group", &result,
					 SYS_setpgid, 0, group);
}

static int for_nodes(struct restore *r, bool leads, int (*step)(struct restore *r, size_t node))
{
	for (size_t i = 0; i < creation_order_count(&r->creation.order); i++)
		if (creation_order_at(&r->creation.order, i)->leads == leads && step(r, i))
			return -1;
	return 0;
}

/* A process that has founded a group and left it since stays in it until the others are there.
 */
int restore_make_groups(struct restore *r)
{
	return for_nodes(r, true, found_group) || for_nodes(r, false, join_group) ||
			       for_nodes(r, true, join_group)
		       ? -1
		       : 0;
}

/* ---- terminals ---- */

/* A process that had no controlling terminal in a session that has one: TIOCNOTTY, as it did. */
static int detach_terminal(struct restore *r, size_t node)
{
	struct newborn *n = &r->newborns[node];
	struct creation_page *page = r->creation.page;
	int64_t fd, result;

	if (NEWBORN_CALL(r, n, &fd, SYS_openat, AT_FDCWD, (uintptr_t)page->terminal_path,
		    O_RDWR | O_CLOEXEC))
		return -1;
	if (fd == -ENXIO)
		return 0;
	if (fd < 0) {
		err_set(r->e, -fd, "cannot open /dev/tty");
		return restore_prefix_node(r, node);
	}
	return NODE_CALL(r, node, "give a terminal up", &result, SYS_ioctl, fd, TIOCNOTTY) ||
			       NODE_CALL(r, node, "close a terminal", &result, SYS_close, fd)
		       ? -1
		       : 0;
}

/* SIGTTOU is blocked, which would stop a group in the background. */
static int set_foreground_group(struct restore *r, size_t node)
{
	struct newborn *n = &r->newborns[node];
	struct creation_page *page = r->creation.page;
	int64_t group, result;
	uint64_t mask;

	if (NODE_CALL(r, node, "tell its process group", &group, SYS_getpgid))
		return -1;
	page->id = group;
	if (tracee_get_sigmask(&n->t, &mask, r->e) || tracee_set_sigmask(&n->t, ~0ull, r->e) ||
		NEWBORN_CALL(r, n, &result, SYS_ioctl, page->terminal[node], TIOCSPGRP,
			(uintptr_t)&page->id) ||
		tracee_set_sigmask(&n->t, mask, r->e))
		return -1;
	if (!result)
		return 0;
	err_set(r->e, -result, "cannot become the foreground group of /dev/pts/%u",
		r->creation.order.list[node].terminal - 1);
	return restore_prefix_node(r, node);
}

static int set_terminal(struct restore *r, size_t node)
{
	const struct image_job_process *entry = &r->creation.order.list[node];

	if (!entry->sid)
		return 0;
	if (!entry->terminal)
		return entry->sid == entry->pid ? 0 : detach_terminal(r, node);
	return entry->flags & IMAGE_JOB_PROCESS_FOREGROUND ? set_foreground_group(r, node) : 0;
}

/* A zombie has no controlling terminal any more, whatever its session has. */
int restore_set_terminals(struct restore *r)
{
	for (size_t i = 0; i < r->count && !r->creation.fd_options.alive; i++)
		if (set_terminal(r, i))
			return -1;
	return 0;
}
