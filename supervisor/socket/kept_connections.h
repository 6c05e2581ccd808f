/*
 * socket/kept_connections.h - at a restart, connections to the outside that are kept. The first
 * of the new processes makes them and hands us duplicates. They are silent until the program is
 * whole: when the restart fails, the other ends have noticed nothing, and there can be another
 * one.
 */
#ifndef SUPERVISOR_SOCKET_KEPT_CONNECTIONS_H
#define SUPERVISOR_SOCKET_KEPT_CONNECTIONS_H

#include <stdbool.h>

#include "ckpt/store.h"
#include "lib/err.h"
#include "lib/util.h"

struct socket_kept {
	const struct checkpoint *checkpoint;
	int ours, theirs; /* the way that they come, or -1 */
	struct buf fds;   /* int */
	bool unblocked;
};

#define SOCKET_KEPT_NONE                                                                       \
	{                                                                                      \
		.ours = -1, .theirs = -1                                                       \
	}

/* Before any process is made: theirs is for the first one. */
int socket_kept_begin(struct socket_kept *k, const struct checkpoint *c, struct err *e);

/* In that one: hand over @count of @fds by @theirs. */
int socket_kept_hand_over(int theirs, const int *fds, size_t count, struct err *e);

/* When all processes have been made: make the connections usable, which stay silent as long as
 * they are blocked. */
int socket_kept_open(struct socket_kept *k, struct err *e);
/* When nothing can fail any more: remove the block, and let their packets pass. */
int socket_kept_resume(struct socket_kept *k, struct err *e);
/* Or it has failed, and the processes have been ended. They are blocked as they were. */
void socket_kept_silence(struct socket_kept *k);

void socket_kept_end(struct socket_kept *k);

#endif
