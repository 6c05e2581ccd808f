/*
 * context_replay.h - contexts are made again, where they were.
 *
 * Functions return 0, or -1 by agent_fail().
 */
#ifndef LOWER_CUDA_CONTEXT_REPLAY_H
#define LOWER_CUDA_CONTEXT_REPLAY_H

#include "shared/cuda/cuda_state.h"

int context_set(void *context);
/* The context that was current when something was made or changed. If it no longer exists, what
 * outlives it does not mind in which that is done. */
void *context_then(const struct cuda_state *s, void *context);
/* Before cuInit, where the driver is another build: nothing else lies where contexts were. */
int context_keep_places(const struct cuda_state *s);
int context_make(const struct object *o);
/* Also of devices whose primary context has not been made yet. */
int context_set_primary_flags(const struct cuda_state *s);

/* At most so many destroyed contexts may have lain under one in a stack, or on the stacks of threads. */
#define PLACE_TAKERS 8

/* Contexts in the places of others that no longer exist. */
struct place_takers {
	struct place_taker {
		void *context;
		int primary_of; /* a device, or -1 */
	} list[PLACE_TAKERS];
	unsigned count;
};

/* Until context_end_takers(), there is a context where @gone was, which has been destroyed: then the
 * stacks that it has been pushed to have a context that no longer exists, as they had. Also for a context that
 * is there. Where none can be made, the driver will say so when it is pushed. */
int context_take_gone(const struct cuda_state *s, struct place_takers *f, void *gone);
void context_end_takers(struct place_takers *f);

#endif
