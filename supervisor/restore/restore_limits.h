/*
 * restore/restore_limits.h - the resource limits of a restart, and those of the program.
 */
#ifndef SUPERVISOR_RESTORE_RESTORE_LIMITS_H
#define SUPERVISOR_RESTORE_RESTORE_LIMITS_H

#include <sys/resource.h>

#include "ckpt/store.h"
#include "supervisor/state/restore_one.h"

/* A supervisor's own, while all is made that inherits them: with as much as it may have no
 * restart is held up by a limit that the program had lowered for itself later, or its user for
 * this shell. RLIMIT_NOFILE is fd_restore's. */
struct restore_limits {
	struct rlimit own[IMAGE_RLIMITS];
};

void restore_limits_widen(struct restore_limits *l, const struct checkpoint *c);
void restore_limits_put_back(const struct restore_limits *l);

/* Those of the program. Of one that cannot be as high a notice is given. */
void restore_limits_set(struct restore_one *r);

#endif
