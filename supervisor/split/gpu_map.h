/*
 * gpu_map.h - which GPU takes the place of which at a restart (trecr-restart --gpu-map): the driver is
 * given a CUDA_VISIBLE_DEVICES with the new ones in the order of the program's, so that the numbers that
 * the program has for its GPUs stay as they are.
 */
#ifndef SUPERVISOR_SPLIT_GPU_MAP_H
#define SUPERVISOR_SPLIT_GPU_MAP_H

#include "lib/err.h"
#include "supervisor/target/process.h"

/* For a row of options: const char *, not copied; see that it is of the form OLD:NEW,... */
int gpu_map_option(void *field, const char *value, struct err *e);

/* The variable for @p, whose memory is there, by the @map of a gpu_map_option(): @variable is for the caller to
 * free, NULL: the process has no GPUs yet. Fails if @map does not have each GPU of the program. */
int gpu_map_variable(struct process *p, const char *map, char **variable, struct err *e);

#endif
