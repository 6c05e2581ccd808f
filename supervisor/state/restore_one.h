/*
 * state/restore_one.h - one process of a restart, from its execve(2) on.
 */
#ifndef SUPERVISOR_STATE_RESTORE_ONE_H
#define SUPERVISOR_STATE_RESTORE_ONE_H

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
	RESTORE_MADE,      /* it has its id, and is traced (restore/tree_births.c) */
	RESTORE_PLACED,    /* its descriptors are at their numbers (child_before_exec.c) */
	RESTORE_EXECUTED,  /* it is stopped before its program's first instruction */
	RESTORE_MAPPED,    /* its memory is there, and filled (process_by_loader.c) */
	RESTORE_THREADS,   /* all threads are there, with their settings */
	RESTORE_REGISTERS, /* and registers; and what comes last (process_from_outside.c) */
	RESTORE_LET_GO,    /* it runs on */
	RESTORE_STAGES
};

struct restore_one {
	struct supervisor *s;
	const struct checkpoint *c;
	const struct restore_options *o;
	struct restore_clocks *clocks;
	struct err *e;

	enum restore_stage stage;
	size_t index; /* of the process in the checkpoint */
	const struct image *img;
	const struct image_process *ip;
	const struct image_thread *threads;
	size_t thread_count;
	const struct extra_fds *fds;

	/* The process that brings its memory back, which has run before it; NULL: itself. */
	struct restore_one *memory;
	size_t place; /* which one it is of those in that memory, from 0, */
	bool last;    /* and whether it is the last */

	bool stays;             /* it executes nothing: restore/child_before_exec.h */
	bool trial;             /* the program is still there: nothing that it could notice */
	bool no_room;           /* a trial has failed because a device is in use */
	bool id_taken;          /* it has failed because something else has a thread's id */
	struct process process; /* threads in the image's order */
	struct restore_plan plan;
	struct vma_list vmas;
	uint8_t *new_vdso; /* its bytes, while the old one's range is something else */
};

/* Look at process number @index of r->c; s, c, o, clocks and e are the
 * caller's to fill before. */
int restore_one_init(struct restore_one *r, size_t index, const struct extra_fds *fds);
void restore_one_free(struct restore_one *r);

/* Whether the program's own file is there to be executed. Only an image that carries its
 * memory can do without. */
bool restore_one_exe_is_there(const struct restore_one *r);

/* From RESTORE_EXECUTED to RESTORE_MAPPED: r->process.pid and its first thread are filled. */
int restore_one_map(struct restore_one *r);
/* Its memory is mapped: the compressed part of the contents (memory/decompress.c). */
int restore_one_unpack(struct restore_one *r);
/* To RESTORE_THREADS: all of the process's state but registers. */
int restore_one_threads(struct restore_one *r);
/* To RESTORE_REGISTERS, when all have come so far (restore/process_from_outside.c). It does not
 * run on by itself. */
int restore_one_registers(struct restore_one *r);

/* Descriptors that lead to processes or threads: when all are what they were
 * (task_files_restore.c). */
int restore_one_task_files(struct restore_one *r);
/* What descriptor @fd of the process leads to. */
const struct image_description *restore_one_description(
	const struct restore_one *r, const struct image_fd *fd);
/* Owners of files that are threads, or the group that we are in (file_owners_restore.c). */
int restore_one_file_owners(struct restore_one *r);
/* io_uring: what needs the process itself, and mappings (uring_process_restore.c). */
int restore_one_rings(struct restore_one *r);
/* When all processes have their registers: requests that waited (uring_requests.c). */
int restore_one_requests(struct restore_one *r);
/* Contexts of asynchronous I/O (memory/aio_restore.c). */
int restore_one_aio(struct restore_one *r);

/* POSIX locks: when all that the restart opened has been closed (posix_locks_restore.c). */
int restore_one_posix_locks(struct restore_one *r);

/* Of a process that becomes another user's in its second batch the limits have to be set
 * before, as root may lack the privilege to do so after; of all others at the end. */
bool restore_one_changes_user(const struct restore_one *r);

#endif
