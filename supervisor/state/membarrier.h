/*
 * membarrier.h - what a process has registered for with membarrier(2): without it, the calls
 * that it makes later fail.
 */
#ifndef SUPERVISOR_STATE_MEMBARRIER_H
#define SUPERVISOR_STATE_MEMBARRIER_H

#include "supervisor/target/batch_plan.h"
#include "supervisor/target/remote.h"

/* Its registrations: MEMBARRIER_CMD_REGISTER_* or'ed together. */
int membarrier_read(struct remote *r, uint32_t *registrations, struct err *e);

/* Register for the same. To be done while there is one thread: with more the kernel waits. */
void membarrier_plan(struct batch_builder *b, uint32_t registrations);

#endif
