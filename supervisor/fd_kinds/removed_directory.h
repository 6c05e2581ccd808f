/*
 * fd_kinds/removed_directory.h - directories that have been removed while they were open or worked
 * in.
 *
 * Such a directory is empty and stays so: nothing can be made in it. What is left of it is its
 * owner and mode, and what its ".." leads to, which may have been removed as well.
 */
#ifndef SUPERVISOR_FD_KINDS_REMOVED_DIRECTORY_H
#define SUPERVISOR_FD_KINDS_REMOVED_DIRECTORY_H

#include "supervisor/fd/fd.h"

/* Whether a directory with this status has been removed. */
bool fd_is_removed(const struct stat *st);

/* At a restart: make all of them, and remove them again. */
int fd_removed_make(struct fd_restore *r, struct err *e);

/* Number (from 1) of the object for a directory that has been removed, to which @path of /proc
 * leads and which shows as @link; 0 on failure. */
uint32_t fd_dump_removed(struct fd_dump *d, const char *path, const char *link, struct err *e);

/* Enter the removed directory that is @object; before fd_restore_process(). */
int fd_restore_directory(const struct fd_restore *r, uint32_t object, struct err *e);

#endif
