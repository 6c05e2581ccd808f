/*
 * throttle.h - no more than so many bytes a second, by all threads together.
 */
#ifndef CKPT_THROTTLE_H
#define CKPT_THROTTLE_H

#include <stdint.h>

#include "lib/err.h"

struct throttle {
	uint64_t rate;    /* bytes a second, 0: no limit */
	uint64_t next_ns; /* CLOCK_MONOTONIC: when the next bytes may be written; atomic */
};

/* Wait until @bytes may be written. @cancelled is asked now and then, and its failure returned;
 * it may be NULL. */
int throttle_wait(struct throttle *t, uint64_t bytes, int (*cancelled)(void *, struct err *),
	void *context, struct err *e);

#endif
