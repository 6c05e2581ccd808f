/*
 * restart_namespaces.h - a part of the restart barrier (restart_barrier.h): ranks tell rank 0 which process ids their
 * programs need, and rank 0 tells each whether to restart by itself, to make a pid namespace, or to join one.
 */
#ifndef SUPERVISOR_JOB_RESTART_NAMESPACES_H
#define SUPERVISOR_JOB_RESTART_NAMESPACES_H

#include <stdbool.h>

struct restart_barrier;

/* When the number of ranks is known. Ends with restart_namespaces_free(), which leaves the namespace. */
void restart_namespaces_init(struct restart_barrier *g);
void restart_namespaces_free(struct restart_barrier *g);

/* A line that rank @rank has sent to rank 0. Returns whether it is about namespaces, and is understood. */
bool restart_namespaces_hear(struct restart_barrier *g, int rank, const char *line);

#endif
