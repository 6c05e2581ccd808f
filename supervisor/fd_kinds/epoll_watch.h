/*
 * fd_kinds/epoll_watch.h - one watch of an epoll(7) descriptor.
 *
 * A watch belongs to an open file and to the number of the descriptor that it was made by,
 * which may lead elsewhere by now. In the image the watches of a descriptor are a text, a line
 * each: number, events, data, and the file's description.
 */
#ifndef SUPERVISOR_FD_KINDS_EPOLL_WATCH_H
#define SUPERVISOR_FD_KINDS_EPOLL_WATCH_H

#include <sys/epoll.h>

#include "supervisor/fd/fd.h"

#define WATCH_ANY_EVENT (EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP)

struct watch {
	int fd;
	uint32_t events;
	uint64_t data;
	uint32_t description;
};

/* A one-shot watch that has fired: the kernel watches for errors always, until then. */
bool watch_has_fired(const struct watch *w);

void watch_write(const struct watch *w, struct buf *out);
/* The one in the line at *@text, which is moved on to the next: 1, 0 behind the last, -1. */
int watch_next(const char **text, struct watch *w, struct err *e);

/* ---- restart ---- */

/* Have @ep watch for @events of @file, under number @w->fd of this process: for the moment that
 * number leads to @file. When it is @once, then only if an event can be had at once, which is
 * taken. 1, 0 when there was none, -1. */
int watch_add(const struct fd_restore *r, int ep, int file, const struct watch *w,
	uint32_t events, bool once, struct err *e);

#endif
