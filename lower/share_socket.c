/*
 * What processes share (shared/share.h), from one lower half to another: a thread answers at a
 * socket with an abstract name, made of a name of the process's own and its pid namespace. Names
 * stay after a restart, since the program holds handles with them; where a copy of the program
 * runs at the same time, its process ids, and so its namespace, are others.
 *
 * A name cannot be guessed, and only the same user is answered.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "lower/runtime.h"

/* How long the other side may take. Between two of these processes it is microseconds; not so where
 * one has been stopped. */
#define PATIENCE_S 10

static socklen_t make_address(struct sockaddr_un *a, const uint8_t name[SHARE_NAME])
{
	char *to = a->sun_path + 1, *end = a->sun_path + sizeof(a->sun_path);
	struct stat st = {0};

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	(void)stat("/proc/self/ns/pid", &st); /* without /proc there is one namespace */
	to += snprintf(to, end - to, "trecr-share-%lx-", (unsigned long)st.st_ino);
	for (unsigned i = 0; i < SHARE_NAME; i++)
		to += snprintf(to, end - to, "%02x", name[i]);
	return to - (char *)a;
}

static void be_patient(int fd)
{
	struct timeval t = {.tv_sec = PATIENCE_S};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

/* ---- answers ---- */

static int is_ours(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) &&
	       (peer.uid == geteuid() || !peer.uid);
}

static void send_reply(int to, struct share_reply *reply, int fd)
{
	struct iovec data = {reply, sizeof(*reply)};
	union control control = {.room = {0}};
	struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1};

	if (fd >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		control.head = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(sizeof(fd)), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	}
	/* Who does not wait for it any more has gone, or given up. */
	(void)!sendmsg(to, &m, MSG_NOSIGNAL);
}

static void answer_request(int from)
{
	struct share_request request;
	struct share_reply reply = {0};
	int fd = -1;

	be_patient(from);
	if (!is_ours(from) || recv(from, &request, sizeof(request), 0) != sizeof(request))
		return;
	reply.session = table->session;
	reply.result = cuda_share(&request, &reply, &fd);
	send_reply(from, &reply, fd);
	if (fd >= 0)
		close(fd);
}

static void *serve_others(void *argument)
{
	int socket = (intptr_t)argument;

	for (;;) {
		int from = accept4(socket, NULL, NULL, SOCK_CLOEXEC);

		if (from < 0 && errno != EINTR && errno != ECONNABORTED && errno != EMFILE &&
			errno != ENFILE && errno != ENOMEM)
			return NULL; /* the program has closed it */
		if (from < 0)
			continue;
		answer_request(from);
		close(from);
	}
}

int share_start(void)
{
	static int started;
	struct sockaddr_un a;
	socklen_t size = make_address(&a, table->share_name);
	pthread_t thread;
	int fd, r;

	if (started)
		return 0;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&a, size) || listen(fd, 64)) {
		r = -errno;
		close(fd);
		return r;
	}
	r = -pthread_create(&thread, NULL, serve_others, (void *)(intptr_t)fd);
	if (r)
		close(fd);
	started = !r;
	return r;
}

/* ---- questions ---- */

/* It comes where the program's are; fcntl(2) moves it. */
static int take_descriptor(const struct msghdr *m, const union control *control)
{
	int fd, ours;

	if (m->msg_controllen < sizeof(control->head) || control->head.cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&fd, CMSG_DATA(&control->head), sizeof(fd));
	ours = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	close(fd);
	return ours;
}

static int receive_reply(int from, struct share_reply *reply, int *fd)
{
	struct iovec data = {reply, sizeof(*reply)};
	union control control;
	struct msghdr m = {.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t n;

	do {
		n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	*fd = take_descriptor(&m, &control);
	return n == sizeof(*reply) ? 0 : -ECONNRESET;
}

/* A child of fork(2) has the socket, too, and nobody who answers at it. */
static int owner_lives(int fd)
{
	struct ucred owner;
	socklen_t size = sizeof(owner);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &size) && owner.pid > 0 &&
	       (!kill(owner.pid, 0) || errno != ESRCH);
}

static int exchange_with_owner(
	int fd, const struct share_request *request, struct share_reply *reply, int *got)
{
	struct sockaddr_un a;
	socklen_t size = make_address(&a, request->handle.owner);

	be_patient(fd);
	if (connect(fd, (struct sockaddr *)&a, size))
		return -errno;
	if (!owner_lives(fd))
		return -ECONNREFUSED;
	if (send(fd, request, sizeof(*request), MSG_NOSIGNAL) != sizeof(*request))
		return -ECONNRESET;
	return receive_reply(fd, reply, got);
}

int share_fetch(const struct share_request *request, struct share_reply *reply, int *got)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), r;

	*got = -1;
	if (fd < 0)
		return -errno;
	r = exchange_with_owner(fd, request, reply, got);
	close(fd);
	return r;
}
