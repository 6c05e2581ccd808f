/* TCP inside the program: connections with bytes under way in both directions, more than the
 * receiver has room for, half closed and broken ones; listening sockets, with connections that
 * wait to be accepted; options. IPv4, IPv6, and both mixed. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include "sockets.h"

enum { PLAIN, SIX, MIXED, FULL, HALF, ENDED, BROKEN, DONE, MOMENT, KINDS };

static int listening[KINDS], client[KINDS], server[KINDS], waiting, idle, bound;
static struct sockaddr_storage client_name[KINDS];
static struct sockaddr_storage bound_name;
static size_t filled;

void victim_hurt(void)
{
	char c;

	if (recv(server[PLAIN], &c, 1, 0) != 1)
		victim_failures++;
}

static int listen_at(int family, bool both)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	int fd = socket(family, SOCK_STREAM, 0), off = 0;

	if (both)
		v6.sin6_addr = in6addr_any;
	if (both)
		MUST(!setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)));
	sock_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	MUST(!bind(fd, family == AF_INET ? (void *)&v4 : (void *)&v6,
		family == AF_INET ? sizeof(v4) : sizeof(v6)));
	MUST(!listen(fd, 6));
	return fd;
}

static int connect_to(int family, int listener)
{
	struct sockaddr_storage a = {0};
	socklen_t size = sizeof(a);
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(family, SOCK_STREAM, 0);

	MUST(!getsockname(listener, (struct sockaddr *)&a, &size));
	if (a.ss_family != family) {
		v4.sin_port = ((struct sockaddr_in6 *)&a)->sin6_port;
		memcpy(&a, &v4, sizeof(v4));
		size = sizeof(v4);
	}
	MUST(!connect(fd, (struct sockaddr *)&a, size));
	return fd;
}

static void make_connection(int i, int family, int client_family)
{
	socklen_t size = sizeof(client_name[i]);

	listening[i] = listen_at(family, family != client_family);
	client[i] = connect_to(client_family, listening[i]);
	server[i] = accept(listening[i], NULL, NULL);
	MUST(server[i] >= 0);
	MUST(!getsockname(client[i], (struct sockaddr *)&client_name[i], &size));
	MUST(write(client[i], "question", 8) == 8 && write(server[i], "answer", 6) == 6);
}

static void fill(void)
{
	static char data[1 << 16];
	ssize_t n;

	MUST(!fcntl(client[FULL], F_SETFL, O_NONBLOCK));
	victim_fill(data, sizeof(data), 8);
	while ((n = write(client[FULL], data + filled % sizeof(data),
			sizeof(data) - filled % sizeof(data))) > 0)
		filled += n;
	MUST(errno == EAGAIN);
}

/* What was received starts with "question". */
static void check_full(void)
{
	static char want[1 << 16], data[1 << 16];
	size_t have = 0;
	ssize_t n = 1;
	struct pollfd p = {.fd = server[FULL], .events = POLLIN};

	COMES(client[FULL], "answer");
	n = recv(server[FULL], data, 8, 0);
	CHECK(n == 8 && !memcmp(data, "question", 8), "it starts with %zd bytes", n);
	victim_fill(want, sizeof(want), 8);
	while (have < filled && poll(&p, 1, 60000) == 1) {
		size_t at = have % sizeof(want);

		n = recv(server[FULL], data, sizeof(want) - at, MSG_DONTWAIT);
		if (n <= 0)
			break;
		CHECK(!memcmp(data, want + at, n), "bytes %zu to %zu", have, have + n);
		have += n;
	}
	CHECK(have == filled, "%zu bytes of %zu", have, filled);
	CHECK(fcntl(client[FULL], F_GETFL) & O_NONBLOCK, "O_NONBLOCK");
}

