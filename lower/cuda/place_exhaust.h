/*
 * place_exhaust.h - all room of the driver's but places that are to be empty is used up, so
 * that what is made next finds no other.
 */
#ifndef LOWER_CUDA_PLACE_EXHAUST_H
#define LOWER_CUDA_PLACE_EXHAUST_H

#include "lower/cuda/saved_places.h"

/* Once for each heap of a context, before the first of these. */
int exhaust_prepare(enum filler_heap heap, void *context);
/* Use up all room there is, empty places included; then give the empty places back in the
 * order that they are to be taken in, or, with @way, in another. */
int exhaust_room(enum filler_heap heap, void *context);
int exhaust_give_back(unsigned way);
int exhaust_end(void);

#endif
