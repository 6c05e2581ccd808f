/*
 * checkpoint.h - take one checkpoint: freeze, drain, snapshot, write, commit, thaw.
 */
#ifndef SUPERVISOR_CHECKPOINT_H
#define SUPERVISOR_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/err.h"
#include "supervisor/supervisor.h"

struct checkpoint_request {
	bool stop;            /* end the program after success */
	enum fd_tcp tcp;      /* connections to the outside */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC after which to give up, 0: none */
	uint64_t drain_ns;    /* how long GPUs may take to come to rest */
};

/* Take a checkpoint of @s's whole tree. On success s->last is filled (its path is the
 * supervisor's own string) and, with request->stop, the tree has been killed. On failure the
 * program runs on untouched and no trace of the attempt is left. Blocks until done. */
int checkpoint_take(
	struct supervisor *s, const struct checkpoint_request *request, struct err *e);

#endif
