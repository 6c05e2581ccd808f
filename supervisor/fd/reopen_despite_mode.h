/*
 * fd/reopen_despite_mode.h - open a file as it was open, although its mode forbids it by now.
 *
 * A mode counts when a file is opened only: a program may have made a file that it writes to
 * read-only, or have created it so (open(2) with O_CREAT and 0444).
 */
#ifndef SUPERVISOR_FD_REOPEN_DESPITE_MODE_H
#define SUPERVISOR_FD_REOPEN_DESPITE_MODE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Whether fd_reopen() opens a file whatever its mode: a regular file, directory or FIFO of ours. */
bool fd_reopens(const struct stat *st);

/* Before a restart makes its first process, and at a checkpoint: start what fd_reopen() needs to open @path with @flags, if
 * it needs anything. fd_reopen_end() ends it. */
void fd_reopen_prepare(const char *path, int flags);
/* No process that this has started is to have an id of which needs(@arg, id) is true. */
void fd_reopen_avoid_ids(bool (*needs)(const void *arg, pid_t id), const void *arg);
void fd_reopen_end(void);

/* fd_open_trusted(). What fd_reopens() says is opened in a user namespace, where its mode does not count: if its group is
 * not our effective one, by a process that fd_reopen_prepare() has started (group_opener.h). Where that cannot be, its
 * mode is changed for the moment, and put back also when we are killed in between; when the machine fails in between
 * it stays so. -1 and errno on failure: a mode is not changed for want of descriptors, or because that process has been ended
 * (EAGAIN). */
int fd_reopen(const char *path, int flags);

#endif
