/*
 * gpu_map.h - which GPU takes the place of which at a restart (trecr-restart --gpu-map): the driver is
 * given a CUDA_VISIBLE_DEVICES with the new ones in the order of the program's, so that the numbers that
 * the program has for its GPUs stay as they are.
 */
#ifndef SUPERVISOR_SPLIT_GPU_MAP_H
#define SUPERVISOR_SPLIT_GPU_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/err.h"
#include "supervisor/target/process.h"

/* For a row of options: const char *, not copied; see that it is of the form OLD:NEW,... */
int gpu_map_option(void *field, const char *value, struct err *e);

struct gpu_map_process {
	const struct process *process; /* its memory is there */
	char **variable;               /* out, for the caller to free; NULL: it keeps its own */
};

struct gpu_map_options {
	const char *map;                  /* of gpu_map_option() */
	bool of_job;                      /* there are other trees, with GPUs of their own */
	void (*notice)(const char *line); /* NULL: nobody is told */
};

/* The variables for all processes of a tree, which may have different GPUs. One that has not asked for its GPUs yet
 * gets what another gets that had the same variable. Fails if the map does not have each GPU of each, or has one that
 * none has. */
int gpu_map_variables(const struct gpu_map_process *list, size_t count,
	const struct gpu_map_options *o, struct err *e);

#endif
