/*
 * restore/task_files_restore.h - descriptors that lead to processes or threads.
 */
#ifndef SUPERVISOR_RESTORE_TASK_FILES_RESTORE_H
#define SUPERVISOR_RESTORE_TASK_FILES_RESTORE_H

#include "supervisor/state/new_process.h"

/* Descriptors that lead to processes or threads: when all are what they were
 * (task_files_restore.c). */
int new_process_task_files(struct new_process *np);

/* What descriptor @fd of the process leads to. */
const struct image_description *new_process_description(
	const struct new_process *np, const struct image_fd *fd);

#endif
