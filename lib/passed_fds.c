/*
 * passed_fds.c - messages with SCM_RIGHTS.
 */
#include "lib/passed_fds.h"

#include <string.h>
#include <sys/socket.h>

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(PASSED_FDS_MOST * sizeof(int))];
};

ssize_t passed_fds_send(
	int to, const void *data, size_t size, const int *fds, size_t count, int flags)
{
	union control control = {0};
	struct iovec iov = {(void *)data, size};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (count) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, count * sizeof(int));
	}
	return sendmsg(to, &m, flags | MSG_NOSIGNAL);
}

ssize_t passed_fds_receive(
	int from, void *data, size_t size, int *fds, size_t *count, int flags)
{
	union control control;
	struct iovec iov = {data, size};
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(from, &m, flags | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m);

	*count = 0;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		*count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(c), *count * sizeof(int));
	}
	return n;
}
