/*
 * membarrier.h - what a process has registered for with membarrier(2): without it, the calls
 * that it makes later fail.
 */
#ifndef SUPERVISOR_STATE_MEMBARRIER_H
#define SUPERVISOR_STATE_MEMBARRIER_H

#include "supervisor/target/batch_plan.h"
#include "supervisor/target/remote_query.h"

/* Its registrations: MEMBARRIER_CMD_REGISTER_* or'ed together. @asked: the question, answered; only
 * where the kernel cannot answer it are there more calls. */
struct remote_query membarrier_question(void);
int membarrier_read(struct remote *r, const struct remote_query *asked, uint32_t *registrations,
	struct err *e);

/* Register for the same. To be done while there is one thread: with more the kernel waits. */
void membarrier_plan(struct batch_builder *b, uint32_t registrations);

#endif
