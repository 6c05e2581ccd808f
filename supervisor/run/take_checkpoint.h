/*
 * take_checkpoint.h - take one checkpoint: freeze, drain, snapshot, write, commit, thaw. A
 * thread of its own does it, so that whoever ordered it can attend to other things meanwhile
 * (doc/decisions/awake.md).
 */
#ifndef SUPERVISOR_RUN_TAKE_CHECKPOINT_H
#define SUPERVISOR_RUN_TAKE_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/err.h"
#include "supervisor/run/under_way.h"
#include "supervisor/start/supervisor.h"

struct checkpoint_request {
	bool stop;       /* end the program after success */
	bool no_try;     /* without having tried whether it could be restarted */
	bool verify;     /* and only when all has been read back from the disk */
	bool fork;       /* let it run on while its memory is written */
	enum fd_tcp tcp; /* connections to the outside */
	struct pack_choice compress;
	unsigned threads;     /* that write memory, 0: as many as is sensible */
	uint64_t rate;        /* bytes a second that are written at most, 0: any */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC after which to give up, 0: none, */
	bool foresee;         /* or as soon as it is clear that it comes too late */
	uint64_t drain_ns;    /* how long GPUs may take to come to rest */
	struct part
		*part; /* it is one of a job's checkpoint (supervisor/job); NULL: it is all */
};

/* What checkpoint_end() returns, with an error, when the checkpoint is complete, and s->last
 * tells of it, but the program was not ended: the checkpoint could not be restarted here. */
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
 * @s is read only, but for what the event loop alone knows. under_way.wake_fd tells of the end.
 * On failure nothing has begun. */
int checkpoint_begin(struct checkpoint_taking *t, struct supervisor *s,
	const struct checkpoint_request *request, struct err *e);

/* Wait for its end. On success s->last is filled (its path is the supervisor's own string) and,
 * with request->stop, the tree has been killed. On failure the program runs on untouched and no
 * trace of the attempt is left. */
int checkpoint_end(struct checkpoint_taking *t);

#endif
