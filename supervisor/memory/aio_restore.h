/*
 * memory/aio_restore.h - contexts of asynchronous I/O of a new process.
 */
#ifndef SUPERVISOR_MEMORY_AIO_RESTORE_H
#define SUPERVISOR_MEMORY_AIO_RESTORE_H

#include "supervisor/state/new_process.h"

/* Contexts of asynchronous I/O (memory/aio_restore.c). */
int new_process_aio(struct new_process *np);

#endif
