/*
 * state/new_process.h - one process of a restart, from its execve(2) on.
 */
#ifndef SUPERVISOR_STATE_NEW_PROCESS_H
#define SUPERVISOR_STATE_NEW_PROCESS_H

#include "supervisor/state/restore_plan.h"
#include "supervisor/target/process.h"

struct checkpoint;
struct restore_clocks;
struct restore_options;
struct supervisor;

#define EXEC_PATIENCE_NS 60000000000ull

/* How far one has come (restore/restore_stage.h). */
enum restore_stage {
	RESTORE_PLANNED,   /* there is nothing of it yet */
	RESTORE_MADE,      /* it has its id, and is traced (restore/make_tree.c) */
	RESTORE_PLACED,    /* its descriptors are at their numbers (child_before_exec.c) */
	RESTORE_EXECUTED,  /* it is stopped before its program's first instruction */
	RESTORE_MAPPED,    /* its memory is there, and filled (process_by_loader.c) */
	RESTORE_THREADS,   /* all threads are there, with their settings */
	RESTORE_REGISTERS, /* and registers; and what comes last (registers_restore.c) */
	RESTORE_LET_GO,    /* it runs on */
	RESTORE_STAGES
};

struct new_process {
	struct supervisor *s;
	const struct checkpoint *c;
	const struct restore_options *o;
	struct restore_clocks *clocks;
	struct err *e;
	int (*look_at_others)(void *arg, struct err *e); /* of restore_options */
	void *others;
	const char *mpi;    /* of restore_options */
	char *gpu_variable; /* what --gpu-map has its lower half see; NULL: as before */

	enum restore_stage stage;
	size_t index; /* of the process in the checkpoint */
	const struct image *img;
	const struct image_process *ip;
	const struct image_thread *threads;
	size_t thread_count;
	const struct restart_fds *fds;

	/* The process that brings its memory back, which has run before it; NULL: itself. */
	struct new_process *memory;
	size_t place; /* its place among the processes in that memory, from 0, */
	bool last;    /* and whether it is the last */

	bool stays;             /* it executes nothing: restore/child_before_exec.h */
	bool trial;             /* the program is still there: nothing that it could notice */
	bool no_room;           /* a trial has failed because a device is in use */
	bool id_taken;          /* it has failed because something else has a thread's id */
	struct process process; /* threads in the image's order */
	struct restore_plan plan;
	struct vma_list vmas;
	int uffd;          /* of its memory, if that is filled later; else -1 */
	int anchor;        /* keeps uffd open (memory/uffd_anchor.h), or -1 */
	uint8_t *new_vdso; /* its bytes, while the old one's range is something else */
};

#endif
