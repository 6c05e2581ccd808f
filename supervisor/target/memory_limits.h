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

/* -1 when these limits leave no room for what a restart needs beside all that @pid has. */
int memory_limits_refuse(pid_t pid, struct err *e);

#endif
