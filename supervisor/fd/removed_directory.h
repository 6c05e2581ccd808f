/*
 * fd/removed_directory.h - directories that have been removed while they were open or worked
 * in.
 *
 * Such a directory is empty and stays so: nothing can be made in it. What is left of it is its
 * owner and mode, and what its ".." leads to, which may have been removed as well.
 */
#ifndef SUPERVISOR_FD_REMOVED_DIRECTORY_H
#define SUPERVISOR_FD_REMOVED_DIRECTORY_H

#include "supervisor/fd/kinds.h"

/* Whether a directory with this status has been removed. */
bool fd_is_removed(const struct stat *st);

/* At a restart: make all of them, and remove them again. */
int fd_removed_make(struct fd_restore *r, struct err *e);

#endif
