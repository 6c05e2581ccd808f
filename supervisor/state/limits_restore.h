/*
 * state/limits_restore.h - resource limits: of a restart, and of the program.
 */
#ifndef SUPERVISOR_STATE_LIMITS_RESTORE_H
#define SUPERVISOR_STATE_LIMITS_RESTORE_H

#include <sys/resource.h>

#include "ckpt/store.h"
#include "supervisor/state/new_process.h"

/* The supervisor's own resource limits. New processes inherit them; they are raised as far as
 * allowed meanwhile, so that no restart fails at a limit that the program had lowered for itself
 * later, or its user for this shell. RLIMIT_NOFILE is fd_restore's. */
struct restore_limits {
	struct rlimit own[IMAGE_RLIMITS];
};

void restore_limits_widen(struct restore_limits *l, const struct checkpoint *c);
void restore_limits_put_back(const struct restore_limits *l);

/* Set the limits of the program. A notice names each limit that cannot be as high as it was,
 * once for all processes. */
void restore_limits_set(struct new_process *np);

#endif
