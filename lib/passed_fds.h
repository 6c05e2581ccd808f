/*
 * passed_fds.h - descriptors that are passed to another process by a UNIX socket (unix(7)).
 */
#ifndef LIB_PASSED_FDS_H
#define LIB_PASSED_FDS_H

#include <stddef.h>
#include <sys/types.h>

/* In one message: SCM_MAX_FD, include/net/scm.h. */
#define PASSED_FDS_MOST 253

/* Send @size bytes, of which there must be one at least, with @count descriptors, which stay the
 * caller's. @flags and the result are as for sendmsg(2), without SIGPIPE. */
ssize_t passed_fds_send(
	int to, const void *data, size_t size, const int *fds, size_t count, int flags);

/* Receive up to @size bytes, and up to PASSED_FDS_MOST descriptors, which are the caller's and close on
 * exec. @flags and the result are as for recvmsg(2). */
ssize_t passed_fds_receive(
	int from, void *data, size_t size, int *fds, size_t *count, int flags);

#endif
