/* UDP and netlink sockets: datagrams that wait, with the addresses they came from; connected
 * ones; shut down ones; options. */
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <poll.h>

#include "sockets.h"

static int sink, source, asking, answering, six, nameless, any, route;
static int shut[4]; /* by SHUT_RD, SHUT_WR, SHUT_RDWR, and SHUT_WR when connected to nobody */
static struct sockaddr_in name_of_closed;
static struct sockaddr_nl route_name;

void victim_hurt(void)
{
	char c;

	if (recv(sink, &c, 1, 0) != 1)
		victim_failures++;
}

static struct sockaddr_in name_of(int fd)
{
	struct sockaddr_in a;
	socklen_t size = sizeof(a);

	MUST(!getsockname(fd, (struct sockaddr *)&a, &size));
	return a;
}

static int bound(in_addr_t address)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(address)}};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	MUST(fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a)));
	return fd;
}

static void send_to(int fd, int to, const char *text, size_t size)
{
	struct sockaddr_in a = name_of(to);

	if (a.sin_addr.s_addr == INADDR_ANY)
		a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	MUST(sendto(fd, text, size, 0, (struct sockaddr *)&a, sizeof(a)) == (ssize_t)size);
}

#define FROM(fd, text, a) from(fd, text, sizeof(text) - 1, a, __LINE__)
static void from(int fd, const char *text, size_t want, struct sockaddr_in a, int line)
{
	struct sockaddr_in b = {0};
	socklen_t size = sizeof(b);
	char data[100];
	ssize_t n =
		recvfrom(fd, data, sizeof(data), MSG_DONTWAIT, (struct sockaddr *)&b, &size);

	CHECK(n == (ssize_t)want && !memcmp(data, text, want), "line %d: %zd bytes (%s)", line,
		n, n < 0 ? strerror(errno) : "");
	CHECK(b.sin_port == a.sin_port && b.sin_addr.s_addr == htonl(INADDR_LOOPBACK),
		"line %d: from %08x:%d, not port %d", line, ntohl(b.sin_addr.s_addr),
		ntohs(b.sin_port), ntohs(a.sin_port));
}

static void prepare_connected(void)
{
	struct sockaddr_in a;

	asking = bound(INADDR_LOOPBACK);
	answering = bound(INADDR_LOOPBACK);
	a = name_of(answering);
	MUST(!connect(asking, (struct sockaddr *)&a, sizeof(a)));
	a = name_of(asking);
	MUST(!connect(answering, (struct sockaddr *)&a, sizeof(a)));
	MUST(write(asking, "a question", 10) == 10 && write(asking, "another", 7) == 7 &&
		write(answering, "an answer", 9) == 9);
	sock_set(asking, SOL_SOCKET, SO_BROADCAST, 1);
	sock_set(asking, IPPROTO_IP, IP_TTL, 9);
	sock_set(asking, IPPROTO_IP, IP_PKTINFO, 1);
}

static void prepare_shut(void)
{
	struct sockaddr_in a = name_of(source);

	for (int i = 0; i < 4; i++) {
		shut[i] = bound(INADDR_LOOPBACK);
		send_to(source, shut[i], "rest", 4);
		if (i < 3)
			MUST(!connect(shut[i], (struct sockaddr *)&a, sizeof(a)));
		/* On an unconnected socket it is done, and complained of. */
		MUST(!shutdown(shut[i], i < 3 ? i : SHUT_WR) == (i < 3));
	}
}

static void check_shut(void)
{
	struct sockaddr_in a = name_of(source);

	for (int i = 0; i < 4; i++) {
		struct pollfd p = {.fd = shut[i], .events = POLLRDHUP};
		bool no_more = i == SHUT_RD || i == SHUT_RDWR, silent = i != SHUT_RD;
		ssize_t n;

		FROM(shut[i], "rest", a);
		poll(&p, 1, 0);
		CHECK(!(p.revents & POLLRDHUP) == !no_more, "%d: poll says %#x", i, p.revents);
		n = sendto(shut[i], "x", 1, MSG_NOSIGNAL, i < 3 ? NULL : (void *)&a,
			i < 3 ? 0 : sizeof(a));
		CHECK(silent ? n < 0 && errno == EPIPE : n == 1, "%d: sending: %zd", i, n);
	}
}

