/*
 * landlock_refuse.h - a thread that has restricted itself with Landlock: nothing shows it, and a
 * restart would bring it back without the restriction.
 */
#ifndef SUPERVISOR_STATE_LANDLOCK_REFUSE_H
#define SUPERVISOR_STATE_LANDLOCK_REFUSE_H

#include <stdbool.h>

#include "supervisor/target/remote_query.h"

/* Whether @t may be restricted, as far as is known from outside, and would show it if it is; @own_status is the text of
 * the supervisor's own /proc/PID/status. It shows by what it may no longer do to us (man landlock, "Ptrace
 * restrictions"). That says nothing of a thread that could not do it anyhow, being another
 * user's or having fewer capabilities than we have, nor of one in a pid namespace below ours.
 */
bool landlock_is_possible(const struct thread *t, const char *own_status);

/* Make @q what @t is to be asked then, and return it. */
struct remote_query *landlock_ask(const struct thread *t, struct remote_query *q);

/* Refuse it by the answer. */
int landlock_refuse(int64_t answer, struct err *e);

#endif
