/*
 * restore/job_stops.h - processes that were stopped are so again, and their parents know as
 * much of it as they did.
 */
#ifndef SUPERVISOR_RESTORE_JOB_STOPS_H
#define SUPERVISOR_RESTORE_JOB_STOPS_H

#include "supervisor/state/restore_one.h"

/* When all @count have their registers, and before any of them is let go.
 * @list as in the image; those of @all without a process to be stopped are left alone. */
int restore_stops(struct restore_one *all, size_t count, const struct image_job_process *list,
	struct err *e);

#endif