static void options(void)
{
	struct linger linger = {1, 17};

	sock_set(client[PLAIN], IPPROTO_TCP, TCP_NODELAY, 1);
	sock_set(client[PLAIN], SOL_SOCKET, SO_KEEPALIVE, 1);
	sock_set(client[PLAIN], IPPROTO_TCP, TCP_KEEPIDLE, 77);
	sock_set(client[PLAIN], IPPROTO_TCP, TCP_KEEPINTVL, 7);
	sock_set(client[PLAIN], IPPROTO_TCP, TCP_KEEPCNT, 3);
	sock_set(client[PLAIN], IPPROTO_TCP, TCP_USER_TIMEOUT, 12345);
	sock_set(server[PLAIN], SOL_SOCKET, SO_RCVBUF, 40000);
	sock_set(server[PLAIN], IPPROTO_IP, IP_TOS, 0x10);
	MUST(!setsockopt(server[PLAIN], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	MUST(!setsockopt(client[PLAIN], IPPROTO_TCP, TCP_CONGESTION, "reno", 4));
	sock_set(listening[PLAIN], IPPROTO_TCP, TCP_DEFER_ACCEPT, 0);
	sock_set(listening[SIX], SOL_SOCKET, SO_KEEPALIVE, 1);
}

static void check_options(void)
{
	struct linger linger = {0};
	socklen_t size = sizeof(linger);
	char name[16] = "";

	CHECK(sock_int(client[PLAIN], IPPROTO_TCP, TCP_NODELAY) == 1, "TCP_NODELAY");
	CHECK(sock_int(server[PLAIN], IPPROTO_TCP, TCP_NODELAY) == 0,
		"TCP_NODELAY of the other");
	CHECK(sock_int(client[PLAIN], SOL_SOCKET, SO_KEEPALIVE) == 1, "SO_KEEPALIVE");
	CHECK(sock_int(client[PLAIN], IPPROTO_TCP, TCP_KEEPIDLE) == 77, "TCP_KEEPIDLE");
	CHECK(sock_int(client[PLAIN], IPPROTO_TCP, TCP_KEEPINTVL) == 7, "TCP_KEEPINTVL");
	CHECK(sock_int(client[PLAIN], IPPROTO_TCP, TCP_KEEPCNT) == 3, "TCP_KEEPCNT");
	CHECK(sock_int(client[PLAIN], IPPROTO_TCP, TCP_USER_TIMEOUT) == 12345, "USER_TIMEOUT");
	CHECK(sock_int(server[PLAIN], SOL_SOCKET, SO_RCVBUF) == 80000, "SO_RCVBUF %d",
		sock_int(server[PLAIN], SOL_SOCKET, SO_RCVBUF));
	CHECK(sock_int(server[PLAIN], IPPROTO_IP, IP_TOS) == 0x10, "IP_TOS");
	CHECK(!getsockopt(server[PLAIN], SOL_SOCKET, SO_LINGER, &linger, &size) &&
			linger.l_onoff && linger.l_linger == 17,
		"SO_LINGER");
	size = sizeof(name);
	CHECK(!getsockopt(client[PLAIN], IPPROTO_TCP, TCP_CONGESTION, name, &size) &&
			!strcmp(name, "reno"),
		"TCP_CONGESTION is %s", name);
	CHECK(sock_int(listening[PLAIN], SOL_SOCKET, SO_REUSEADDR) == 1, "SO_REUSEADDR");
	CHECK(sock_int(client[PLAIN], SOL_SOCKET, SO_REUSEADDR) == 0,
		"SO_REUSEADDR of a client");
	CHECK(sock_int(client[SIX], SOL_SOCKET, SO_RCVLOWAT) == 1, "SO_RCVLOWAT");
	CHECK(sock_int(server[FULL], SOL_SOCKET, SO_RCVLOWAT) == 1,
		"SO_RCVLOWAT of a full one");
}

static void check_connection(int i)
{
	struct sockaddr_storage a = {0};
	socklen_t size = sizeof(a);

	COMES(server[i], "question");
	COMES(client[i], "answer");
	CHECK(!getsockname(client[i], (struct sockaddr *)&a, &size) &&
			!memcmp(&a, &client_name[i], size),
		"the client of %d has another name", i);
	CHECK(write(client[i], "again", 5) == 5, "asking on");
	CHECK(recv(server[i], &a, 5, MSG_WAITALL) == 5, "what was asked");
}

static void check_listening(int i, int family)
{
	struct tcp_info info = {0};
	socklen_t size = sizeof(info);
	int fd = connect_to(family, listening[i]), other;
	struct pollfd p = {.fd = listening[i], .events = POLLIN};

	/* For a listening socket it is the length of the queue (tcp_get_info()). */
	CHECK(!getsockopt(listening[i], IPPROTO_TCP, TCP_INFO, &info, &size) &&
			info.tcpi_sacked == 6,
		"%u may wait", info.tcpi_sacked);
	CHECK(poll(&p, 1, 60000) == 1, "nobody comes to %d", i);
	other = accept(listening[i], NULL, NULL);
	CHECK(other >= 0 && write(fd, "hi", 2) == 2, "a new connection");
	close(fd);
	close(other);
}

static void check_waiting(void)
{
	struct pollfd p = {.fd = listening[MOMENT], .events = POLLIN};
	int fd;
	char text[8];

	CHECK(poll(&p, 1, 0) == 1, "nobody waits to be accepted");
	if (!p.revents)
		return;
	fd = accept(listening[MOMENT], NULL, NULL);
	CHECK(write(waiting, "at last", 7) == 7, "sending to it");
	CHECK(recv(fd, text, 7, MSG_WAITALL) == 7 && !memcmp(text, "at last", 7), "coming");
}

static void check_ends(void)
{
	struct pollfd p = {.fd = server[BROKEN], .events = POLLIN};
	char c;

	COMES(server[HALF], "question");
	ENDS(server[HALF]);
	CHECK(write(client[HALF], "x", 1) < 0 && errno == EPIPE, "a shut down end can send");
	CHECK(write(server[HALF], "on", 2) == 2, "the open half is closed");
	CHECK(recv(client[HALF], &(char[8]){0}, 8, MSG_WAITALL) == 8, "the answer and more");
	COMES(server[ENDED], "question");
	ENDS(server[ENDED]);
	CHECK(poll(&p, 1, 0) == 1 && p.revents & POLLERR, "poll says %#x", p.revents);
	CHECK(sock_int(server[BROKEN], SOL_SOCKET, SO_ERROR) == ECONNRESET, "not ECONNRESET");
	CHECK(recv(server[DONE], &c, 1, MSG_DONTWAIT) == 0, "it is not at its end");
	CHECK(write(server[DONE], "x", 1) < 0 && errno == EPIPE, "it can send");
}

static void prepare(void)
{
	const struct linger now = {1, 0};
	struct sockaddr_in any = {.sin_family = AF_INET};
	socklen_t size = sizeof(bound_name);
	struct pollfd p = {.events = POLLRDHUP};
	int error;

	for (int i = 0; i < KINDS; i++)
		make_connection(i, i == SIX || i == MIXED ? AF_INET6 : AF_INET,
			i == SIX ? AF_INET6 : AF_INET);
	waiting = connect_to(AF_INET, listening[MOMENT]);
	close(listening[HALF]); /* connections outlive the socket that they came by */
	fill();
	options();
	MUST(!shutdown(client[HALF], SHUT_WR));
	COMES(client[ENDED], "answer"); /* closing with something unread would break it */
	close(client[ENDED]);
	for (int i = BROKEN; i <= DONE; i++) {
		MUST(!setsockopt(client[i], SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
		close(client[i]);
		p.fd = server[i];
		MUST(poll(&p, 1, 60000) == 1);
	}
	error = sock_int(server[DONE], SOL_SOCKET, SO_ERROR);
	MUST(error == ECONNRESET);
	MUST(recv(server[DONE], &(char[8]){0}, 8, MSG_DONTWAIT) == 8);
	idle = socket(AF_INET, SOCK_STREAM, 0);
	bound = socket(AF_INET, SOCK_STREAM, 0);
	MUST(!bind(bound, (struct sockaddr *)&any, sizeof(any)));
	MUST(!getsockname(bound, (struct sockaddr *)&bound_name, &size));
}

int main(void)
{
	struct sockaddr_storage a = {0};
	socklen_t size = sizeof(a);
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};

	if (fd < 0 || bind(fd, (struct sockaddr *)&six, sizeof(six)))
		victim_skip("no IPv6");
	close(fd);
	signal(SIGPIPE, SIG_IGN);
	prepare();
	victim_ready();
	victim_wait();
	check_options();
	check_ends();
	check_full();
	for (int i = PLAIN; i <= MIXED; i++)
		check_connection(i);
	check_listening(PLAIN, AF_INET);
	check_listening(SIX, AF_INET6);
	check_listening(MIXED, AF_INET);
	check_waiting();
	CHECK(!getsockname(bound, (struct sockaddr *)&a, &size) &&
			!memcmp(&a, &bound_name, size),
		"a bound one has another name");
	CHECK(!listen(bound, 1), "a bound one cannot listen");
	fd = connect_to(AF_INET, bound);
	CHECK(fd >= 0 && connect(idle, (struct sockaddr *)&bound_name,
				 sizeof(struct sockaddr_in)) == 0,
		"an unused one cannot connect");
	return victim_done();
}
