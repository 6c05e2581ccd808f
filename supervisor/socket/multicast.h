/*
 * socket/multicast.h - is a socket in a multicast group? No call lists a socket's groups; but
 * whether it is in a certain one can be asked, and /proc/net lists the groups that anybody is
 * in.
 */
#ifndef SUPERVISOR_SOCKET_MULTICAST_H
#define SUPERVISOR_SOCKET_MULTICAST_H

#include "lib/err.h"

/* 0 when @fd is in none, else -1 and @e names it. */
int socket_refuse_multicast(int fd, int family, struct err *e);

#endif
