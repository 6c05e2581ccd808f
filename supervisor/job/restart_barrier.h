/*
 * restart_barrier.h - the ranks of a job that is restarted come together twice: before anything is made,
 * where it shows whether all are there and have images of one checkpoint, and when each has its
 * program back, before the first of them runs. Rank 0 waits for the others; each has a
 * connection to it:
 *
 *	arrived RANK SIZE CHECKPOINT	to rank 0: here I am
 *	go				from rank 0: all are there
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
#include "supervisor/start/supervisor.h"

struct restart_barrier;

/* Serves requests for at most @ms milliseconds, once: loop_serve(). */
typedef void serve_requests(struct supervisor *s, int ms, control_handler *handler, void *arg);

/* Wait for all ranks of the job of @s, which have been restarted from the checkpoint @from, for
 * a minute at most. Returns NULL on failure; *silent says that another rank reports it. */
struct restart_barrier *restart_barrier_begin(struct supervisor *s, const char *from,
	serve_requests *serve, bool *silent, struct err *e);

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
