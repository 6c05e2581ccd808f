/*
 * fd_kinds/inotify_events.h - events of inotify(7) that nobody has read yet.
 *
 * Nothing shows them but read(2), which takes them away, and nothing puts one into a queue but
 * what it tells of. So they are kept only where the program is ended behind the checkpoint
 * (trecr-ckpt -s); a restart does with files of its own what they report, under their watches'
 * numbers. The cookies that join the two of a rename are new ones. In all other cases the
 * program is told that events were lost (IN_Q_OVERFLOW).
 */
#ifndef SUPERVISOR_FD_KINDS_INOTIFY_EVENTS_H
#define SUPERVISOR_FD_KINDS_INOTIFY_EVENTS_H

#include "supervisor/fd/fd.h"

/* Let the next watch have number @wd (Linux 4.18). */
void inotify_set_next(int fd, int wd);

/* The number of the next watch, which only a new one tells: the empty queue gets the event of
 * its end, which is read. 0: not known. */
int inotify_next(int fd);

/* Put IN_Q_OVERFLOW into queue @fd, and nothing else. */
int inotify_overflow(int fd, struct err *e);

/* Put @size bytes of @events into the new and empty queue @fd. 1: there are some that cannot be
 * made, or other ones came; -1 on failure. */
int inotify_replay(
	struct fd_restore *r, int fd, const char *events, size_t size, struct err *e);

#endif
