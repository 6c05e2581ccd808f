/* Sockets of Multipath TCP that listen (each server of Go's has such ones), for IPv4 and IPv6,
 * and one that is new; what they have accepted is TCP, as the clients have asked for no more.
 */
#include <netinet/in.h>

#include "sockets.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

enum { V4, V6, KINDS };

static struct sockaddr_storage name[KINDS];
static socklen_t size[KINDS] = {sizeof(struct sockaddr_in), sizeof(struct sockaddr_in6)};
static int listening[KINDS], new, accepted[KINDS], client[KINDS], waiting[KINDS];

void victim_hurt(void)
{
	int tcp = socket(AF_INET, SOCK_STREAM, 0);

	MUST(dup2(tcp, new) == new);
}

static int connect_to(int i)
{
	int fd = socket(name[i].ss_family, SOCK_STREAM, 0);

	MUST(fd >= 0 && !connect(fd, (struct sockaddr *)&name[i], size[i]));
	return fd;
}

static int make_socket(int family)
{
	int fd = socket(family, SOCK_STREAM, IPPROTO_MPTCP);

	if (fd < 0)
		victim_skip("no Multipath TCP here");
	return fd;
}

static void begin(int i)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};

	memcpy(&name[i], i == V4 ? (void *)&v4 : (void *)&v6, size[i]);
	listening[i] = make_socket(name[i].ss_family);
	sock_set(listening[i], SOL_SOCKET, SO_REUSEADDR, 1);
	if (bind(listening[i], (struct sockaddr *)&name[i], size[i]))
		victim_skip("no IPv6 here");
	MUST(!listen(listening[i], 9) &&
		!getsockname(listening[i], (struct sockaddr *)&name[i], &size[i]));
	client[i] = connect_to(i);
	accepted[i] = accept(listening[i], NULL, NULL);
	MUST(accepted[i] >= 0 && write(client[i], "way", 3) == 3);
	waiting[i] = connect_to(i);
}

static void check_connection(int i)
{
	int fd = accept(listening[i], NULL, NULL);

	COMES(accepted[i], "way");
	CHECK(write(accepted[i], "back", 4) == 4, "answering");
	COMES(client[i], "back");
	CHECK(fd >= 0 && write(waiting[i], "late", 4) == 4, "nobody waits to be accepted");
	COMES(fd, "late");
	CHECK(sock_int(listening[i], SOL_SOCKET, SO_PROTOCOL) == IPPROTO_MPTCP,
		"socket %d has another protocol", i);
	CHECK(sock_int(listening[i], SOL_SOCKET, SO_REUSEADDR) == 1, "socket %d: option", i);
}

/* Both ends of Multipath TCP. */
static void check_new(void)
{
	int fd;

	CHECK(sock_int(new, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_MPTCP,
		"the new one's protocol");
	MUST(!connect(new, (struct sockaddr *)&name[V4], size[V4]));
	fd = accept(listening[V4], NULL, NULL);
	MUST(write(new, "paths", 5) == 5);
	COMES(fd, "paths");
}

int main(void)
{
	new = make_socket(AF_INET);
	for (int i = 0; i < KINDS; i++)
		begin(i);
	victim_ready();
	victim_wait();
	for (int i = 0; i < KINDS; i++)
		check_connection(i);
	check_new();
	return victim_done();
}
