/*
 * fd/shm_file.h - files of a tmpfs that the program has mapped shared and may write to: POSIX
 * shared memory and named semaphores (shm_overview(7), sem_overview(7)).
 *
 * They have a name, and are memory all the same: they do not outlive the machine, and what the
 * program (or others) did with them after the checkpoint is no part of it. So contents are
 * saved, and put back at a restart into a file that is still there, or into a new one.
 */
#ifndef SUPERVISOR_FD_SHM_FILE_H
#define SUPERVISOR_FD_SHM_FILE_H

#include "supervisor/fd/fd.h"

/* Whether @path is on a file system that is memory. */
bool fd_shm_file_is_memory(const char *path);

/* A name of the file @dev:@inode, which /proc shows as @shown; the caller's to free. NULL: it
 * has no name, or its name is not known. */
char *fd_shm_file_name(const char *shown, uint64_t dev, uint64_t inode);

/* Whether the image has the file @path: then it need not be there to be opened. */
bool fd_shm_file_in(const struct image *job, const char *path);

/* Before anything is made: fails when a file of the image cannot be put back, because the file that has
 * its name is another user's, of another kind, or in use. */
int fd_shm_files_check(const struct checkpoint *c, struct err *e);

/* What fd_shm_file_open() makes from now on, in this process and its children, is
 * remembered until fd_shm_files_end(), which removes it if @remove: the restart has failed. */
int fd_shm_files_begin(const struct checkpoint *c, struct err *e);
void fd_shm_files_end(const struct checkpoint *c, bool remove);

/* The file at @path, empty, and made where it is not there, with its directories as @job has them
 * (NULL: no image); -1 on failure, which is also one
 * that is not @owner's, is no memory, or is in use. */
int fd_shm_file_open(const struct image *job, const char *path, uid_t owner, struct err *e);

#endif
