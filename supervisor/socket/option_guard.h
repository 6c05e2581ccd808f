/*
 * socket/option_guard.h - change options of a program's socket for a moment, and be sure that
 * they are put back, also when the supervisor is killed meanwhile.
 */
#ifndef SUPERVISOR_SOCKET_OPTION_GUARD_H
#define SUPERVISOR_SOCKET_OPTION_GUARD_H

#include <sys/types.h>

#include "lib/err.h"

#define SOCKET_GUARD_OPTIONS 4

struct socket_guard {
	int socket; /* a duplicate of the program's */
	struct {
		int level, name, value;
	} options[SOCKET_GUARD_OPTIONS]; /* in the order in which they are put back */
	int count;
	pid_t pid;
	int pipe;
};

/* Note the value of an option (an int) as it is now. */
int socket_guard_note(struct socket_guard *g, int level, int name, struct err *e);
/* From here on the options may be changed. */
int socket_guard_begin(struct socket_guard *g, struct err *e);
/* The noted values are in force again. */
int socket_guard_end(struct socket_guard *g, struct err *e);

#endif
