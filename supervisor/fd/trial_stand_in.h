/*
 * fd/trial_stand_in.h - in a trial of a restart: what takes the place of open files and shared
 * memory while the program itself has them.
 */
#ifndef SUPERVISOR_FD_TRIAL_STAND_IN_H
#define SUPERVISOR_FD_TRIAL_STAND_IN_H

#include "supervisor/fd/fd.h"

/* A descriptor in the place of any; lifted. -1 on failure. */
int fd_stand_in(struct fd_restore *r, struct err *e);

/* Empty memory in the place of what is mapped of object @number. */
int fd_stand_in_memory(struct fd_restore *r, uint32_t number, struct err *e);

#endif
