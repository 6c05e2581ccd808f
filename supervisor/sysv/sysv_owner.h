/*
 * sysv_owner.h - whose System V objects are: they belong to nobody but an IPC namespace.
 */
#ifndef SUPERVISOR_SYSV_SYSV_OWNER_H
#define SUPERVISOR_SYSV_SYSV_OWNER_H

#include "supervisor/sysv/sysv_kinds.h"
#include "supervisor/sysv/sysv_query.h"

/* Whether the tree is in an IPC namespace that a restart has made for it: all is its own. */
bool sysv_has_own_namespace(const struct tree *tree);

/* An object of the tree's user that is younger than the tree can be the tree's: PERHAPS_TREE, where all processes
 * that used it have ended; UNUSED, where none has used it yet, as nothing shows which process made a queue or
 * a set of semaphores. */
enum sysv_owner { SYSV_OTHERS, SYSV_TREE, SYSV_PERHAPS_TREE, SYSV_UNUSED };

/* In a namespace that others are in, too, and that we are in ourselves. */
enum sysv_owner sysv_owner_of(
	const struct tree *tree, const struct sysv_kind *k, const struct sysv_status *s);

/* Whether process @pid is there, and was there when the object was @used last: a younger one of
 * the same number is another. A supervisor of trecr is no user. */
bool sysv_is_alive(pid_t pid, time_t used);

#endif
