/*
 * run/kill_program.h - the end of a program that must not run any longer.
 */
#ifndef SUPERVISOR_RUN_KILL_PROGRAM_H
#define SUPERVISOR_RUN_KILL_PROGRAM_H

#include "supervisor/start/supervisor.h"

/* Kill all processes of the program, including children that they make meanwhile, while none is
 * traced. They are not reaped. */
void kill_program(const struct supervisor *s);

#endif
