/*
 * told_once.h - what comes again with every checkpoint is said once.
 */
#ifndef SUPERVISOR_RUN_TOLD_ONCE_H
#define SUPERVISOR_RUN_TOLD_ONCE_H

#include "supervisor/start/supervisor.h"

/* On standard error, unless @supervisor has said so before. One thread at a time. */
void told_once(void *supervisor, const char *line);

#endif
