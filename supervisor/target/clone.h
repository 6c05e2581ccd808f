/*
 * clone.h - fork(2) with a chosen process id, and into fresh namespaces.
 */
#ifndef SUPERVISOR_TARGET_CLONE_H
#define SUPERVISOR_TARGET_CLONE_H

#include <stdint.h>
#include <sys/types.h>

/* Like fork(2), with clone3(2)'s @flags and, unless @pid is 0, that id in the innermost pid
 * namespace. With CLONE_PARENT the caller's parent is notified of its end. The C library
 * is not told: in the child its idea of the thread's id is stale until execve(2), so no raise()
 * and no threads there. Returns -1 with errno. */
pid_t clone_process(uint64_t flags, pid_t pid);

#endif
