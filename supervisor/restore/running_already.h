/*
 * restore/running_already.h - whether the program that is to be brought back runs already. Two
 * of one program write into the same files.
 */
#ifndef SUPERVISOR_RESTORE_RUNNING_ALREADY_H
#define SUPERVISOR_RESTORE_RUNNING_ALREADY_H

#include "ckpt/store.h"
#include "lib/err.h"
#include "supervisor/start/supervisor.h"

/*
 * Refuse when processes of the program of @c are alive here, or a supervisor of it, here or on
 * another machine, holds the directory that @c is in. A process or supervisor that is just ending is
 * waited for.
 *
 * With @forced that is no obstacle. When checkpoints are to go to where @c is, that directory
 * is held from now on (s->store), if it can be; *notice, the caller's to free, says why another
 * program's supervisor keeps it, else it is NULL.
 */
int running_already_check(struct supervisor *s, const struct checkpoint *c, bool forced,
	char **notice, struct err *e);

#endif
