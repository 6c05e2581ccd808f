/*
 * state/restore_options.h - how a restart is asked for; what of it the state of processes depends on
 * is beside this.
 */
#ifndef SUPERVISOR_STATE_RESTORE_OPTIONS_H
#define SUPERVISOR_STATE_RESTORE_OPTIONS_H

#include <stdbool.h>

struct err;
struct namespace_wish;
struct shared_namespace;
struct supervisor;

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
	/* Of the same, before anything is made: whether the program is to be in a namespace with those of other members
	 * (*shared, which is not the caller's; NULL: it is not). To be called by all, and gives the same each time. */
	int (*share)(void *arg, const struct namespace_wish *wish,
		const struct shared_namespace **shared, struct err *e);
	void *others;
	/* Of the same: a word that all members have for this restart, and no other restart has. NULL: it is by
	 * itself. */
	const char *restart;
	const char *
		mpi; /* which MPI library lower halves load (mpi_library_option()); NULL: the launcher's */
	bool gpu_other;      /* another build of the GPU driver, or another model, will do */
	const char *gpu_map; /* which GPU is which (split/gpu_map.h); NULL: by their order */
	/* Answers requests for so long that they have to wait, and why. */
	void (*put_off)(struct supervisor *s, int ms, const char *why);
};

#endif
