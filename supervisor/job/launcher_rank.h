/*
 * launcher_rank.h - which member of a job a process is, as its launcher says.
 */
#ifndef SUPERVISOR_JOB_LAUNCHER_RANK_H
#define SUPERVISOR_JOB_LAUNCHER_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The processes of the launcher among our ancestors, the nearest first: it has started this rank, directly
 * or by way of others, such as a shell that runs a script. How many they are, at most @room; *above is
 * the process that started the launcher. */
size_t launcher_processes(pid_t *pids, size_t room, pid_t *above);

/* Whether a launcher started this process as one of several, and if so as which of how many. */
bool rank_of_launcher(int *rank, int *size);

/* How many of them it has started on this node; 0 when it does not say. */
int rank_local_size(void);

#endif
