/*
 * restore/restart_attempt.h - one attempt to bring a program back, for the parts of restore.c.
 */
#ifndef SUPERVISOR_RESTORE_RESTART_ATTEMPT_H
#define SUPERVISOR_RESTORE_RESTART_ATTEMPT_H

#include "supervisor/restore/inherit_plan.h"
#include "supervisor/restore/newborn_main.h"
#include "supervisor/restore/newborn_call.h"
#include "supervisor/restore/restore.h"
#include "supervisor/socket/kept_connections.h"
#include "supervisor/state/clocks_restore.h"
#include "supervisor/state/new_process.h"

struct restore {
	struct supervisor *s;
	const struct checkpoint *c;
	const struct restore_options *o;
	struct err *e;
	int result;
	struct creation creation;
	struct inherit *inherit; /* NULL: processes inherit no memory */
	struct socket_kept kept;
	struct restore_clocks clocks;
	struct new_process *processes; /* in the order of the checkpoint's */
	size_t count;
	bool explained; /* an error says itself which process has ended, and over what */
	bool killed;    /* it has failed because a process was killed, */
	bool no_room;   /* or, in a trial, as a device is in use */
	bool id_taken;  /* it has failed because something else has one of the tree's ids */
	/* All that are made: by node of r->creation.order, and behind these the proxies, by
	 * process. */
	struct newborn *newborns;
	size_t newborn_count;
	pid_t helper_id; /* the next to be tried for a helper; 0: the first */
	size_t dumping;  /* zombies that are still to show that they have left a core file */
};

/* To the user, one line. */
static inline void restore_notice(const struct restore *r, const char *line)
{
	if (r->o->notice)
		r->o->notice(line);
}

/* ---- restore_check.c ---- */

/* Fill r->processes and r->creation; the rest is the caller's. */
int restore_look_at_image(struct restore *r);
/* Whether all is here that it needs. @alive: the program of the image is there, and is not to
 * notice. */
int restore_check_before(struct restore *r, bool alive);
void restore_release(struct restore *r);
/* For restore_options.notice. */
void restore_say_nothing(const char *line);

/* ---- create_processes.c ---- */

/* Until all processes have been made, and stand before the first instructions of the files that
 * they execute. */
int restore_create_processes(struct restore *r);

/* ---- make_tree.c ---- */

/* Have the first process, which stands still, make all others, in their sessions. */
int restore_make_tree(struct restore *r);
/* Have @maker make @made, which is in nobody's way, with an id that nobody needs. */
int restore_make_helper(struct restore *r, struct newborn *maker, struct newborn *made,
	uint64_t flags, int exit_signal);
/* @made, whose end has been reported, is waited for by @maker, its parent. */
int restore_reap(struct restore *r, struct newborn *maker, struct newborn *made);
/* Have process @node of the order make call @nr, which must not fail. */
int restore_node_call(struct restore *r, size_t node, const char *what, int64_t *result,
	long nr, const uint64_t args[6]);
#define NODE_CALL(r, node, what, result, nr, ...)                                              \
	restore_node_call((r), (node), (what), (result), (nr), (const uint64_t[6]){__VA_ARGS__})
/* Say in r->e that @node is the process that the error is about. Returns -1. */
int restore_prefix_node(struct restore *r, size_t node);

/* ---- inherit_fill.c ---- */

/* Before @node makes its first child: its memory is as that is to inherit it. */
int restore_fill_inherited(struct restore *r, size_t node);
/* Before @node makes @child: that gets what is to be inherited only if it, or any that descends from it, inherits.
 * *@passes: whether the next child would get it, at first true. With @node itself as @child it is true again. */
int restore_pass_inherited(struct restore *r, size_t node, size_t child, bool *passes);

/* ---- sessions_and_groups.c ---- */

/* Have @node found its session, and give it its controlling terminal. */
int restore_found_session(struct restore *r, size_t node);
/* When all processes are there: have them found, and join, their process groups. */
int restore_make_groups(struct restore *r);
/* Give up controlling terminals that a process did not have, and set foreground groups. */
int restore_set_terminals(struct restore *r);

/* ---- await_newborns.c ---- */

/* Until all that have been let run have come to what they were let run for. */
int restore_await_newborns(struct restore *r);
/* @n has, with @status, and was not to. What others say then may be but a consequence. Returns
 * -1. */
int restore_ended_early(struct restore *r, const struct newborn *n, int status);

#endif
