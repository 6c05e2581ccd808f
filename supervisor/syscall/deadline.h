/*
 * deadline.h - system calls that wait until a time of a clock, when that clock has jumped.
 */
#ifndef SUPERVISOR_SYSCALL_DEADLINE_H
#define SUPERVISOR_SYSCALL_DEADLINE_H

#include "lib/util.h"
#include "supervisor/target/clocks.h"
#include "supervisor/target/process.h"

/* A time that has been moved: threads may wait until the same one. */
struct moved_deadline {
	const void *memory; /* what identifies the memory it is in */
	uint64_t address;
};

/*
 * @t, which has the registers that it will resume with, may be about to enter a call again that
 * waits until a time of CLOCK_MONOTONIC or CLOCK_BOOTTIME: move that time, in the program's
 * memory, by @leap. It stays there: what a loop adds up to is right then, too. @moved (struct
 * moved_deadline) are those moved before; @memory tells p's memory from others'.
 */
int syscall_move_deadline(const struct process *p, const struct thread *t, const void *memory,
	const struct clock_shifts *leap, struct buf *moved, struct err *e);

#endif
