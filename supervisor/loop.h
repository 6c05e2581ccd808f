/*
 * loop.h - the supervisor's one event loop: children, signals, the clock, requests.
 */
#ifndef SUPERVISOR_LOOP_H
#define SUPERVISOR_LOOP_H

#include "supervisor/supervisor.h"

/* To be called before the root process is made: blocks and routes the signals, becomes
 * subreaper. Remembers the signal dispositions and mask that the program is to start with. */
int loop_prepare(struct supervisor *s, struct err *e);

/* Supervise until the root process has ended; returns its exit status as trecr-run reports
 * it (the program's, or 128 + signal). */
int loop_run(struct supervisor *s);

#endif
