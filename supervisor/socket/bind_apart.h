/*
 * socket/bind_apart.h - at a restart: root binds a socket to a name on whose way another user can put links.
 *
 * bind(2) follows whatever links are there by then, and takes no directory to begin from. So the socket is bound below
 * a root directory of its own, in which the name leads nowhere else, and its file is then renamed
 * into the directory that was looked at.
 */
#ifndef SUPERVISOR_SOCKET_BIND_APART_H
#define SUPERVISOR_SOCKET_BIND_APART_H

#include <stdint.h>
#include <sys/types.h>

struct bind_apart {
	int fd; /* the socket */
	const void *name;
	uint32_t size;
	const char *path; /* of the file, by @name */
	int in;           /* the directory that it is to be in */
	mode_t mode;      /* of the file */
};

/* Bind, with root and working directory changed for a moment, and call @finish(@arg, the file as an O_PATH
 * descriptor) before anybody can find it. There must be no file of this name in @in. -1 and errno. */
int socket_bind_apart(
	const struct bind_apart *b, int (*finish)(const void *arg, int file), const void *arg);

#endif
