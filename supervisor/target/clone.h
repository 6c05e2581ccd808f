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

/* The same with any id and no flags. *@pidfd (pidfd_open(2)), which closes on exec, is the caller's: it refers to that
 * child whoever waits for it. */
pid_t clone_process_with_pidfd(int *pidfd);

#endif
