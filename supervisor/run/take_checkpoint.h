/*
 * take_checkpoint.h - take one checkpoint: freeze, drain, snapshot, write, commit, thaw.
 */
#ifndef SUPERVISOR_RUN_TAKE_CHECKPOINT_H
#define SUPERVISOR_RUN_TAKE_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/err.h"
#include "supervisor/start/supervisor.h"

struct checkpoint_request {
	bool stop;       /* end the program after success */
	bool no_try;     /* without having tried whether it could be restarted */
	bool verify;     /* and only when all has been read back from the disk */
	enum fd_tcp tcp; /* connections to the outside */
	struct pack_choice compress;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC after which to give up, 0: none */
	uint64_t drain_ns;    /* how long GPUs may take to come to rest */
	struct part
		*part; /* it is one of a job's checkpoint (supervisor/job); NULL: it is all */
};

/* What checkpoint_take() returns, with an error, when the checkpoint is complete, and s->last
 * tells of it, but the program was not ended: the checkpoint could not be restarted here. */
#define CHECKPOINT_KEPT (-2)

/* Take a checkpoint of @s's whole tree. On success s->last is filled (its path is the
 * supervisor's own string) and, with request->stop, the tree has been killed. On failure the
 * program runs on untouched and no trace of the attempt is left. Blocks until done. */
int checkpoint_take(
	struct supervisor *s, const struct checkpoint_request *request, struct err *e);

#endif
