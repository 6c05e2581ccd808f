/*
 * own_state.h - what /proc says of the supervisor itself, for processes to be compared with it: it does not change while a
 * checkpoint is taken, and a tree may have thousands of processes and threads.
 */
#ifndef SUPERVISOR_STATE_OWN_STATE_H
#define SUPERVISOR_STATE_OWN_STATE_H

#include "lib/err.h"

/* Texts of files of /proc/self. All but the first are NULL where this kernel has no such thing. */
struct own_state {
	char *status;
	char *cgroup;
	char *label; /* attr/current, of a security module */
	char *login_id, *audit_session;
};

/* Fill @own, which is all zero. To be freed with own_state_free() after a failure, too. */
int own_state_read(struct own_state *own, struct err *e);
void own_state_free(struct own_state *own);

#endif
