/*
 * restart_barrier.h - the ranks of a job that is restarted come together three times: before anything is made,
 * where it shows whether all are there and have images of one checkpoint; when each knows whether its program can have
 * its process ids where it is; and when each has its
 * program back, before the first of them runs. Rank 0 waits for the others; each has a
 * connection to it:
 *
 *	arrived RANK SIZE CHECKPOINT	to rank 0: here I am
 *	go				from rank 0: all are there
 *	ids FIRST-LAST...		to rank 0: ids that the program is to have; several lines,
 *	wish PLACE NEEDED APART WHOLE USER LIMIT UID GID COUNT	and what else it is to know of this rank (struct
 *					rank_wish), and how many ids these are
 *	apart				from rank 0: restart it by itself
 *	make USER FIRST			or: make a namespace for several ranks (struct shared_namespace_plan)
 *	made PID START			to rank 0: that has this first process; -1: there can be none
 *	join USER FIRST PID START	from rank 0, in the place of "apart": one is made for this rank, too
 *	back				to rank 0: the program is whole, and is stopped
 *	go				from rank 0: all are; it may run
 *	failed TEXT			to rank 0, in place of "back"
 *	end				from rank 0: it has said why, and all give up
 */
#ifndef SUPERVISOR_JOB_RESTART_BARRIER_H
#define SUPERVISOR_JOB_RESTART_BARRIER_H

#include <stdbool.h>

#include "lib/err.h"
#include "supervisor/control/control_socket.h"
#include "supervisor/start/shared_namespace.h"
#include "supervisor/start/supervisor.h"

struct restart_barrier;

/* Serves requests for at most @ms milliseconds, once: loop_serve(). */
typedef void serve_requests(struct supervisor *s, int ms, control_handler *handler, void *arg);

/* Wait for all ranks of the job of @s, which have been restarted from the checkpoint @from, for
 * a minute at most. Returns NULL on failure; *silent says that another rank reports it. */
struct restart_barrier *restart_barrier_begin(struct supervisor *s, const char *from,
	serve_requests *serve, bool *silent, struct err *e);

/* Before anything is made: whether this rank is to be restarted in a namespace with others of its node (@g is a struct
 * restart_barrier). All ranks call this, and get the same answer each time; the namespace belongs to @g. *shared is
 * NULL where the rank is by itself. */
int restart_barrier_share(void *g, const struct namespace_wish *wish,
	const struct shared_namespace **shared, struct err *e);

/* A word of letters and digits that all ranks have for this restart, and no other restart on their machines has. */
const char *restart_barrier_word(struct restart_barrier *g, struct err *e);

/* Our program is back: wait for all others' (@g is a struct restart_barrier). */
int restart_barrier_wait(void *g, struct err *e);
/* It is not back yet, and may be waiting for others': -1 when one of them has failed. */
int restart_barrier_look(void *g, struct err *e);

/* Our restart has failed, for the reason @e, which may be another rank's. Whether another rank
 * reports it; if not, this one has to do so at once, and to call restart_barrier_end() then. */
bool restart_barrier_failed(struct restart_barrier *g, struct err *e);

/* All give up, or run. */
void restart_barrier_end(struct restart_barrier *g);

#endif
