/*
 * fd_kinds/saved_directories_dump.h - at a checkpoint: all files of the directories whose files belong together
 * (saved_directories.h).
 */
#ifndef SUPERVISOR_FD_KINDS_SAVED_DIRECTORIES_DUMP_H
#define SUPERVISOR_FD_KINDS_SAVED_DIRECTORIES_DUMP_H

#include "supervisor/fd/fd.h"

/* The file @path, which is to be saved, is one of the directory @set: all others there are to be saved, too, by
 * fd_saved_dump_sets(). */
void fd_saved_mark_set(struct fd_dump *d, const char *path, const char *set);

/* When all descriptors and mappings are known: the other files of the directories that have been marked. */
int fd_saved_dump_sets(struct fd_dump *d, struct err *e);

#endif
