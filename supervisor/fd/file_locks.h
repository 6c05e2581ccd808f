/*
 * fd/file_locks.h - file locks: flock(2), POSIX and open-file-description ones, and
 * leases (man fcntl).
 *
 * In the image they are a text, a line each: "FLOCK WRITE 0 EOF 0", with the type (LEASE as
 * well), READ or WRITE, the first and last byte, and for POSIX locks the process that holds it.
 */
#ifndef SUPERVISOR_FD_FILE_LOCKS_H
#define SUPERVISOR_FD_FILE_LOCKS_H

#include <fcntl.h>

#include "supervisor/fd/descriptor_source.h"

/* Append to @locks (a string of the caller's, NULL for none) what fdinfo shows for @s.
 * Locks of the description itself show in all processes that share it, and are left out unless
 * this is the @first of them. What cannot be taken again is an error. */
int fd_locks_dump(
	const struct fd_source *s, bool can_lock, bool first, char **locks, struct err *e);

/* Take the locks in @text again, by @fd, but for POSIX ones. @path is for messages. */
int fd_locks_restore(int fd, const char *text, const char *path, struct err *e);

/* POSIX locks are the process's, and lost when it closes any descriptor of the file: they are
 * to be taken when nothing is left to be closed, by F_SETLK in the process. Into @range the
 * next of process @pid in *@text that can be taken by a descriptor with @flags: 1, 0 when there
 * is none, -1. */
int fd_locks_next_posix(const char **text, pid_t pid, int flags, const char *path,
	struct flock *range, struct err *e);

/* Say why one could not be taken; returns -1. */
int fd_lock_failed(int code, const char *path, struct err *e);

#endif
