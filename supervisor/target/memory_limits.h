/*
 * target/memory_limits.h - why a process cannot have more memory.
 */
#ifndef SUPERVISOR_TARGET_MEMORY_LIMITS_H
#define SUPERVISOR_TARGET_MEMORY_LIMITS_H

#include <sys/types.h>

#include "lib/err.h"

/* After a failure to map memory in @pid, which is still there: append to @e the limits that it
 * has come close to. Always returns -1. */
int memory_limits_tell(pid_t pid, struct err *e);

#endif
