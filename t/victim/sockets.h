/* sockets.h - for victims that hold sockets. */
#ifndef T_VICTIM_SOCKETS_H
#define T_VICTIM_SOCKETS_H

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "victim.h"

static inline int sock_int(int fd, int level, int name)
{
	socklen_t size = sizeof(int);
	int value = -1;

	CHECK(!getsockopt(fd, level, name, &value, &size), "getsockopt %d", name);
	return value;
}

static inline void sock_set(int fd, int level, int name, int value)
{
	MUST(!setsockopt(fd, level, name, &value, sizeof(value)));
}

/* Ask netlink socket @fd for all network devices. Whether that could be sent. */
static inline bool sock_ask_links(int fd)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg body;
	} question = {
		.head = {.nlmsg_len = sizeof(question),
			.nlmsg_type = RTM_GETLINK,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.body = {.ifi_family = AF_UNSPEC},
	};

	return send(fd, &question, sizeof(question), 0) == sizeof(question);
}

/* What comes from @fd next is @text, in one piece. */
#define COMES(fd, text) sock_comes(fd, text, sizeof(text) - 1, __LINE__)
static inline void sock_comes(int fd, const char *text, size_t size, int line)
{
	char data[256];
	ssize_t n = recv(fd, data, sizeof(data), MSG_DONTWAIT);

	CHECK(n == (ssize_t)size && !memcmp(data, text, size),
		"line %d: %zd bytes '%.*s' (%s), not '%s'", line, n, n < 0 ? 0 : (int)n, data,
		n < 0 ? strerror(errno) : "", text);
}

#define EMPTY(fd) sock_empty(fd, __LINE__)
static inline void sock_empty(int fd, int line)
{
	char c;
	ssize_t n = recv(fd, &c, 1, MSG_DONTWAIT);

	CHECK(n < 0 && errno == EAGAIN, "line %d: %zd bytes wait, or error %s", line, n,
		strerror(errno));
}

#define ENDS(fd) sock_ends(fd, __LINE__)
static inline void sock_ends(int fd, int line)
{
	char c;
	ssize_t n = recv(fd, &c, 1, MSG_DONTWAIT);

	CHECK(n == 0, "line %d: no end, but %zd (%s)", line, n, strerror(errno));
}

static inline void sock_send_fds(
	int fd, const char *text, size_t size, const int *fds, int count)
{
	_Alignas(struct cmsghdr) char control[256] = {0};
	struct iovec iov = {(char *)text, size};
	struct msghdr h = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE(count * sizeof(int))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&h);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	MUST(sendmsg(fd, &h, 0) == (ssize_t)size);
}

/* Receive up to @size bytes; descriptors (-1: none) and credentials (pid 0: none) that came. */
static inline ssize_t sock_receive(
	int fd, char *text, size_t size, int fds[4], struct ucred *cred)
{
	_Alignas(struct cmsghdr) char control[256];
	struct iovec iov = {text, size};
	struct msghdr h = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &h, MSG_DONTWAIT);

	for (int i = 0; i < 4; i++)
		fds[i] = -1;
	memset(cred, 0, sizeof(*cred));
	if (n < 0)
		return n;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c)) {
		if (c->cmsg_type == SCM_RIGHTS)
			memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
		if (c->cmsg_type == SCM_CREDENTIALS)
			memcpy(cred, CMSG_DATA(c), sizeof(*cred));
	}
	return n;
}

#endif
