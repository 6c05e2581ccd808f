/*
 * checkpoint_request.h - what can be asked of one checkpoint: by the options of trecr-ckpt, which
 * sends it as the words of a line, and by a supervisor of its own accord.
 */
#ifndef SUPERVISOR_CONTROL_CHECKPOINT_REQUEST_H
#define SUPERVISOR_CONTROL_CHECKPOINT_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "ckpt/pack.h"
#include "lib/util.h"
#include "supervisor/fd/fd_options.h"
#include "supervisor/start/supervisor.h"

struct part;

/* All zero: the program is saved as the options of its supervisor say, and runs on. */
struct checkpoint_request {
	bool stop;        /* end the program after success */
	bool no_try;      /* do not try a restart before the program is ended */
	bool try_restart; /* try one, though the program runs on */
	bool verify;      /* read all back from the disk before the program is ended */
	bool fork;        /* let it run on while its memory is written */
	bool has_tcp;     /* @tcp is given: how to deal with connections to the outside */
	enum fd_tcp tcp;
	bool has_compress; /* @compress is given: how to compress memory */
	struct pack_choice compress;
	unsigned threads;     /* that write memory, 0: not said, or as many as is sensible */
	uint64_t rate;        /* bytes a second that are written at most, 0: not said, or any */
	uint64_t drain_ns;    /* how long GPUs may take to come to rest, 0: not said */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC after which to give up, 0: none */
	bool foresee;         /* give up as soon as the deadline cannot be met any more */
	bool nobody_waits; /* it may take longer if the program loses less by it. Not in the line */
	struct part *part; /* it is one of a job's checkpoint (supervisor/job); NULL: it is
				 all. Not in the line */
};

/* As a line that asks a supervisor for it (control_protocol.h), without newline; the caller's to
 * free. */
char *checkpoint_request_text(const struct checkpoint_request *request);

/* Fill @request, all zero before, from @words (behind "checkpoint"), which are changed. -1: they
 * were not understood. */
int checkpoint_request_parse(struct checkpoint_request *request, char *words);

/* The option that @request's deadline comes from. */
const char *checkpoint_deadline_option(const struct checkpoint_request *request);

/* What @request does not say is as @options say. */
void checkpoint_request_complete(
	struct checkpoint_request *request, const struct supervisor_options *options);

#endif
