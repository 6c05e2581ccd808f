/*
 * state/extra_fds.h - the descriptors that a restart needs in a process to fill its memory.
 */
#ifndef SUPERVISOR_STATE_EXTRA_FDS_H
#define SUPERVISOR_STATE_EXTRA_FDS_H

#include <stdbool.h>
#include <stddef.h>

/* A shared mapping that may be written needs its file open for writing: two slots a module. */
#define EXTRA_MODULE_SLOTS 2

/* Descriptors that the new process has besides the program's, for the plan to use and
 * close. Written by the child into memory that it shares with the supervisor. */
struct extra_fds {
	bool placed;    /* the program's own descriptors are at their numbers */
	int zero;       /* /dev/zero */
	int exe;        /* the program's file, if the process does not execute it; else -1 */
	size_t sources; /* files that hold blocks, by image_extent.source */
	size_t modules; /* mapped files, by image_region.module less 1 */
	size_t objects; /* shared objects, by number less 1 */
	size_t threads; /* descriptors of threads' own, by IMAGE_NOTE_THREAD_FDS */
	int fd[];       /* sources, modules, threads, objects; -1: not needed */
};

int extra_source(const struct extra_fds *f, size_t source);
int extra_module(const struct extra_fds *f, size_t module, bool writable);
int extra_object(const struct extra_fds *f, size_t object);
int extra_thread(const struct extra_fds *f, size_t i);

/* Where they are kept, to be filled. */
int *extra_source_slot(struct extra_fds *f, size_t i);
int *extra_module_slot(struct extra_fds *f, size_t i, bool writable);
int *extra_object_slot(struct extra_fds *f, size_t i);
int *extra_thread_slot(struct extra_fds *f, size_t i);

#endif
