/* A TCP connection to the outside, at the port given: undisturbed by a checkpoint, broken after
 * a restart ("reset"); with more under way than the server, which stands still, has room for
 * ("full"), or shut down for sending ("half"). Undisturbed, too, are that of a server
 * ("server"), one that a thread sleeps in to read from ("read"), and one that is only in a
 * message ("passed").
 *
 *	tcp_outside PORT (undisturbed|reset|full|half|server|read|passed) FILE [ADDRESS]
 *
 * An undisturbed one brings what is in FILE by the end, no more and no less.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include "sockets.h"

static int fd, listening;

void victim_hurt(void)
{
	shutdown(fd, SHUT_RDWR);
}

/* What both ends have agreed on, and how far the clock of the time stamps has come. */
static struct agreed {
	unsigned options, send_scale, receive_scale;
	unsigned clock;
	int reuse;
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
	a->reuse = sock_int(fd, SOL_SOCKET, SO_REUSEADDR);
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

/* What trecr changes for a moment. */
static void check_settings(void)
{
	int reuse = sock_int(fd, SOL_SOCKET, SO_REUSEADDR);

	CHECK(reuse == before.reuse, "SO_REUSEADDR was %d, is %d", before.reuse, reuse);
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

/* The server resumes, and sends all of it back, behind its greeting. */
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

static char expected[1024];

static ssize_t read_expected(const char *file)
{
	int f = open(file, O_RDONLY);
	ssize_t size = read(f, expected, sizeof(expected) - 4);

	MUST(size > 0);
	close(f);
	return size;
}

static void set_patience(void)
{
	const struct timeval patience = {.tv_sec = 20};

	MUST(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
}

static void check_undisturbed(const char *file)
{
	ssize_t size = read_expected(file);

	check_agreed();
	check_settings();
	set_patience();
	CHECK(recv(fd, came, size, MSG_WAITALL) == size && !memcmp(came, expected, size),
		"'%s' has come, not '%s'", came, expected);
	CHECK(write(fd, "echo", 4) == 4 && recv(fd, came, 4, MSG_WAITALL) == 4 &&
			!memcmp(came, "echo", 4),
		"the connection is broken");
}

/* A call with a time-out is entered again while the program is stopped still. */
static void *read_all(void *arg)
{
	size_t have = 0;
	ssize_t n;

	while ((n = recv(fd, came + have, sizeof(came) - have, 0)) > 0)
		have += n;
	CHECK(n == 0, "reading ends by %s", strerror(errno));
	return NULL;
}

static void check_read(const char *file, pthread_t reader)
{
	ssize_t size = read_expected(file);

	CHECK(write(fd, "echo", 4) == 4 && !shutdown(fd, SHUT_WR) &&
			!pthread_join(reader, NULL),
		"the connection is broken");
	strcat(expected, "echo");
	CHECK(!memcmp(came, expected, size + 5), "'%s' has come, not '%s'", came, expected);
}

/* A socket's own queue. */
static int ends[2];

static void pass(void)
{
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	sock_send_fds(ends[0], "x", 1, &fd, 1);
	close(fd);
}

static void take(void)
{
	struct ucred cred;
	int fds[4];
	char c;

	CHECK(sock_receive(ends[1], &c, 1, fds, &cred) == 1 && fds[0] >= 0, "the descriptor");
	fd = fds[0];
}

/* Somebody else comes. */
static void check_listening(void)
{
	struct sockaddr_in a;
	socklen_t size = sizeof(a);
	int other = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(!getsockname(listening, (struct sockaddr *)&a, &size) &&
			!connect(other, (struct sockaddr *)&a, size) &&
			accept(listening, NULL, NULL) >= 0,
		"nobody can connect: %s", strerror(errno));
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

static void be_server(const struct sockaddr_in *a)
{
	listening = socket(AF_INET, SOCK_STREAM, 0);
	sock_set(listening, SOL_SOCKET, SO_REUSEADDR, 1);
	MUST(!bind(listening, (const struct sockaddr *)a, sizeof(*a)) && !listen(listening, 5));
	fd = accept(listening, NULL, NULL);
	MUST(fd >= 0);
}

static void be_client(const struct sockaddr_in6 *a)
{
	fd = socket(a->sin6_family, SOCK_STREAM, 0);
	sock_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	MUST(!connect(fd, (const struct sockaddr *)a, sizeof(*a)));
}

/* IPv4, IPv6, or the one written as the other. */
static void set_address(struct sockaddr_in6 *a6, const char *text, int port)
{
	struct sockaddr_in *a = (struct sockaddr_in *)a6;

	if (inet_pton(AF_INET, text, &a->sin_addr) == 1)
		a->sin_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &a6->sin6_addr) == 1)
		a6->sin6_family = AF_INET6;
	a->sin_port = htons(port); /* at the same place in both */
}

static void prepare(const char *mode, pthread_t *reader)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (!strcmp(mode, "full"))
		fill();
	else if (!strcmp(mode, "half"))
		MUST(!shutdown(fd, SHUT_WR));
	else
		MUST(poll(&p, 1, 60000) == 1); /* the greeting */
	look(&before);
	set_patience();
	if (!strcmp(mode, "read"))
		MUST(!pthread_create(reader, NULL, read_all, NULL));
	else if (!strcmp(mode, "passed"))
		pass();
}

static void check(const char *mode, const char *file, pthread_t reader)
{
	if (!strcmp(mode, "passed"))
		take();
	if (!strcmp(mode, "reset"))
		check_reset();
	else if (!strcmp(mode, "full"))
		check_full();
	else if (!strcmp(mode, "half"))
		CHECK(recv(fd, came, 8, MSG_WAITALL) == 5, "greeting");
	else if (!strcmp(mode, "read"))
		check_read(file, reader);
	else
		check_undisturbed(file);
	if (!strcmp(mode, "server"))
		check_listening();
}

int main(int argc, char *argv[])
{
	struct sockaddr_in6 a = {0};
	pthread_t reader = 0;

	signal(SIGPIPE, SIG_IGN);
	MUST(argc > 3);
	set_address(&a, argc > 4 ? argv[4] : "127.0.0.1", atoi(argv[1]));
	if (!strcmp(argv[2], "server"))
		be_server((struct sockaddr_in *)&a);
	else
		be_client(&a);
	prepare(argv[2], &reader);
	victim_ready();
	victim_wait();
	check(argv[2], argv[3], reader);
	return victim_done();
}
