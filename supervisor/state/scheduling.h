/*
 * scheduling.h - how a thread is scheduled: policy, priorities, processors.
 */
#ifndef SUPERVISOR_STATE_SCHEDULING_H
#define SUPERVISOR_STATE_SCHEDULING_H

#include <sys/types.h>

#include "ckpt/image.h"
#include "lib/err.h"

/* Read all of it from thread @tid of another process into @t. */
int scheduling_read(pid_t tid, struct image_thread *t, struct err *e);

/* Set it for @tid as @t says, as far as this machine and our privileges go: @notice is called
 * with a line for what is not as it was. */
void scheduling_set(pid_t tid, const struct image_thread *t,
	void (*notice)(void *arg, const char *line), void *arg);

#endif
