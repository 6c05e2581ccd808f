/*
 * restore/failed_restart.h - a restart that fails because somebody has killed what it was
 * making, and the end of the processes that it has made. (All else that it has made is removed
 * at the end of attempt_restart() in restore.c.)
 */
#ifndef SUPERVISOR_RESTORE_FAILED_RESTART_H
#define SUPERVISOR_RESTORE_FAILED_RESTART_H

#include "supervisor/restore/restart_attempt.h"

/* After a failure, before we have killed anything ourselves: whether somebody else has killed one of
 * the @count new processes, or the first process of their namespace (the init of @s, if any). Then @e says so,
 * as that is why the restart failed. Called by restore.c when a stage fails, and by
 * await_newborns.c when a process ends too early. */
bool restore_killed(const struct new_process *processes, size_t count,
	const struct supervisor *s, struct err *e);

/* The same for process @np, which has ended with @status (waitpid(2)); NULL for a helper or a
 * zombie. */
bool restore_killed_one(const struct new_process *np, int status, struct err *e);

/* The same for helpers and proxies that have not been waited for yet. */
bool restore_helper_killed(struct restore *r);

/* Memory that was to be filled later is not needed any more. */
void restore_abort_lazy(struct supervisor *s);

/* After a failed attempt: kill all new processes, and wait for them. */
void restore_kill_all(struct restore *r);

#endif
