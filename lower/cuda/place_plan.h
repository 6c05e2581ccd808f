/*
 * place_plan.h - what has to be empty for a module to have its variables where it had them: a
 * model of how the driver finds room (placement.h) tells.
 *
 * At first the places themselves are empty, and nothing else. Where the driver would take
 * another of them then, there are few reasons for which it once did not. The other hole
 * was larger: what lies behind was empty, too, or the shared block before it, which came to be with this
 * module. Or its range was not there yet, nor any that is newer: these are given back. Where more than one of
 * these can be, all are tried, one after the other and with what follows from them.
 */
#ifndef LOWER_CUDA_PLACE_PLAN_H
#define LOWER_CUDA_PLACE_PLAN_H

#include "shared/cuda/cuda_state.h"

/* In `planned` of each of saved_places, whether it is to be empty, and in `plan_turn` in which
 * order. 1; 0: there is no plan, and only what @owner has in @context is marked; -1 by
 * agent_fail(). */
int place_plan(const struct object *owner, const void *context);

#endif
