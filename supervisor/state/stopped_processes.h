/*
 * state/stopped_processes.h - stop processes again that job control had stopped, so that their parents
 * have waited for as many of the stops as before.
 */
#ifndef SUPERVISOR_STATE_STOPPED_PROCESSES_H
#define SUPERVISOR_STATE_STOPPED_PROCESSES_H

#include "supervisor/state/new_process.h"

/* When all @count processes have their registers, and before any of them is let go. @list is the
 * list of the image. */
int restore_stops(struct new_process *all, size_t count, const struct image_job_process *list,
	struct err *e);

#endif
