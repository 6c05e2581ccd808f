/*
 * socket/netfilter_library.h - libnftnl, and libmnl with it, loaded when they are first needed: few
 * programs have a connection that is kept, and every start of a program would take 0.1 ms more for each.
 */
#ifndef SUPERVISOR_SOCKET_NETFILTER_LIBRARY_H
#define SUPERVISOR_SOCKET_NETFILTER_LIBRARY_H

#include "lib/err.h"

/* To be called before any function of theirs; again is fine. Not for several threads at once. */
int netfilter_load(struct err *e);

#endif
