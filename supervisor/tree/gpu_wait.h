/*
 * gpu_wait.h - how long to wait for GPUs to finish their work, and when to resume the program for that.
 *
 * As a rule GPUs finish while the program is stopped. But a kernel may wait for what the program does, or
 * a thread in the driver for such a kernel: then the program is resumed for a while, and stopped again.
 */
#ifndef SUPERVISOR_TREE_GPU_WAIT_H
#define SUPERVISOR_TREE_GPU_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/err.h"

struct gpu_wait {
	uint64_t ns;  /* how long to wait while the program stands still */
	bool let_run; /* threads that are not in the driver run on until none is: sleeps that
		       * are interrupted twice so may last longer */

	/* Filled by freeze() when it fails. */
	pid_t restless; /* the process for which that was not enough; 0: it failed for another
			 * reason */
	bool in_driver; /* a thread of it is in the driver */
	bool pending; /* the GPUs are at rest, but it has something half done that they have a part in */

	uint64_t pause_ns; /* how long it runs on next, if something is */
	uint64_t total_ns, deadline_ns, least_ns;
};

/* @total_ns in all, and not beyond @deadline_ns (CLOCK_MONOTONIC, 0: none). */
void gpu_wait_begin(struct gpu_wait *w, uint64_t total_ns, uint64_t deadline_ns);

/* After the failure @e, when everything runs again: wait, and say whether to try once more. */
bool gpu_wait_again(struct gpu_wait *w, struct err *e);

#endif
