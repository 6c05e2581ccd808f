/*
 * socket/in_pid_namespace.h - ask something about a socket from within the pid namespace of the
 * program: the kernel tells process ids as the asking process knows them, and nothing else
 * can translate the ids of processes that have ended.
 */
#ifndef SUPERVISOR_SOCKET_IN_PID_NAMESPACE_H
#define SUPERVISOR_SOCKET_IN_PID_NAMESPACE_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether process @pid knows process ids as we do. */
bool socket_is_our_namespace(pid_t pid);

/* What @ask(@arg) returns in the pid namespace of process @in; directly, if that is ours. @ask
 * runs in a copy of this process: it may make system calls only. -1 on failure. */
int socket_ask_in_pid_namespace(pid_t in, int (*ask)(void *arg), void *arg);

#endif
