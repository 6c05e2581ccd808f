/*
 * report.h - what a benchmark program tells bench/run, bench/modes or bench/gpu while it runs: a small file
 * that both use. Being a file on a disk, it is there after a restart too. bench/common.py knows
 * this layout.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdint.h>

/* Times are CLOCK_MONOTONIC nanoseconds. */
struct report {
	uint64_t ready;       /* 1 when memory is filled and all threads run */
	uint64_t ticks;       /* so many times around the loop */
	uint64_t largest_gap; /* between two ticks, from `ready` on; bench/run sets it to 0 */
	uint64_t first_tick;  /* of the first tick since bench/run set it to 0 */
	/* So much memory, in per cent, is to be written; the program sets it to 0 when it has been. */
	uint64_t dirty;
};

#endif