static void prepare_six(void)
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	socklen_t size = sizeof(a);

	six = socket(AF_INET6, SOCK_DGRAM, 0);
	if (six < 0 || bind(six, (struct sockaddr *)&a, sizeof(a)))
		victim_skip("no IPv6");
	MUST(!getsockname(six, (struct sockaddr *)&a, &size));
	MUST(sendto(six, "to itself", 9, 0, (struct sockaddr *)&a, size) == 9);
}

static void prepare_netlink(void)
{
	/* A group that nothing is said in any more (RTNLGRP_DECnet_IFADDR). */
	struct sockaddr_nl a = {.nl_family = AF_NETLINK, .nl_groups = 1 << 12};
	socklen_t size = sizeof(route_name);

	route = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	MUST(route >= 0 && !bind(route, (struct sockaddr *)&a, sizeof(a)));
	MUST(!getsockname(route, (struct sockaddr *)&route_name, &size));
}

static void check_netlink(void)
{
	struct sockaddr_nl a = {0};
	socklen_t size = sizeof(a);
	char answer[65536];

	CHECK(!getsockname(route, (struct sockaddr *)&a, &size) &&
			a.nl_pid == route_name.nl_pid && a.nl_groups == 1 << 12,
		"its number was %u, is %u, groups %x", route_name.nl_pid, a.nl_pid,
		a.nl_groups);
	CHECK(sock_ask_links(route), "asking");
	CHECK(recv(route, answer, sizeof(answer), 0) > (ssize_t)sizeof(struct nlmsghdr),
		"no answer");
}

int main(void)
{
	int closed = bound(INADDR_LOOPBACK);
	struct sockaddr_in a;

	prepare_six();
	sink = bound(INADDR_LOOPBACK);
	source = bound(INADDR_LOOPBACK);
	any = bound(INADDR_ANY);
	nameless = socket(AF_INET, SOCK_DGRAM, 0);
	send_to(source, sink, "first", 5);
	send_to(closed, sink, "second", 6);
	send_to(source, sink, "", 0);
	send_to(source, sink, "fourth", 6);
	send_to(source, any, "to any", 6);
	name_of_closed = name_of(closed);
	close(closed);
	prepare_connected();
	prepare_netlink();
	prepare_shut();
	victim_ready();
	victim_wait();
	FROM(sink, "first", name_of(source));
	FROM(sink, "second", name_of_closed);
	FROM(sink, "", name_of(source));
	FROM(sink, "fourth", name_of(source));
	EMPTY(sink);
	FROM(any, "to any", name_of(source));
	FROM(answering, "a question", name_of(asking));
	FROM(answering, "another", name_of(asking));
	COMES(asking, "an answer");
	CHECK(write(answering, "more", 4) == 4, "answering on");
	COMES(asking, "more");
	send_to(source, asking, "from a stranger", 15);
	EMPTY(asking);
	CHECK(sock_int(asking, SOL_SOCKET, SO_BROADCAST) == 1, "SO_BROADCAST");
	CHECK(sock_int(asking, IPPROTO_IP, IP_TTL) == 9, "IP_TTL");
	CHECK(sock_int(asking, IPPROTO_IP, IP_PKTINFO) == 1, "IP_PKTINFO");
	COMES(six, "to itself");
	a = name_of(nameless);
	CHECK(!a.sin_port, "an unused one has port %d", ntohs(a.sin_port));
	send_to(nameless, sink, "now", 3);
	FROM(sink, "now", name_of(nameless));
	check_netlink();
	check_shut();
	return victim_done();
}
