/*
 * restore/restore.h - bring a checkpoint back to life.
 */
#ifndef SUPERVISOR_RESTORE_RESTORE_H
#define SUPERVISOR_RESTORE_RESTORE_H

#include <stdbool.h>

#include "ckpt/store.h"
#include "lib/err.h"
#include "supervisor/start/supervisor.h"

/* When CLOCK_MONOTONIC and CLOCK_BOOTTIME continue from the checkpoint. */
enum freeze_clock {
	FREEZE_CLOCK_AUTO, /* where they would jump */
	FREEZE_CLOCK_ALWAYS,
	FREEZE_CLOCK_NEVER,
};

struct restore_options {
	bool rollback_files;  /* move what files gained since into FILE.trecr-tail */
	bool force_namespace; /* use a namespace of its own also where ids are free */
	bool force;           /* also where the program runs already */
	bool lazy;            /* memory is filled when it is needed (memory/lazy.h) */
	bool trial;           /* see restore_try() */
	enum freeze_clock freeze_clock;
	unsigned threads; /* to read memory, 0: as many as is sensible */
	bool verbose;
	void (*notice)(const char *line); /* what the user should know; no newline */
	void (*about_to_run)(void);       /* from here on the program may use the terminal */
	/* Of a job's member: waits until all others are where it is, too, just before the
	 * program runs. */
	int (*all_back)(void *arg, struct err *e);
	/* Of the same, while it waits for others inside its MPI library: whether they are all still
	 * at it. */
	int (*look_at_others)(void *arg, struct err *e);
	void *others;
	const char *
		mpi; /* which MPI library lower halves load (mpi_library_option()); NULL: the launcher's */
	/* Answers requests for so long that they have to wait, and why. */
	void (*put_off)(struct supervisor *s, int ms, const char *why);
};

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
