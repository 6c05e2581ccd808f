/*
 * restore/attempt.h - one attempt to bring a program back, for the parts of restore.c.
 */
#ifndef SUPERVISOR_RESTORE_ATTEMPT_H
#define SUPERVISOR_RESTORE_ATTEMPT_H

#include "supervisor/restore/birth.h"
#include "supervisor/restore/clocks_restore.h"
#include "supervisor/restore/restore.h"
#include "supervisor/socket/kept_connections.h"
#include "supervisor/state/restore_one.h"

/* A helper or a zombie. */
struct other {
	pid_t tid;
	bool ended;
};

struct restore {
	struct supervisor *s;
	const struct checkpoint *c;
	const struct restore_options *o;
	struct err *e;
	int result;
	struct birth birth;
	struct socket_kept kept;
	struct restore_clocks clocks;
	struct restore_one *processes; /* in the order of the checkpoint's */
	size_t count;
	bool explained; /* an error says itself which process has ended, and over what */
	bool killed;    /* it has failed because a process was killed, */
	bool no_room;   /* or, in a trial, as a device is in use */
	bool id_taken;  /* it has failed because something else has one of the tree's ids */
	size_t unborn;  /* of them, that have not executed their programs yet */
	size_t dying;   /* helpers and zombies that have not ended yet, */
	size_t dumping; /* of them, that are still to show that they have left a core file; */
	struct buf others; /* struct other: those heard of */
};

/* To the user, one line. */
static inline void restore_notice(const struct restore *r, const char *line)
{
	if (r->o->notice)
		r->o->notice(line);
}

/* ---- restore_check.c ---- */

/* Fill r->processes and r->birth; the rest is the caller's. */
int restore_look_at_image(struct restore *r);
/* Whether all is here that it needs. @alive: the program of the image is there, and is not to
 * notice. */
int restore_check_before(struct restore *r, bool alive);
void restore_release(struct restore *r);
/* For restore_options.notice. */
void restore_say_nothing(const char *line);

/* ---- await_births.c ---- */

/* Until all processes have been made, and stand before the first instructions of the files that
 * they execute. */
int restore_await_births(struct restore *r);

#endif
