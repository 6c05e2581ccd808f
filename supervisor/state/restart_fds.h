/*
 * state/restart_fds.h - the descriptors that a restart needs in a process to fill its memory.
 */
#ifndef SUPERVISOR_STATE_RESTART_FDS_H
#define SUPERVISOR_STATE_RESTART_FDS_H

#include <stdbool.h>
#include <stddef.h>

/* A shared mapping that may be written needs its file open for writing: two slots a module. */
#define RESTART_FD_MODULE_SLOTS 2

/* Descriptors that the new process has besides the program's, for the plan to use and
 * close. Written by the child into memory that it shares with the supervisor. */
struct restart_fds {
	bool placed;    /* the program's own descriptors are at their numbers */
	int zero;       /* /dev/zero */
	int exe;        /* the program's file, if the process does not execute it; else -1 */
	size_t sources; /* files that hold blocks, by image_extent.source */
	size_t modules; /* mapped files, by image_region.module less 1 */
	size_t objects; /* shared objects, by number less 1 */
	size_t threads; /* descriptors of threads' own, by IMAGE_NOTE_THREAD_FDS */
	int fd[];       /* sources, modules, threads, objects; -1: not needed */
};

int restart_fd_source(const struct restart_fds *f, size_t source);
int restart_fd_module(const struct restart_fds *f, size_t module, bool writable);
int restart_fd_object(const struct restart_fds *f, size_t object);
int restart_fd_thread(const struct restart_fds *f, size_t i);

/* Where they are kept, to be filled. */
int *restart_fd_source_slot(struct restart_fds *f, size_t i);
int *restart_fd_module_slot(struct restart_fds *f, size_t i, bool writable);
int *restart_fd_object_slot(struct restart_fds *f, size_t i);
int *restart_fd_thread_slot(struct restart_fds *f, size_t i);

#endif
