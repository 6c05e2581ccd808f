/* A TCP connection to the outside, at the port given: undisturbed by a checkpoint, broken after
 * a restart ("reset"); with more under way than the server, which stands still, has room for
 * ("full"), or shut down for sending ("half").
 *
 *	tcp_outside PORT (undisturbed|reset|full|half)
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include "sockets.h"

static int fd;

void victim_hurt(void)
{
	shutdown(fd, SHUT_RDWR);
}

/* What both ends have agreed on, and how far the clock of the time stamps has come. */
static struct agreed {
	unsigned options, send_scale, receive_scale;
	unsigned clock;
} before;

static void look(struct agreed *a)
{
	struct tcp_info info = {0};
	socklen_t size = sizeof(info);

	MUST(!getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size));
	a->options = info.tcpi_options;
	a->send_scale = info.tcpi_snd_wscale;
	a->receive_scale = info.tcpi_rcv_wscale;
	a->clock = sock_int(fd, IPPROTO_TCP, TCP_TIMESTAMP);
}

static void check_agreed(void)
{
	struct agreed now;

	look(&now);
	CHECK(now.options == before.options && now.send_scale == before.send_scale &&
			now.receive_scale == before.receive_scale,
		"options %x, scales %u %u, were %x, %u %u", now.options, now.send_scale,
		now.receive_scale, before.options, before.send_scale, before.receive_scale);
	/* In milliseconds; from anywhere else it would hardly be so near. */
	CHECK(now.clock - before.clock < 1000000, "the clock was %u, is %u", before.clock,
		now.clock);
}

static char sent[4096], came[4096];
static size_t filled;

static void fill(void)
{
	ssize_t n;

	MUST(!fcntl(fd, F_SETFL, O_NONBLOCK));
	victim_fill(sent, sizeof(sent), 7);
	while ((n = write(fd, sent + filled % sizeof(sent),
			sizeof(sent) - filled % sizeof(sent))) > 0)
		filled += n;
	MUST(errno == EAGAIN && !fcntl(fd, F_SETFL, 0));
}

/* The server goes on, and sends all of it back, behind its greeting. */
static void check_full(void)
{
	size_t have = 0, at;
	ssize_t n;

	CHECK(recv(fd, came, 5, MSG_WAITALL) == 5 && !memcmp(came, "hello", 5), "greeting");
	for (; have < filled; have += n) {
		at = have % sizeof(sent);
		n = recv(fd, came, sizeof(sent) - at, 0);
		CHECK(n > 0 && !memcmp(came, sent + at, n), "byte %zu: %zd", have, n);
		if (n <= 0)
			return;
	}
	check_agreed();
}

static void check_undisturbed(void)
{
	char text[8];

	check_agreed();
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
	if (!strcmp(argv[2], "full"))
		fill();
	else if (!strcmp(argv[2], "half"))
		MUST(!shutdown(fd, SHUT_WR));
	else
		MUST(poll(&p, 1, 5000) == 1); /* the greeting */
	look(&before);
	victim_ready();
	victim_wait();
	if (!strcmp(argv[2], "reset"))
		check_reset();
	else if (!strcmp(argv[2], "full"))
		check_full();
	else if (!strcmp(argv[2], "half"))
		CHECK(recv(fd, came, 8, MSG_WAITALL) == 5, "greeting");
	else
		check_undisturbed();
	return victim_done();
}
