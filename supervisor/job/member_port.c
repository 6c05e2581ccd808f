/*
 * member_port.c - the port, the visitors that have not shown yet who they are, and the lines that are
 * passed between the others and the control socket.
 */
#include "supervisor/job/member_port.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

/* A visitor that has not introduced itself by then is turned away, and so is the oldest if there are too
 * many. */
#define UNPROVEN_MAX 128
#define UNPROVEN_NS  5000000000ull
#define VISITORS_MAX 8192

/* How long answers may take to get through in the end. */
#define FINISH_NS 2000000000ull

enum stage { EXPECT_HELLO, EXPECT_PROOF, ADMITTED, GONE };

struct visitor {
	enum stage stage;
	struct wire outside; /* to the other machine */
	struct wire inside;  /* to our control socket */
	struct wire_introduction introduction;
	uint64_t since_ns;
	bool ended; /* nothing more comes from outside */
};

struct member_port {
	int fd, port;
	uint8_t secret[WIRE_KEY];
	char *socket;        /* of the thread; NULL: there is none */
	_Atomic int inside;  /* visitors that have been admitted, and have not left */
	struct buf visitors; /* struct visitor *, in the order they came */
};

/* ---- listening ---- */

/* For both versions of IP where the machine has both. */
static int bind_any(int *port)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
	struct sockaddr_in four = {.sin_family = AF_INET};
	cleanup_fd int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t size = sizeof(six);
	int both = 0;

	if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof(both)) ||
		bind(fd, (void *)&six, sizeof(six))) {
		util_close(&fd);
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0 || bind(fd, (void *)&four, sizeof(four)))
			return -1;
	}
	if (getsockname(fd, (void *)&six, &size))
		return -1;
	/* At the same place in both kinds of address. */
	*port = ntohs(six.sin6_port);
	return steal_fd(&fd);
}

struct member_port *member_port_open(
	const uint8_t secret[WIRE_KEY], const char *interface, struct err *e)
{
	int port;
	cleanup_fd int fd = bind_any(&port);
	struct member_port *g;

	if (fd < 0 ||
		(interface && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface,
				      strlen(interface) + 1)) ||
		listen(fd, 1024)) {
		err_set(e, errno, "cannot listen for the other members of the job%s%s",
			interface ? " on " : "", interface ? interface : "");
		return NULL;
	}
	g = xcalloc(1, sizeof(*g));
	g->fd = steal_fd(&fd);
	g->port = port;
	memcpy(g->secret, secret, WIRE_KEY);
	return g;
}

int member_port_number(const struct member_port *g)
{
	return g->port;
}

/* ---- visitors ---- */

static size_t count_of(const struct member_port *g)
{
	return buf_count(&g->visitors, struct visitor *);
}

static struct visitor *visitor_at(const struct member_port *g, size_t i)
{
	return *buf_at(&g->visitors, struct visitor *, i);
}

/* The control socket's end is to see that nobody is there any more, not only that nothing more
 * comes. */
static void send_away(struct member_port *g, struct visitor *v)
{
	if (v->stage == ADMITTED)
		g->inside--;
	wire_close(&v->outside);
	wire_close(&v->inside);
	v->stage = GONE;
}

static void remove_gone(struct member_port *g)
{
	size_t kept = 0;

	for (size_t i = 0; i < count_of(g); i++) {
		struct visitor *v = visitor_at(g, i);

		if (v->stage == GONE)
			free(v);
		else
			*buf_at(&g->visitors, struct visitor *, kept++) = v;
	}
	g->visitors.len = kept * sizeof(struct visitor *);
}

static bool is_unproven(const struct visitor *v)
{
	return v->stage == EXPECT_HELLO || v->stage == EXPECT_PROOF;
}

static void send_unproven_away(struct member_port *g)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	size_t unproven = 0;

	for (size_t i = count_of(g); i-- > 0;) {
		struct visitor *v = visitor_at(g, i);

		if (is_unproven(v) &&
			(++unproven > UNPROVEN_MAX || now > v->since_ns + UNPROVEN_NS))
			send_away(g, v);
	}
	remove_gone(g);
}

