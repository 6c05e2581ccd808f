/*
 * fd_lock.h - file locks: flock(2), POSIX and open-file-description ones (man fcntl).
 *
 * In the image they are a text, a line each: "FLOCK WRITE 0 EOF 0", with the type, READ or
 * WRITE, the first and last byte, and for POSIX locks the process that holds it.
 */
#ifndef SUPERVISOR_FD_LOCK_H
#define SUPERVISOR_FD_LOCK_H

#include "supervisor/fd_source.h"

/* Append to @locks (a string of the caller's, NULL for none) those that fdinfo shows for @s.
 * Leases and what else cannot be taken again is an error. */
int fd_locks_dump(const struct fd_source *s, bool can_lock, char **locks, struct err *e);

/* Take the locks in @text again, by @fd; POSIX ones only if they were process @pid's. @path
 * is for messages. */
int fd_locks_restore(int fd, const char *text, pid_t pid, const char *path, struct err *e);

#endif
