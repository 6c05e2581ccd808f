/*
 * place_plan.h - what has to be empty for a module to have its variables where it had them: a
 * model of how the driver finds room (placement.h) tells.
 *
 * Of what can be empty, as little as possible is: the places themselves. Where the driver would take
 * another of them then, there are two reasons only for which it once did not. The other hole
 * was larger: so what lies behind is empty, too. Or its range was not there yet, nor any that is
 * newer: these are given back. Either is needed in every plan there is, so what comes out is the
 * least of them.
 */
#ifndef LOWER_CUDA_PLACE_PLAN_H
#define LOWER_CUDA_PLACE_PLAN_H

#include "shared/cuda/state.h"

/* In `planned` of each of saved_places, whether it is to be empty, and in `plan_turn` in which
 * order. 1; 0: there is no plan, and only what @owner has in @context is marked; -1 by
 * agent_fail(). */
int place_plan(const struct object *owner, const void *context);

#endif
