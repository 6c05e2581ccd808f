/*
 * context_replay.h - contexts are made again, where they were.
 *
 * Functions return 0, or -1 by agent_fail().
 */
#ifndef LOWER_CUDA_CONTEXT_REPLAY_H
#define LOWER_CUDA_CONTEXT_REPLAY_H

#include "shared/cuda/state.h"

int context_set(void *context);
/* The context that was current when something was made or changed. If it no longer exists, what
 * outlives it does not mind in which that is done. */
void *context_then(const struct cuda_state *s, void *context);
int context_make(const struct object *o);
/* Also of devices whose primary context has not been made yet. */
int context_set_primary_flags(const struct cuda_state *s);

#endif
