/*
 * fd/parent_directories.h - the directories that a file is in. A restart makes missing ones again, as
 * they were.
 */
#ifndef SUPERVISOR_FD_PARENT_DIRECTORIES_H
#define SUPERVISOR_FD_PARENT_DIRECTORIES_H

#include "supervisor/fd/fd.h"

/* At a checkpoint: save the owner and mode of all directories that the file @path is in. */
void fd_parents_dump(struct fd_dump *d, const char *path);

/* Open the directory of @file, to make files in, and make what is missing on the way there: as
 * @job has it (NULL: no image), else for @owner (uid | gid << 32) alone. Symbolic
 * links on the way are followed with @follow only, and only root's and this user's own. -1 with errno
 * (ENOTDIR: another link). */
int fd_parents_open(const struct image *job, const char *file, uint64_t owner, bool follow);

#endif
