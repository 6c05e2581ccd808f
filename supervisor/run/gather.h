/*
 * gather.h - the ranks of a job that is restarted come together twice: before anything is made,
 * where it shows whether all are there and have images of one checkpoint, and when each has its
 * program back, before the first of them runs. Rank 0 waits for the others; each has a
 * connection to it:
 *
 *	gather RANK SIZE CHECKPOINT	to rank 0: here I am
 *	go				from rank 0: all are there
 *	back				to rank 0: the program is whole, and is stopped
 *	go				from rank 0: all are; it may run
 *	failed TEXT			to rank 0, in place of "back"
 *	end				from rank 0: it has said why, and all give up
 */
#ifndef SUPERVISOR_RUN_GATHER_H
#define SUPERVISOR_RUN_GATHER_H

#include <stdbool.h>

#include "lib/err.h"
#include "supervisor/start/supervisor.h"

struct gather;

/* Wait for all ranks of the job of @s, which have been restarted from the checkpoint @from, for
 * a minute at most. Returns NULL on failure; *silent says that another rank tells of it. */
struct gather *gather_begin(
	struct supervisor *s, const char *from, bool *silent, struct err *e);

/* Our program is back: wait for all others' (@g is a struct gather). */
int gather_back(void *g, struct err *e);

/* Our restart has failed, for the reason @e, which may be another rank's. Whether another rank
 * tells of it; if not, this one has to do so at once, and to call gather_end() then. */
bool gather_failed(struct gather *g, struct err *e);

/* All give up, or run. */
void gather_end(struct gather *g);

#endif
