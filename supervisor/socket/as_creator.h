/*
 * socket/as_creator.h - at a restart: do something to a socket as the process that did it then,
 * so that the kernel notes that one's id and user (SO_PEERCRED, SCM_CREDENTIALS), or from
 * another root directory.
 */
#ifndef SUPERVISOR_SOCKET_AS_CREATOR_H
#define SUPERVISOR_SOCKET_AS_CREATOR_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/err.h"

struct socket_as_creator {
	pid_t pid; /* 0: any */
	bool has_user;
	uid_t uid;
	gid_t gid;
	const char *root;      /* NULL: as it is */
	const char *directory; /* NULL: as it is */
};

/* Call @action(@arg, @fds) in a process such as @a says, which shares this one's descriptors
 * and has a copy of its memory. It returns 0, or -1 and errno; what it puts into @fds comes back. An
 * id that somebody else has by now is not taken. @what, after "cannot", is for the message. */
int socket_as_creator(const struct socket_as_creator *a, int (*action)(void *arg, int fds[2]),
	void *arg, int fds[2], const char *what, struct err *e);

#endif
