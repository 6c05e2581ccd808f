/*
 * fd_kinds/epoll_restore.h - the watches of epoll(7) at a restart: one may be on another epoll descriptor.
 */
#ifndef SUPERVISOR_FD_KINDS_EPOLL_RESTORE_H
#define SUPERVISOR_FD_KINDS_EPOLL_RESTORE_H

#include "supervisor/fd/fd.h"

/* One-shot watches that have fired have to fire once more. In the first process: when epoll
 * descriptors are there, and nothing else is. */
int fd_epolls_begin(struct fd_restore *r, struct err *e);

/* @fd is what will be @description, in a state in which it may have an event: watches on it
 * that have fired do so. Watches that do not are left to fd_epolls_fire(). */
int fd_epolls_try(struct fd_restore *r, uint32_t description, int fd, struct err *e);

/* Let all fire that are left, when everything is there. */
int fd_epolls_fire(struct fd_restore *r, struct err *e);

/* In each process, before it closes what it does not have: the others, of those epoll
 * descriptors that it is the first to have. */
int fd_epolls_watch(struct fd_restore *r, struct err *e);

#endif
