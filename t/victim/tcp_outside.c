/* A TCP connection to the outside, at the port given: undisturbed by a checkpoint, broken after
 * a restart ("reset").
 *
 *	tcp_outside PORT (undisturbed|reset)
 */
#include <netinet/in.h>
#include <poll.h>

#include "sockets.h"

static int fd;

void victim_hurt(void)
{
	shutdown(fd, SHUT_RDWR);
}

static void check_undisturbed(void)
{
	char text[8];

	COMES(fd, "hello");
	CHECK(write(fd, "echo", 4) == 4 && recv(fd, text, 4, MSG_WAITALL) == 4 &&
			!memcmp(text, "echo", 4),
		"the connection is broken");
}

static void check_reset(void)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char c;

	CHECK(poll(&p, 1, 0) == 1 && p.revents & POLLERR, "poll says %#x", p.revents);
	COMES(fd, "hello");
	CHECK(recv(fd, &c, 1, MSG_DONTWAIT) < 0 && errno == ECONNRESET, "no ECONNRESET");
	CHECK(recv(fd, &c, 1, MSG_DONTWAIT) == 0, "no end");
	CHECK(write(fd, "x", 1) < 0 && errno == EPIPE, "no EPIPE");
}

int main(int argc, char *argv[])
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct pollfd p = {.events = POLLIN};

	signal(SIGPIPE, SIG_IGN);
	MUST(argc == 3);
	a.sin_port = htons(atoi(argv[1]));
	p.fd = fd = socket(AF_INET, SOCK_STREAM, 0);
	MUST(!connect(fd, (struct sockaddr *)&a, sizeof(a)));
	MUST(poll(&p, 1, 5000) == 1); /* the greeting */
	victim_ready();
	victim_wait();
	if (!strcmp(argv[2], "reset"))
		check_reset();
	else
		check_undisturbed();
	return victim_done();
}
