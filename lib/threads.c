/*
 * threads.c - as many as were asked for, else as this process may use processors, up to a
 * limit of the caller's.
 */
#include "lib/threads.h"

#include <sched.h>

unsigned threads_wanted(unsigned asked, unsigned most)
{
	cpu_set_t set;
	unsigned cpus = most;

	if (asked)
		return asked < THREADS_MOST ? asked : THREADS_MOST;
	/* Fails on machines with more processors than the set has room for: plenty. */
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		cpus = CPU_COUNT(&set);
	return cpus < most ? cpus : most;
}
