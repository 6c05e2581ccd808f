/*
 * restore/failed_restart.h - a restart that fails because somebody has killed what it was
 * making, and the end of the processes that it has made. (All else that it has made is removed
 * at the end of attempt() in restore.c.)
 */
#ifndef SUPERVISOR_RESTORE_FAILED_RESTART_H
#define SUPERVISOR_RESTORE_FAILED_RESTART_H

#include "supervisor/restore/attempt.h"

/* After a failure, while nobody but others can have killed any of the @count new processes, or
 * the first process of their namespace (@init, or 0): if one was, that is why, and @e says so.
 * Returns whether. */
bool restore_killed(
	const struct restore_one *processes, size_t count, pid_t init, struct err *e);

/* The same of the one that has ended with @status, as of waitpid(2); @one is NULL for one that
 * is not to be a living process of the program. */
bool restore_killed_one(const struct restore_one *one, int status, struct err *e);

/* The same of those that help to make the others, as far as they have not been waited for. */
bool restore_helper_killed(struct restore *r);

/* The end of an attempt: whatever there is of the new processes goes. */
void restore_kill_all(struct restore *r);

#endif
