/*
 * restore/restore.h - bring a checkpoint back to life.
 */
#ifndef SUPERVISOR_RESTORE_RESTORE_H
#define SUPERVISOR_RESTORE_RESTORE_H

#include "ckpt/store.h"
#include "lib/err.h"
#include "supervisor/start/supervisor.h"
#include "supervisor/state/restore_options.h"

/*
 * Make the processes of @c again and let them go. Fills s->root, s->init, s->init_fd,
 * s->command, s->job_id and, when the checkpoint lies in the directory that s checkpoints
 * into, s->last. On failure nothing that was made is left.
 */
int restore_start(struct supervisor *s, const struct checkpoint *c,
	const struct restore_options *o, struct err *e);

/* Whether @c could be brought back here, as far as that can be told while its program is still
 * there, frozen. Nothing is made or opened that the program could notice. */
int restore_check(struct supervisor *s, const struct checkpoint *c, struct err *e);

enum restore_trial {
	RESTORE_WORKS,
	RESTORE_FAILS,
	RESTORE_UNKNOWN, /* it could not be tried, as beside the program there was no room */
	RESTORE_LATE,    /* it was given up, as the time for it was over (trial.h) */
};

/*
 * Bring @c back beside its program, in namespaces of its own, up to where it would run, and
 * end it again. Its files stay closed, and memory is filled only in processes with a lower
 * half (doc/decisions/trial.md). Unless it works, @e says why. For a process
 * without threads and children (trial.h); @s is a supervisor made for the trial.
 */
enum restore_trial restore_try(struct supervisor *s, const struct checkpoint *c, struct err *e);

#endif
