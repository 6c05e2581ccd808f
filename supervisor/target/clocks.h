/*
 * clocks.h - CLOCK_MONOTONIC and CLOCK_BOOTTIME, which differ between time namespaces
 * (time_namespaces(7)).
 */
#ifndef SUPERVISOR_TARGET_CLOCKS_H
#define SUPERVISOR_TARGET_CLOCKS_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "lib/err.h"

/* By how much they are ahead. */
struct clock_shifts {
	int64_t monotonic_ns, boottime_ns;
};

/* Of process @pid's children, which is in no other time namespace than they, against the
 * kernel's own. All zero where the kernel knows no such namespaces. */
int clocks_of(pid_t pid, struct clock_shifts *out, struct err *e);

/* Of process @pid's children, which is in no other time namespace than they, against ours. All
 * zero where the kernel knows no such namespaces. */
int clocks_compare(pid_t pid, struct clock_shifts *out, struct err *e);

/* By how much @clock is ahead; 0 for a clock that is everywhere the same. */
int64_t clocks_shift(const struct clock_shifts *s, clockid_t clock);

/* What clocks_set() takes, for clocks that are to show these values now. */
int clocks_plan(
	uint64_t monotonic_ns, uint64_t boottime_ns, struct clock_shifts *out, struct err *e);

/* Which start of which kernel this is, or all zero. */
void clocks_boot_id(uint8_t id[16]);

/* A new time namespace for all children that the calling process makes from now on. Returns
 * -1 with errno. */
int clocks_set(const struct clock_shifts *s);

#endif
