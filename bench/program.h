/*
 * program.h - what benchmark programs have in common: the time, and the end when something cannot be done.
 */
#ifndef BENCH_PROGRAM_H
#define BENCH_PROGRAM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Nanoseconds of CLOCK_MONOTONIC. */
static inline uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static inline double seconds(void)
{
	return now() * 1e-9;
}

/* Ends the program with @what and what errno says, unless @ok. */
static inline void must(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

#endif
