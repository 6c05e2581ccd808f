/*
 * time_limit.h - what time it is, and how much longer time limits are on a slow machine.
 */
#ifndef T_TOOL_TIME_LIMIT_H
#define T_TOOL_TIME_LIMIT_H

#include <stdlib.h>
#include <time.h>

/* Seconds of CLOCK_MONOTONIC. */
static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* By how much this machine is slower than those for which the time limits are (t/lib.sh). */
static inline double slowness(void)
{
	const char *slow = getenv("TEST_SLOW");

	return slow && atof(slow) > 1 ? atof(slow) : 1;
}

#endif
