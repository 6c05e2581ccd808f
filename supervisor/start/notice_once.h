/*
 * notice_once.h - what comes again with every checkpoint is said once.
 */
#ifndef SUPERVISOR_START_NOTICE_ONCE_H
#define SUPERVISOR_START_NOTICE_ONCE_H

#include "supervisor/start/supervisor.h"

/* On standard error, unless @supervisor has said so before. One thread at a time. */
void notice_once(void *supervisor, const char *line);

#endif
