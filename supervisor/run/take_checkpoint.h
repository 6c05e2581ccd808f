/*
 * take_checkpoint.h - take one checkpoint: freeze, drain, snapshot, write, commit, thaw. A
 * thread of its own does it, so that the thread that ordered it can attend to other things meanwhile
 * (doc/decisions/event-loop.md).
 */
#ifndef SUPERVISOR_RUN_TAKE_CHECKPOINT_H
#define SUPERVISOR_RUN_TAKE_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/err.h"
#include "supervisor/control/checkpoint_request.h"
#include "supervisor/run/checkpoint_under_way.h"
#include "supervisor/start/supervisor.h"

/* What checkpoint_end() returns, with an error, when the checkpoint is complete, and s->last
 * describes it, but the program was not ended: the checkpoint could not be restarted here. */
#define CHECKPOINT_KEPT (-2)

/* A checkpoint that is being taken; the caller's room. */
struct checkpoint_taking {
	struct under_way under_way;
	struct supervisor *s;
	const struct checkpoint_request *request;
	struct err *e;
	struct complete_checkpoint made; /* path NULL: none was */
	pthread_t thread;
	int result;
};

/* Begin to take a checkpoint of @s's whole tree; @request and @e stay until it has ended, and
 * @s is read only, but for what the event loop alone knows. under_way.wake_fd signals the end.
 * On failure nothing has begun. */
int checkpoint_begin(struct checkpoint_taking *t, struct supervisor *s,
	const struct checkpoint_request *request, struct err *e);

/* Wait for its end. On success s->last is filled (its path is the supervisor's own string) and,
 * with request->stop, the tree has been killed. On failure the program runs on untouched and no
 * trace of the attempt is left. */
int checkpoint_end(struct checkpoint_taking *t);

#endif
