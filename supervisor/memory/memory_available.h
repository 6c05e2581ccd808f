/*
 * memory_available.h - how much memory processes may take: of the machine, and of the control groups that
 * a process is in, where these are mounted as a rule.
 */
#ifndef SUPERVISOR_MEMORY_MEMORY_AVAILABLE_H
#define SUPERVISOR_MEMORY_MEMORY_AVAILABLE_H

#include <stdint.h>
#include <sys/types.h>

/* Bytes that the machine, and the cgroups of process @pid, have left at the moment: MemAvailable,
 * and each group's limit less its use. All ones: nothing tells. */
uint64_t memory_available_now(pid_t pid);

/* Bytes that the machine has at all, with its swap space. */
uint64_t memory_available_machine(void);
/* Bytes that the cgroups of process @pid allow at all, with the machine's swap space. */
uint64_t memory_available_groups(pid_t pid);

#endif
