/*
 * creation_order.h - by whom and in what order the processes of a tree are made again, so that
 * parents, sessions and process groups come out as they were.
 *
 * A process is in the session that its creator was in when it made it, and can only found one
 * of its own. Where the parent of today is no such creator (the process is an orphan, or the
 * parent has founded a session since), or where the first of a session or a group has ended,
 * helpers are needed: they take part for a while, and end before any program runs.
 *
 * An orphan is the child of the supervisor, or of the closest process above that adopts such
 * (PR_SET_CHILD_SUBREAPER), and so are processes whose helpers have ended.
 *
 * What processes share can only be had from one's maker. Where that was not the parent of
 * today, it was a process that has the same things: then that one makes a sibling
 * (CLONE_PARENT), or an orphan by way of a helper.
 */
#ifndef SUPERVISOR_TREE_CREATION_ORDER_H
#define SUPERVISOR_TREE_CREATION_ORDER_H

#include <stdbool.h>

#include "ckpt/image.h"
#include "lib/err.h"
#include "lib/util.h"

enum creation_kind {
	CREATE_LIVING,
	CREATE_ZOMBIE,
	CREATE_HELPER,
};

struct creation_node {
	enum creation_kind kind;
	pid_t pid;       /* 0: any that is free */
	pid_t pgid, sid; /* 0: the supervisor's own; of a helper: whatever it has */
	size_t creator;  /* the node that makes it; the root's is itself */
	bool early;      /* made before its creator creates a session */
	bool leads;      /* creates its process group by setpgid(2) */
	bool adopts;     /* the children of its descendants that end become its own */
	uint32_t shares; /* CLONE_*: what it has in common with its creator; CLONE_PARENT: it is
			  * no child of the creator, but of the creator's parent */
	int exit_signal;
	/* It executes no program: that would end what it shares, and make the signal of its
	 * end, or of its children's, SIGCHLD (de_thread() and exit_notify() in the kernel). */
	bool stays;
	bool has_successor; /* the helper that its session's orphans become children of is
			       @successor */
	size_t successor;
};

/* The first nodes are the list's, in its order; helpers follow. */
struct creation_order {
	struct buf nodes; /* struct creation_node */
	const struct image_job_process *list;
	const struct image_sharing *sharing; /* NULL: nobody shares anything */
	size_t count;                        /* of the list */
};

/* Work it out; @sharing may be NULL. Errors name a process that cannot be brought back as it
 * is. */
int creation_order_plan(struct creation_order *f, const struct image_job_process *list,
	const struct image_sharing *sharing, size_t count, struct err *e);
void creation_order_free(struct creation_order *f);

size_t creation_order_count(const struct creation_order *f);
struct creation_node *creation_order_at(const struct creation_order *f, size_t node);

#endif
