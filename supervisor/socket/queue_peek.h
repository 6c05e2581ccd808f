/*
 * socket/queue_peek.h - read what waits in a socket, and leave it there.
 */
#ifndef SUPERVISOR_SOCKET_QUEUE_PEEK_H
#define SUPERVISOR_SOCKET_QUEUE_PEEK_H

#include <sys/socket.h>

#include "lib/util.h"

#define SOCKET_PEEK_FDS 253 /* SCM_MAX_FD, include/net/scm.h */

/* A message; of a stream: bytes that belong together. */
struct socket_peeked {
	const void *data;
	size_t size;
	struct sockaddr_storage name; /* of the sender */
	socklen_t name_size;
	bool has_cred;
	struct ucred cred;
	int fds[SOCKET_PEEK_FDS]; /* ours from now on */
	int fd_count;
};

/* Call @each for all that waits in @fd, whose inode is @inode, in order. Process ids are told
 * as process @in knows them. */
int socket_peek(int fd, uint64_t inode, pid_t in,
	int (*each)(void *context, const struct socket_peeked *m, struct err *e), void *context,
	struct err *e);

#endif
