/*
 * An epoll set: level- and edge-triggered watches with their data, one-shot ones that have
 * fired, one set in another, and one that is shared by two descriptors.
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "victim.h"

static int ep, inner, level[2], edge[2], counter, once[2][2];

void victim_hurt(void)
{
	epoll_ctl(ep, EPOLL_CTL_DEL, edge[0], NULL);
}

static void watch(int set, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event e = {.events = events, .data.u64 = data};

	CHECK(!epoll_ctl(set, EPOLL_CTL_ADD, fd, &e), "EPOLL_CTL_ADD %d: %m", fd);
}

/* Whether the next event, and only it, is @events with @data. */
static void expect(uint32_t events, uint64_t data)
{
	struct epoll_event e[2] = {0};
	int n = epoll_wait(ep, e, 2, 2000);

	CHECK(n == 1 && e[0].events == events && e[0].data.u64 == data,
		"%d events, the first %x with data %lx, not %x with %lx", n, e[0].events,
		(unsigned long)e[0].data.u64, events, (unsigned long)data);
}

static void expect_nothing(void)
{
	struct epoll_event e = {0};

	CHECK(!epoll_wait(ep, &e, 1, 0), "an event nobody waits for: %x with data %lx",
		e.events, (unsigned long)e.data.u64);
}

/* As a server does with its threads: the thread that got the event has the connection to itself. */
static void fire(int *pair, uint64_t data)
{
	char c;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair: %m");
	watch(ep, pair[0], EPOLLIN | EPOLLET | EPOLLONESHOT, data);
	CHECK(write(pair[1], "x", 1) == 1, "write: %m");
	expect(EPOLLIN, data);
	CHECK(read(pair[0], &c, 1) == 1, "read: %m");
}

/* Not even of its end is it told before it asks again. */
static void ask_again(int *pair, uint64_t data)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = data + 1};

	CHECK(write(pair[1], "x", 1) == 1 && !close(pair[1]), "write: %m");
	expect_nothing();
	CHECK(!epoll_ctl(ep, EPOLL_CTL_MOD, pair[0], &e), "EPOLL_CTL_MOD: %m");
	expect(EPOLLIN | EPOLLHUP, data + 1);
	expect_nothing();
}

int main(void)
{
	const uint64_t one = 1;
	uint64_t value;
	int copy;
	char c;

	ep = epoll_create1(EPOLL_CLOEXEC);
	inner = epoll_create1(0);
	counter = eventfd(0, 0);
	CHECK(!pipe(level) && !pipe(edge) && counter >= 0, "descriptors: %m");
	watch(ep, level[0], EPOLLIN, 0x1111222233334444);
	watch(ep, edge[0], EPOLLIN | EPOLLET, 2);
	watch(ep, inner, EPOLLIN, 3);
	watch(inner, counter, EPOLLIN, 4);
	fire(once[0], 5);
	fire(once[1], 7);
	copy = dup(ep);
	victim_ready();
	victim_wait();
	expect_nothing();
	ask_again(once[0], 5);
	ask_again(once[1], 7);
	CHECK(write(level[1], "xx", 2) == 2, "write: %m");
	expect(EPOLLIN, 0x1111222233334444);
	expect(EPOLLIN, 0x1111222233334444);
	CHECK(read(level[0], &c, 1) == 1 && read(level[0], &c, 1) == 1, "read: %m");
	expect_nothing();
	CHECK(write(edge[1], "x", 1) == 1, "write: %m");
	expect(EPOLLIN, 2);
	expect_nothing();
	CHECK(write(counter, &one, sizeof(one)) == sizeof(one), "write: %m");
	expect(EPOLLIN, 3);
	CHECK(read(counter, &value, sizeof(value)) == sizeof(value), "read: %m");
	/* What is changed through one descriptor of the set counts for the other. */
	CHECK(!epoll_ctl(copy, EPOLL_CTL_DEL, level[0], NULL), "EPOLL_CTL_DEL: %m");
	CHECK(write(level[1], "x", 1) == 1, "write: %m");
	expect_nothing();
	CHECK(fcntl(ep, F_GETFD) == FD_CLOEXEC && !fcntl(copy, F_GETFD), "close-on-exec");
	return victim_done();
}
