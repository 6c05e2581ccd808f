/*
 * Watches whose descriptor has another number by now, or none: the file lives on by another
 * descriptor, in another process, or its number leads to something else. And an epoll
 * descriptor that is in a message only.
 */
#include <sys/epoll.h>
#include <sys/socket.h>

#include "tree.h"

static int ep, moved[2], replaced[2], elsewhere[2], message[2], posted[2];

static void watch(int set, int fd, uint64_t data)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = data};

	MUST(!epoll_ctl(set, EPOLL_CTL_ADD, fd, &e));
}

static void expect(int set, int writer, int reader, uint64_t data)
{
	struct epoll_event e[2] = {0};
	char c;

	CHECK(!epoll_wait(set, e, 2, 0), "%lu has an event", (unsigned long)data);
	CHECK(write(writer, "x", 1) == 1 && epoll_wait(set, e, 2, 5000) == 1 &&
			e[0].data.u64 == data,
		"an event of %lu, not %lu", (unsigned long)e[0].data.u64, (unsigned long)data);
	CHECK(reader < 0 || read(reader, &c, 1) == 1, "read: %m");
}

/* A new pipe is watched as descriptor @number, which leads to /dev/null then or nowhere. */
static void watch_moved(int number, int *ends, uint64_t data, bool replace)
{
	MUST(!pipe(ends) && dup2(ends[0], number) == number);
	watch(ep, number, data);
	close(number);
	if (replace)
		MUST(dup2(open("/dev/null", O_RDONLY), number) == number);
}

/* The first process has neither this number nor the file. */
static void watch_in_child(void)
{
	MUST(dup2(elsewhere[0], 150) == 150 && !close(elsewhere[0]));
	watch(ep, 150, 3);
}

static void check_in_child(void)
{
	char c;

	CHECK(read(150, &c, 1) == 1 && c == 'x', "read: %m");
}

static void post(void)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec byte = {"m", 1};
	struct msghdr m = {.msg_iov = &byte,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int fd = epoll_create1(0);

	MUST(!pipe(posted) && !socketpair(AF_UNIX, SOCK_STREAM, 0, message));
	watch(fd, posted[0], 4);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	MUST(sendmsg(message[0], &m, 0) == 1 && !close(fd));
}

static int take_descriptor(void)
{
	char control[CMSG_SPACE(sizeof(int))], data;
	struct iovec byte = {&data, 1};
	struct msghdr m = {.msg_iov = &byte,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	int fd = -1;

	CHECK(recvmsg(message[1], &m, 0) == 1 && CMSG_FIRSTHDR(&m), "recvmsg: %m");
	if (CMSG_FIRSTHDR(&m))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

void victim_hurt(void)
{
	close(moved[0]);
}

int main(void)
{
	pid_t child;
	int fd;

	MUST((ep = epoll_create1(0)) >= 0);
	watch_moved(100, moved, 1, false);
	watch_moved(101, replaced, 2, true);
	post();
	MUST(!pipe(elsewhere));
	child = tree_child(watch_in_child, check_in_child);
	tree_await(1);
	close(elsewhere[0]);
	victim_ready();
	victim_wait();
	CHECK(fcntl(100, F_GETFD) < 0 && errno == EBADF, "100 is there");
	CHECK(!fcntl(101, F_GETFD), "101 is not there");
	expect(ep, moved[1], moved[0], 1);
	expect(ep, replaced[1], replaced[0], 2);
	fd = take_descriptor();
	expect(fd, posted[1], posted[0], 4);
	/* The child reads it. */
	expect(ep, elsewhere[1], -1, 3);
	/* The watch is found by its number and file as before. */
	MUST(dup2(moved[0], 100) == 100);
	CHECK(!epoll_ctl(ep, EPOLL_CTL_DEL, 100, NULL), "EPOLL_CTL_DEL: %m");
	tree_finish(1);
	tree_reap(child, 0);
	return victim_done();
}
