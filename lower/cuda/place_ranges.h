/*
 * place_ranges.h - ranges of the driver's are made where they were, and filled.
 */
#ifndef LOWER_CUDA_PLACE_RANGES_H
#define LOWER_CUDA_PLACE_RANGES_H

#include "lower/cuda/saved_places.h"

/* Places @first to @last, which are all that is in one block. */
int block_fill_shared(size_t first, size_t last);
int range_fill(const struct range *r);

#endif
