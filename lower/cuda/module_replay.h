/*
 * module_replay.h - modules and libraries are loaded so that their variables lie where they
 * lay (placement.h).
 *
 * Functions return 0, or -1 by agent_fail().
 */
#ifndef LOWER_CUDA_MODULE_REPLAY_H
#define LOWER_CUDA_MODULE_REPLAY_H

#include "shared/cuda/cuda_state.h"

/* Let the places of @o in @context be empty so that it is placed there; it has. */
int module_open(const struct object *o, void *context);
int module_close(const struct object *o, const void *context);
/* Load it in @context, if it has variables there. */
int module_load(const struct object *library, void *context);
/* 1: yes. */
int module_loads_eagerly(void);
int module_has_managed(const struct object *o);

#endif
