/*
 * state/clocks_restore.h - what clocks a program is brought back with.
 *
 * On the machine that it was saved on, and which has not been started anew since, its clocks
 * are the machine's, and time has passed. Anywhere else CLOCK_MONOTONIC and CLOCK_BOOTTIME
 * would jump, by hours or years, and with them the end of all that waits until a time of
 * theirs: there they continue from the checkpoint, in a time namespace.
 */
#ifndef SUPERVISOR_STATE_CLOCKS_RESTORE_H
#define SUPERVISOR_STATE_CLOCKS_RESTORE_H

#include <stdbool.h>

#include "ckpt/store.h"
#include "lib/util.h"
#include "supervisor/state/restore_options.h"
#include "supervisor/target/clocks.h"

struct restore_clocks {
	bool continued;             /* from the checkpoint, in a time namespace */
	bool needs_user_namespace;  /* to set the clocks there, without the privilege */
	struct clock_shifts shifts; /* of it, for clocks_set() */
	/* If not: by how much the deadlines of threads that wait are to be moved. */
	struct clock_shifts deadline_shift;
	struct buf moved; /* struct moved_deadline */
};

/* Decide as @o asks, and report it. */
int restore_clocks_choose(const struct checkpoint *c, const struct restore_options *o,
	struct restore_clocks *out, struct err *e);

#endif
