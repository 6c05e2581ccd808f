/*
 * reach_member.c - by its socket on this machine, else by its port at one of its addresses.
 */
#include "supervisor/job/reach_member.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* How long one address may take to answer; more than a member spends on an unknown visitor. */
#define ADDRESS_MS 3000

static int wait_for(int fd, short events, uint64_t deadline_ns)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct pollfd p = {.fd = fd, .events = events};

	if (now > deadline_ns)
		return -1;
	return poll(&p, 1, (deadline_ns - now) / 1000000 + 1) < 0 && errno != EINTR ? -1 : 0;
}

static int connect_to(const char *address, int port, uint64_t deadline_ns, struct err *e)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	struct addrinfo *found;
	cleanup_fd int fd = -1;
	char service[8];
	int error = 0;
	socklen_t size = sizeof(error);

	snprintf(service, sizeof(service), "%d", port);
	if (getaddrinfo(address, service, &hints, &found))
		return err_set(e, 0, "%s is not an address", address);
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || (connect(fd, found->ai_addr, found->ai_addrlen) && errno != EINPROGRESS))
		error = errno;
	freeaddrinfo(found);
	if (!error && !wait_for(fd, POLLOUT, deadline_ns))
		(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
	if (!error && clock_ns(CLOCK_MONOTONIC) > deadline_ns)
		error = ETIMEDOUT;
	if (error)
		return err_set(e, error, "cannot connect to %s port %d", address, port);
	wire_watch(fd);
	return steal_fd(&fd);
}

static int hear_line(struct wire *w, char **line, uint64_t deadline_ns)
{
	int r;

	while (!(r = wire_take_line(w, line)))
		if (wait_for(w->fd, POLLIN, deadline_ns) || wire_receive(w))
			return -1;
	return r < 0 ? -1 : 0;
}

static int introduce_to_member(
	struct wire *w, const uint8_t secret[WIRE_KEY], uint64_t deadline_ns)
{
	struct wire_introduction i = {0};
	cleanup_free char *hello = NULL, *answer = NULL, *proof = NULL;

	memcpy(i.secret, secret, WIRE_KEY);
	hello = wire_hello(&i);
	if (send(w->fd, hello, strlen(hello), MSG_NOSIGNAL) < 0 ||
		hear_line(w, &answer, deadline_ns) || wire_check_answer(&i, answer, &proof) ||
		send(w->fd, proof, strlen(proof), MSG_NOSIGNAL) < 0)
		return -1;
	wire_seal(w, &i, true);
	return 0;
}

static int try_address(
	const struct job_member *m, const char *address, struct wire *w, struct err *e)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + ADDRESS_MS * 1000000ull;

	w->fd = connect_to(address, m->port, deadline, e);
	if (w->fd < 0)
		return -1;
	if (!introduce_to_member(w, m->secret, deadline))
		return 0;
	wire_close(w);
	return err_set(
		e, 0, "%s port %d does not answer as this member would", address, m->port);
}

/* By the addresses in its file only. */
static int reach_by_address(const struct job_member *m, struct wire *w, struct err *e)
{
	*w = (struct wire)WIRE_CLOSED;
	if (!m->port)
		return err_set(e, 0, "it has no address (supervisor %d on %s)", m->supervisor,
			m->host);
	for (size_t i = 0; i < m->addresses.count; i++)
		if (!try_address(m, m->addresses.text[i], w, e))
			return 0;
	return err_prefix(
		e, "its supervisor %d on %s cannot be reached", m->supervisor, m->host);
}

bool reach_answers(const struct job_member *m)
{
	struct wire w;
	bool answers = !reach_by_address(m, &w, NULL);

	wire_close(&w);
	return answers;
}

int reach_member(const struct job_member *m, reach_local *local, struct wire *w,
	pid_t *supervisor, struct err *e)
{
	*supervisor = 0;
	*w = (struct wire)WIRE_CLOSED;
	if (job_member_is_here(m)) {
		w->fd = local(m->supervisor, supervisor, e);
		/* Its folder for sockets may be another one, where each node has a /tmp. */
		if (w->fd >= 0 || !m->port)
			return w->fd < 0 ? -1 : 0;
		*supervisor = 0;
	}
	return reach_by_address(m, w, e);
}
