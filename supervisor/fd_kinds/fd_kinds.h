/*
 * fd_kinds/fd_kinds.h - the functions of the rows in fd_table/kind_table.c, by file, and
 * what the same files have to do when all descriptors have been seen, or made.
 */
#ifndef SUPERVISOR_FD_KINDS_FD_KINDS_H
#define SUPERVISOR_FD_KINDS_FD_KINDS_H

#include "supervisor/fd/fd.h"

/* Say in @e why @s, which no row matches, cannot be saved; returns -1. */
int fd_unsupported(const struct fd_dump *d, const struct fd_source *s, struct err *e);

/* -1 and the reason when the file lies on a mount that the process's mount namespace does not show
 * below its root: no path leads there. 0: it does not, or that cannot be known. */
int fd_refuse_detached(const struct fd_source *s, struct err *e);

FD_ROW(fd_regular);
FD_ROW(fd_unlinked);
FD_ROW(fd_directory);
FD_ROW(fd_removed);
FD_ROW(fd_device);
FD_ROW(fd_path);
FD_ROW(fd_inherited);
FD_ROW(fd_memfd);
unsigned fd_memfd_takes(const struct image_description *x, const struct fd_object *o);
FD_ROW(fd_pipe);
FD_ROW(fd_fifo);
FD_ROW(fd_unlinked_fifo);
unsigned fd_pipe_takes(const struct image_description *x, const struct fd_object *o);
FD_EVENT(fd_pipe);
FD_ROW(fd_pty_master);
unsigned fd_pty_master_takes(const struct image_description *x, const struct fd_object *o);
FD_ROW(fd_pty_slave);
unsigned fd_pty_slave_takes(const struct image_description *x, const struct fd_object *o);
FD_ROW(fd_mqueue);
FD_ROW(fd_inotify);
/* Behind all that may be refused: the events are taken out of the queues; if the program
 * resumes it is told that they were lost. */
int fd_inotifies_take(struct fd_dump *d, struct err *e);
void fd_inotifies_free(struct fd_dump *d, bool program_resumes);
/* When all queues are made: what they watch. */
int fd_inotifies_watch(struct fd_restore *r, struct err *e);
FD_EVENT(fd_inotify);
FD_ROW(fd_fanotify);
FD_ROW(fd_pidfd);
FD_LATE(fd_pidfd);
/* When all descriptions are made: nothing is left of what stood for processes that have ended.
 */
void fd_pidfds_finish(struct fd_restore *r);
/* In the process, when all are there: put descriptors that lead to the right processes in
 * place. */
int fd_pidfd_place(const struct fd_restore *r, struct err *e);
FD_ROW(fd_process_file);
FD_LATE(fd_process_file);
FD_ROW(fd_ended_file);
FD_ROW(fd_namespace);
FD_ROW(fd_eventfd);
FD_ROW(fd_timerfd);
FD_EVENT(fd_timerfd);
FD_ROW(fd_signalfd);
FD_ROW(fd_epoll);
FD_EVENT(fd_epoll);
/* What it watches. */
void fd_epoll_needs(
	const struct fd_restore *r, const struct image_description *x, bool *needed);
int fd_pty_check(const struct fd_check *, const struct image_description *, struct err *);

#endif
