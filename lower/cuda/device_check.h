/*
 * device_check.h - whether the driver and the devices here can take the place of those that the
 * program had.
 *
 * Functions return 0, or -1 by agent_fail(); differences that the program may notice are told.
 */
#ifndef LOWER_CUDA_DEVICE_CHECK_H
#define LOWER_CUDA_DEVICE_CHECK_H

#include "shared/cuda/cuda_state.h"

/* Before cuInit. */
int device_check_driver(const struct cuda_state *s);
/* All devices, as cuInit has made them visible; the records have them from then on. */
int device_check_all(struct cuda_state *s);

#endif