static void accept_visitor(struct member_port *g)
{
	int fd = accept4(g->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct visitor *v;

	if (fd < 0) {
		/* It has left, or there are no descriptors, which a moment may change. */
		if (errno == EMFILE || errno == ENFILE)
			sleep_ns(100000000);
		return;
	}
	if (count_of(g) >= VISITORS_MAX) {
		close(fd);
		return;
	}
	wire_watch(fd);
	v = xcalloc(1, sizeof(*v));
	v->outside.fd = fd;
	v->inside.fd = -1;
	v->since_ns = clock_ns(CLOCK_MONOTONIC);
	memcpy(v->introduction.secret, g->secret, WIRE_KEY);
	buf_push(&g->visitors, struct visitor *, &v);
}

static int admit_visitor(struct member_port *g, struct visitor *v, const char *socket_name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	BUG_ON(strlen(socket_name) >= sizeof(address.sun_path));
	memcpy(address.sun_path, socket_name, strlen(socket_name));
	if (fd < 0 || connect(fd, (void *)&address, sizeof(address)))
		return -1;
	v->inside.fd = steal_fd(&fd);
	wire_seal(&v->outside, &v->introduction, false);
	v->stage = ADMITTED;
	g->inside++;
	return 0;
}

static int introduce_visitor(
	struct member_port *g, struct visitor *v, const char *line, const char *socket_name)
{
	cleanup_free char *answer = NULL;

	if (v->stage == EXPECT_PROOF)
		return wire_check_proof(&v->introduction, line)
			       ? -1
			       : admit_visitor(g, v, socket_name);
	if (wire_check_hello(&v->introduction, line, &answer))
		return -1;
	v->stage = EXPECT_PROOF;
	/* A socket that has taken nothing yet takes this. */
	return send(v->outside.fd, answer, strlen(answer), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1
											    : 0;
}

/* A line in one of the two directions. -1: the end. */
static int pass_line(
	struct member_port *g, struct visitor *v, struct wire *from, const char *socket_name)
{
	cleanup_free char *line = NULL;
	int r = wire_take_line(from, &line);

	if (r <= 0)
		return r;
	if (v->stage != ADMITTED)
		return introduce_visitor(g, v, line, socket_name) ? -1 : 1;
	return wire_say(from == &v->inside ? &v->outside : &v->inside, line) ? -1 : 1;
}

/* A visitor that closes its end of the connection is a client that wants no more: what it was told
 * before goes through all the same. */
static void hear_visitor(
	struct member_port *g, struct visitor *v, struct wire *from, const char *socket_name)
{
	int end = wire_receive(from), r;

	while ((r = pass_line(g, v, from, socket_name)) > 0)
		;
	if (r < 0 || (is_unproven(v) && from->in.len > WIRE_INTRODUCTION_MAX) ||
		(end && (errno || from == &v->inside || is_unproven(v))))
		send_away(g, v);
	else if (end) {
		(void)shutdown(v->inside.fd, SHUT_WR);
		v->ended = true;
	}
}

/* ---- serving ---- */

/* The listening socket, then two for each visitor. After the end of what comes from outside,
 * only the answer's end counts. */
static void fill_pollfds(const struct member_port *g, struct pollfd *fds)
{
	fds[0] = (struct pollfd){.fd = g->fd, .events = POLLIN};
	for (size_t i = 0; i < count_of(g); i++) {
		const struct visitor *v = visitor_at(g, i);

		fds[1 + 2 * i] =
			(struct pollfd){.fd = v->outside.fd, .events = v->ended ? 0 : POLLIN};
		fds[2 + 2 * i] = (struct pollfd){.fd = v->inside.fd, .events = POLLIN};
	}
}

static void dispatch_events(
	struct member_port *g, const char *socket_name, const struct pollfd *fds)
{
	size_t count = count_of(g);

	for (size_t i = 0; i < count; i++) {
		struct visitor *v = visitor_at(g, i);

		if (fds[2 + 2 * i].revents)
			hear_visitor(g, v, &v->inside, socket_name);
		if (v->stage != GONE && v->ended && fds[1 + 2 * i].revents)
			send_away(g, v);
		if (v->stage != GONE && fds[1 + 2 * i].revents)
			hear_visitor(g, v, &v->outside, socket_name);
	}
	if (fds[0].revents)
		accept_visitor(g);
	send_unproven_away(g);
}

static bool has_unproven(const struct member_port *g)
{
	for (size_t i = 0; i < count_of(g); i++)
		if (is_unproven(visitor_at(g, i)))
			return true;
	return false;
}

void member_port_serve(struct member_port *g, const char *socket, struct pollfd *others,
	size_t count, int wait_ms)
{
	size_t own = 1 + 2 * count_of(g);
	cleanup_free struct pollfd *fds = xcalloc(own + count, sizeof(*fds));

	fill_pollfds(g, fds);
	if (count)
		memcpy(fds + own, others, count * sizeof(*fds));
	if (has_unproven(g) && (wait_ms < 0 || wait_ms > 1000))
		wait_ms = 1000;
	if (poll(fds, own + count, wait_ms) < 0)
		return;
	if (count)
		memcpy(others, fds + own, count * sizeof(*fds));
	dispatch_events(g, socket, fds);
}

static void *serve_for_ever(void *arg)
{
	struct member_port *g = arg;

	for (;;)
		member_port_serve(g, g->socket, NULL, 0, -1);
	return NULL;
}

int member_port_start(struct member_port *g, const char *socket, struct err *e)
{
	pthread_t thread;

	g->socket = xstrdup(socket);
	if (thread_start(&thread, serve_for_ever, g))
		return err_set(e, errno, "cannot start a thread for the job's other members");
	(void)pthread_detach(thread);
	return 0;
}

void member_port_finish(const struct member_port *g)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + FINISH_NS;

	while (g && g->socket && g->inside && clock_ns(CLOCK_MONOTONIC) < deadline)
		sleep_ns(1000000);
}
