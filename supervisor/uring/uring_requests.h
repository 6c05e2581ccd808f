/*
 * uring/uring_requests.h - requests of an io_uring that waited at the checkpoint are issued again.
 */
#ifndef SUPERVISOR_URING_URING_REQUESTS_H
#define SUPERVISOR_URING_URING_REQUESTS_H

#include "supervisor/state/new_process.h"

/* When all processes have their registers: requests that waited (uring_requests.c). */
int new_process_requests(struct new_process *np);

#endif
