/*
 * restore/killed.h - a restart that fails because somebody has killed what it was making, and
 * the end of all that it has made.
 */
#ifndef SUPERVISOR_RESTORE_KILLED_H
#define SUPERVISOR_RESTORE_KILLED_H

#include "supervisor/restore/one.h"

/* After a failure, while nobody but others can have killed any of the @count new processes, or
 * the first process of their namespace (@init, or 0): if one was, that is why, and @e says so.
 * Returns whether. */
bool restore_killed(
	const struct restore_one *processes, size_t count, pid_t init, struct err *e);

/* The same of the one that has ended with @status, as of waitpid(2); @one is NULL for one that
 * is not to be a living process of the program. */
bool restore_killed_one(const struct restore_one *one, int status, struct err *e);

/* SIGKILL to @pid, if it descends from us: one that has ended may have left its number to
 * somebody else. */
void restore_kill(pid_t pid);

#endif
