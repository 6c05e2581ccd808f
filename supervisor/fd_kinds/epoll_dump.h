/*
 * fd_kinds/epoll_dump.h - what epoll descriptors watch: found out when all files are known.
 */
#ifndef SUPERVISOR_FD_KINDS_EPOLL_DUMP_H
#define SUPERVISOR_FD_KINDS_EPOLL_DUMP_H

#include "supervisor/fd/fd.h"

/* Complete the descriptions of epoll descriptors: behind all others. */
int fd_epolls_dump(struct fd_dump *d, struct err *e);
void fd_epolls_free(struct fd_dump *d);

#endif
