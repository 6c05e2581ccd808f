/* UDP sockets that share a port, each with datagrams of its own in it: to one address, which the
 * kernel spreads among them, and to all (broadcast); a socket that is bound to the latter, and a socket
 * that is not bound any more. */
#include <netinet/in.h>

#include "sockets.h"

#define COUNT 3
#define SENT  12

static int spread[COUNT], all[COUNT], broadcast, source, nameless;
static char had[COUNT][SENT]; /* what the kernel has chosen, in order */
static int count[COUNT];

void victim_hurt(void)
{
	char c;

	if (recv(all[1], &c, 1, 0) != 1)
		victim_failures++;
}

static int shared(int option, in_addr_t address, in_port_t port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_addr = {htonl(address)}, .sin_port = port};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	sock_set(fd, SOL_SOCKET, option, 1);
	MUST(fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a)));
	return fd;
}

static in_port_t port_of(int fd)
{
	struct sockaddr_in a;
	socklen_t size = sizeof(a);

	MUST(!getsockname(fd, (struct sockaddr *)&a, &size));
	return a.sin_port;
}

static void send_to(int fd, in_addr_t address, in_port_t port, char c)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_addr = {htonl(address)}, .sin_port = port};

	MUST(sendto(fd, &c, 1, 0, (struct sockaddr *)&a, sizeof(a)) == 1);
}

/* Each from a port of its own, as these decide who gets it. */
static void prepare_spread(void)
{
	int found = 0;

	for (int i = 0; i < COUNT; i++)
		spread[i] = shared(SO_REUSEPORT, INADDR_LOOPBACK, i ? port_of(spread[0]) : 0);
	/* They stay open. */
	for (char c = 'a'; c < 'a' + SENT; c++)
		send_to(socket(AF_INET, SOCK_DGRAM, 0), INADDR_LOOPBACK, port_of(spread[0]), c);
	for (int i = 0; i < COUNT; i++) {
		/* Each peek shows the next one. */
		sock_set(spread[i], SOL_SOCKET, SO_PEEK_OFF, 0);
		while (recv(spread[i], &had[i][count[i]], 1, MSG_PEEK | MSG_DONTWAIT) == 1)
			count[i]++;
		sock_set(spread[i], SOL_SOCKET, SO_PEEK_OFF, -1);
		found += count[i];
	}
	MUST(found == SENT);
}

/* Socket i has read i of them. */
static void prepare_broadcast(void)
{
	in_addr_t to = INADDR_LOOPBACK | 0xfffffe;
	char c;

	for (int i = 0; i < COUNT; i++)
		all[i] = shared(SO_REUSEADDR, INADDR_ANY, i ? port_of(all[0]) : 0);
	broadcast = shared(SO_REUSEADDR, to, port_of(all[0]));
	sock_set(source, SOL_SOCKET, SO_BROADCAST, 1);
	for (int i = 0; i < COUNT; i++)
		send_to(source, to, port_of(all[0]), '0' + i);
	for (int i = 0; i < COUNT; i++)
		for (int n = 0; n < i; n++)
			MUST(recv(all[i], &c, 1, MSG_DONTWAIT) == 1);
}

static void check_next(int fd, char want, const char *what)
{
	struct sockaddr_in a = {0};
	socklen_t size = sizeof(a);
	char c = 0;
	ssize_t n = recvfrom(fd, &c, 1, MSG_DONTWAIT, (struct sockaddr *)&a, &size);

	CHECK(n == 1 && c == want, "%s: %zd, '%c', not '%c'", what, n, c, want);
	CHECK(want > '9' || a.sin_port == port_of(source), "%s: from port %d", what,
		ntohs(a.sin_port));
}

/* What came before it was disconnected, and lost the port that the kernel had chosen. */
static void prepare_nameless(void)
{
	static const struct sockaddr nothing = {.sa_family = AF_UNSPEC};
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_addr = {htonl(INADDR_LOOPBACK)},
		.sin_port = port_of(source)};

	nameless = socket(AF_INET, SOCK_DGRAM, 0);
	MUST(nameless >= 0 && !connect(nameless, (struct sockaddr *)&a, sizeof(a)));
	send_to(source, INADDR_LOOPBACK, port_of(nameless), 'n');
	MUST(!connect(nameless, &nothing, sizeof(nothing)) && !port_of(nameless));
}

int main(void)
{
	source = shared(SO_REUSEADDR, INADDR_LOOPBACK, 0);
	prepare_spread();
	prepare_broadcast();
	prepare_nameless();
	victim_ready();
	victim_wait();
	for (int i = 0; i < COUNT; i++) {
		for (int n = 0; n < count[i]; n++)
			check_next(spread[i], had[i][n], "spread");
		EMPTY(spread[i]);
		for (int n = i; n < COUNT; n++)
			check_next(all[i], '0' + n, "to all");
		EMPTY(all[i]);
		check_next(broadcast, '0' + i, "bound to all");
	}
	EMPTY(broadcast);
	check_next(nameless, 'n', "disconnected");
	CHECK(!port_of(nameless), "it has port %d", ntohs(port_of(nameless)));
	send_to(source, INADDR_LOOPBACK | 0xfffffe, port_of(all[0]), '9');
	check_next(all[0], '9', "sent later");
	check_next(broadcast, '9', "sent later");
	return victim_done();
}
