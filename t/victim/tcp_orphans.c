/* TCP connections whose other end was closed with more in it than this end had room for: the
 * kernel still sends that, for a socket that is nobody's any more. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include "sockets.h"

enum { ANSWERED, FINISHED, NARROW, LISTENERLESS, KINDS };

static int listening[KINDS], client[KINDS];
static size_t filled[KINDS];

void victim_hurt(void)
{
	char c;

	if (recv(client[ANSWERED], &c, 1, 0) != 1)
		victim_failures++;
}

static int listen_here(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	MUST(fd >= 0);
	sock_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	MUST(!bind(fd, (struct sockaddr *)&any, sizeof(any)) && !listen(fd, 3));
	return fd;
}

static void wait_for_state(int fd, int state)
{
	struct tcp_info info;
	socklen_t size;

	do {
		size = sizeof(info);
		MUST(!getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size));
	} while (info.tcpi_state != state);
}

/* Until nothing more is taken, however long the kernel is asked. */
static size_t fill(int fd)
{
	static char data[1 << 16];
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	size_t sent = 0;
	ssize_t n;

	victim_fill(data, sizeof(data), 5);
	MUST(!fcntl(fd, F_SETFL, O_NONBLOCK));
	while (poll(&p, 1, 200) == 1)
		while ((n = write(fd, data + sent % sizeof(data),
				sizeof(data) - sent % sizeof(data))) > 0)
			sent += n;
	return sent;
}

static void make_orphan(int i)
{
	struct sockaddr_storage a;
	socklen_t size = sizeof(a);
	int server;

	listening[i] = listen_here();
	client[i] = socket(AF_INET, SOCK_STREAM, 0);
	if (i == NARROW)
		sock_set(client[i], SOL_SOCKET, SO_RCVBUF, 2000);
	MUST(!getsockname(listening[i], (struct sockaddr *)&a, &size));
	MUST(!connect(client[i], (struct sockaddr *)&a, size));
	server = accept(listening[i], NULL, NULL);
	MUST(server >= 0);
	if (i == FINISHED)
		MUST(!shutdown(client[i], SHUT_WR) && recv(server, &(char){0}, 1, 0) == 0);
	filled[i] = fill(server);
	close(server);
	if (i == FINISHED)
		wait_for_state(client[i], TCP_FIN_WAIT2);
	if (i == LISTENERLESS)
		close(listening[i]);
}

/* All of it comes, and then the end. */
static void check_orphan(int i)
{
	static char want[1 << 16], data[1 << 16];
	struct pollfd p = {.fd = client[i], .events = POLLIN};
	size_t have = 0;
	ssize_t n = -1;

	victim_fill(want, sizeof(want), 5);
	while (poll(&p, 1, 60000) == 1) {
		size_t at = have % sizeof(want);

		n = recv(client[i], data, sizeof(want) - at, MSG_DONTWAIT);
		if (n <= 0)
			break;
		if (memcmp(data, want + at, n))
			break;
		have += n;
	}
	CHECK(have == filled[i] && !n, "%d: %zu bytes of %zu, and %zd (%s)", i, have, filled[i],
		n, strerror(errno));
	CHECK((write(client[i], "x", 1) == 1) == (i != FINISHED), "%d: it can send or not", i);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < KINDS; i++)
		make_orphan(i);
	victim_ready();
	victim_wait();
	for (int i = 0; i < KINDS; i++)
		check_orphan(i);
	CHECK(sock_int(client[NARROW], SOL_SOCKET, SO_RCVBUF) == 4000, "SO_RCVBUF %d",
		sock_int(client[NARROW], SOL_SOCKET, SO_RCVBUF));
	return victim_done();
}
