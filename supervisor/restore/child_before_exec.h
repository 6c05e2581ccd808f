/*
 * restore/child_before_exec.h - the last part of what a process of a restart does by itself:
 * working directory, umask, its descriptors; then it executes the program's file, so that
 * /proc/self/exe is right, and never runs an instruction of it. A process that may not
 * execute anything (creation_order.h) stops where it is, and gets its memory and its executed file in
 * place.
 */
#ifndef SUPERVISOR_RESTORE_CHILD_BEFORE_EXEC_H
#define SUPERVISOR_RESTORE_CHILD_BEFORE_EXEC_H

#include <stdbool.h>

#include "ckpt/store.h"
#include "lib/err.h"
#include "supervisor/fd_table/descriptors.h"
#include "supervisor/state/restart_fds.h"

struct restore_child {
	const struct checkpoint *c;
	size_t index;     /* of the process in the checkpoint */
	bool foreign_exe; /* the program's file is not there: execute our own */
	bool stays;       /* executes nothing */
	bool trial;       /* files are mapped in private copies */
	struct restart_fds *fds;
};

/* Bytes that the process and the supervisor share. */
size_t restore_child_shared_size(const struct checkpoint *c, size_t index);
/* Before any process is made. @shared: as many bytes, aligned for struct restart_fds and zero; the caller's. */
void restore_child_init(
	struct restore_child *r, const struct checkpoint *c, size_t index, void *shared);

/* Before any process is made: prepare for files that a restart, or a trial, opens despite their modes
 * (fd/reopen_despite_mode.h). */
void restore_child_prepare_files(const struct checkpoint *c, bool trial);

/* In the process, before its descriptors are at their numbers: working directory and umask. */
int restore_child_enter(struct restore_child *r, const struct fd_restore *fds, struct err *e);
/* In the process: put the descriptors of process @index of @children at their numbers, and those
 * of the processes that share its table. @error_fd is kept open, and may get another number. */
int restore_child_place(struct restore_child *children, size_t index, struct fd_restore *fds,
	int *error_fd, struct err *e);
/* Execute the program's file. Returns only if that fails. */
int restore_child_exec(struct restore_child *r, struct err *e);
/* Instead: all that execve(2) would do and the program's process needs; with @follows its
 * descriptors are another's to deal with. */
int restore_child_prepare_stop(bool follows, struct err *e);

#endif
