/*
 * target/memory_limits.h - why a process cannot have more memory.
 */
#ifndef SUPERVISOR_TARGET_MEMORY_LIMITS_H
#define SUPERVISOR_TARGET_MEMORY_LIMITS_H

#include <stdint.h>
#include <sys/types.h>

#include "lib/err.h"

/* After a failure to map memory in @pid, which is still there: append to @e the limits that it
 * has come close to. Always returns -1. */
int memory_limits_tell(pid_t pid, struct err *e);

/* What a process of a restart can have at first, if that is done with our limits: it gets the
 * program's own in the end. 0: as much as it wants; -1: *most. */
int memory_limits_most(int resource, uint64_t *most);

/* Bytes that a restart needs in a process for filling its memory from so many extents, with so many
 * bytes of hashes, which the loader compares. */
uint64_t memory_limits_contents(size_t extents, uint64_t hashes);

/* What a process has when it is measured, in bytes: what the limits apply to, and what a restart needs
 * in it beside that, but for filling its memory. */
struct memory_use {
	pid_t pid;
	uint64_t space; /* RLIMIT_AS */
	uint64_t data;  /* RLIMIT_DATA */
	uint64_t restart_needs;
};

int memory_limits_measure(pid_t pid, struct memory_use *use, struct err *e);

/* -1 when these limits leave no room for what a restart needs beside all that @use has; @contents is for
 * filling its memory (memory_limits_contents()), 0 where that is not known yet. */
int memory_limits_refuse(const struct memory_use *use, uint64_t contents, struct err *e);

#endif
