/*
 * place_refill.h - places that are empty are filled again.
 */
#ifndef LOWER_CUDA_PLACE_REFILL_H
#define LOWER_CUDA_PLACE_REFILL_H

int places_refill(void);

#endif
