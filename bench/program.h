/*
 * program.h - what benchmark programs have in common: the time, a tick of their loop, and the end when something
 * cannot be done.
 */
#ifndef BENCH_PROGRAM_H
#define BENCH_PROGRAM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/report.h"

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

/* The program has gone around its loop once more, for the first time after @last. Returns the time. */
static inline uint64_t report_tick(volatile struct report *report, uint64_t last)
{
	uint64_t t = now();

	if (report->ready && t - last > report->largest_gap)
		report->largest_gap = t - last;
	/* Not t: that may be from before a checkpoint. */
	if (!report->first_tick)
		report->first_tick = now();
	report->ticks++;
	return t;
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
