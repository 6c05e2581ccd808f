/*
 * gpu_patience.h - how long GPUs are waited for.
 *
 * As a rule they come to rest while the program stands still. But a kernel may wait for what
 * the program does, or a thread in the driver for such a kernel: then the program has to run on
 * for a while, and is stopped again.
 */
#ifndef SUPERVISOR_TREE_GPU_PATIENCE_H
#define SUPERVISOR_TREE_GPU_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/err.h"

struct freeze_patience {
	uint64_t ns;  /* how long to wait while the program stands still */
	bool let_run; /* threads that are not in the driver run on until none is: sleeps that
		       * are interrupted twice so may last longer */

	/* Filled by freeze() when it fails. */
	pid_t restless; /* the process for which that was not enough; 0: it failed for another
			 * reason */
	bool in_driver; /* a thread of it is in the driver */

	uint64_t total_ns, deadline_ns, least_ns;
};

/* @total_ns in all, and not beyond @deadline_ns (CLOCK_MONOTONIC, 0: none). */
void patience_begin(struct freeze_patience *p, uint64_t total_ns, uint64_t deadline_ns);

/* After the failure @e, when everything runs again: wait, and say whether to try once more. */
bool patience_again(struct freeze_patience *p, struct err *e);

#endif
