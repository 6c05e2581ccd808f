/*
 * A rank's connection to its launcher, a descriptor that PMI_FD tells the number of. It is the MPI
 * library's, so it is moved to where the lower half's descriptors are: a checkpoint takes others for the
 * program's. At a restart the launcher's new one is sent here by the supervisor.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lower/runtime.h"

static int own = -1;        /* the descriptor, once it is here */
static ino_t socket_number; /* of what it leads to */

/* Whether the library has not closed it: the number may be another descriptor's by now. */
static int is_open(void)
{
	struct stat st;

	return own >= 0 && !fstat(own, &st) && st.st_ino == socket_number;
}

static int tell_library(void)
{
	char number[16];
	struct stat st;

	if (!fstat(own, &st))
		socket_number = st.st_ino;
	snprintf(number, sizeof(number), "%d", own);
	return setenv("PMI_FD", number, 1);
}

int connection_take(void)
{
	const char *text = getenv("PMI_FD");
	int theirs = text ? atoi(text) : -1;

	/* What the library cannot use it will say. */
	if (own < 0 && theirs > 2)
		own = fcntl(theirs, F_DUPFD_CLOEXEC, 0);
	else
		theirs = -1;
	if (own < 0)
		return 0;
	if (theirs >= 0)
		close(theirs);
	return tell_library() ? -errno : 0;
}

/*
 * MPICH 5 takes leave of the launcher when the process exits, not in MPI_Finalize (5.0.2). The lower half does not exit as
 * programs do; and a launcher whose connection to a rank ends without a word kills all ranks.
 */
int connection_end(void)
{
	if (is_open())
		library_exit("MPI_Finalize");
	return 0;
}

/* ---- at a restart ---- */

static int offered[2] = {-1, -1};

int connection_offer(void)
{
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, offered))
		return agent_fail("cannot make a socket: %s", strerror(errno));
	table->connection_fd = offered[1];
	return 0;
}

/* -1: none has been sent. */
static int receive_descriptor(void)
{
	char byte;
	struct iovec data = {&byte, 1};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr m = {.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	int fd;

	if (recvmsg(offered[0], &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0 ||
		m.msg_controllen < sizeof(control.head) || control.head.cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	return fd;
}

int connection_accept(void)
{
	int fd = offered[0] < 0 ? -1 : receive_descriptor();

	/* It has come where the program's are; fcntl(2) moves it. */
	if (fd >= 0) {
		own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		close(fd);
		if (own < 0 || tell_library())
			return agent_fail("cannot keep the connection to the launcher: %s",
				strerror(errno));
	}
	for (int i = 0; i < 2; i++)
		if (offered[i] >= 0) {
			close(offered[i]);
			offered[i] = -1;
		}
	return 0;
}
