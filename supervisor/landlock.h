/*
 * landlock.h - a thread that has restricted itself with Landlock: nothing tells of it, and a
 * restart would bring it back without the restriction.
 */
#ifndef SUPERVISOR_LANDLOCK_H
#define SUPERVISOR_LANDLOCK_H

#include "supervisor/remote.h"

/* Refuse the thread that @r runs in if it is restricted, as far as can be told: by what it may
 * no longer do to us (man landlock, "Ptrace restrictions"). That says nothing of a thread that
 * could not do it anyhow, being another user's or having fewer capabilities than we have, nor
 * of one in a pid namespace below ours. */
int landlock_refuse(struct remote *r, struct err *e);

#endif
