/*
 * memory/maps_ahead.h - memory maps of many processes, read by a thread of its own: the thread that traces them is at
 * another process meanwhile.
 */
#ifndef SUPERVISOR_MEMORY_MAPS_AHEAD_H
#define SUPERVISOR_MEMORY_MAPS_AHEAD_H

#include <stddef.h>
#include <sys/types.h>

#include "lib/err.h"
#include "lib/procfs.h"

struct maps_ahead;

/* Begin with those of @count processes, whose maps do not change before they are taken: @tasks has a task of each, 0 for
 * one that is not to be read. NULL: there is nothing to be gained, or no thread. */
struct maps_ahead *maps_ahead_begin(const pid_t *tasks, size_t count);

/* As procfs_vmas() of @task, which is number @i; in rising order. @ahead may be NULL. */
int maps_ahead_take(
	struct maps_ahead *ahead, size_t i, pid_t task, struct vma_list *list, struct err *e);

/* NULL: nothing. */
void maps_ahead_end(struct maps_ahead *ahead);

#endif
