/*
 * fd/lock.h - file locks: flock(2), POSIX and open-file-description ones, and
 * leases (man fcntl).
 *
 * In the image they are a text, a line each: "FLOCK WRITE 0 EOF 0", with the type (LEASE as
 * well), READ or WRITE, the first and last byte, and for POSIX locks the process that holds it.
 */
#ifndef SUPERVISOR_FD_LOCK_H
#define SUPERVISOR_FD_LOCK_H

#include "supervisor/fd/source.h"

/* Append to @locks (a string of the caller's, NULL for none) those that fdinfo shows for @s.
 * Those of the description itself show in all processes that share it, and are left out unless
 * this is the @first of them. What cannot be taken again is an error. */
int fd_locks_dump(
	const struct fd_source *s, bool can_lock, bool first, char **locks, struct err *e);

/* Take the locks in @text again, by @fd; POSIX ones only if they were process @pid's. @path
 * is for messages. */
int fd_locks_restore(int fd, const char *text, pid_t pid, const char *path, struct err *e);

#endif
