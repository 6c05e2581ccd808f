/*
 * socket/inet_restore.c - TCP, UDP, raw and ICMP sockets at a restart: socket_inet_make().
 *
 * A TCP connection inside the tree is made anew, between the same addresses, through a socket
 * that listens for the moment. No privilege is needed for that.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "lib/util.h"
#include "supervisor/fd/objects_restore.h"
#include "supervisor/socket/datagram_transit.h"
#include "supervisor/socket/time_wait_ports.h"
#include "supervisor/socket/socket_families.h"
#include "supervisor/socket/socket_options.h"
#include "supervisor/socket/sockets_restore.h"
#include "supervisor/socket/tcp_repair.h"

#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE 51
#endif

#define PATIENCE_MS 10000

/* On the loopback device a port can be used again when the last connection is a second old
 * (net.ipv4.tcp_tw_reuse). */
#define FORGET_PAUSES   30
#define FORGET_PAUSE_NS 100000000

static int no_name(
	const char *what, const uint8_t *name, uint32_t size, int code, struct err *e)
{
	cleanup_buf struct buf shown = {0};
	bool wait = (code == EADDRINUSE || code == EADDRNOTAVAIL) &&
		    time_wait_holds_port(socket_port(name));

	socket_name_show(name, size, &shown);
	buf_add(&shown, "", 1);
	err_set(e, code, "cannot %s %s%s", what, (const char *)shown.data,
		wait ? ", as the kernel still reserves it for a connection that has ended "
		       "(TIME_WAIT), for a minute at most"
		     : "");
	if (wait && e)
		e->remedy = ERR_WAIT;
	return -1;
}

/* Whether two that are bound, and not connected, were in each other's way if none allowed it.
 */
static bool are_rivals(const struct image_socket *a, const struct image_socket *b)
{
	bool bound = a->state <= IMAGE_SOCKET_LISTENING && b->state <= IMAGE_SOCKET_LISTENING;

	return a != b && a->type == b->type && a->protocol == b->protocol &&
	       socket_has_trait(a, SOCKET_INET) && socket_has_trait(b, SOCKET_INET) &&
	       (bound || a->type == SOCK_DGRAM) && a->name_size && b->name_size &&
	       socket_port(a->name) == socket_port(b->name) &&
	       (socket_is_any_address(a->name) || socket_is_any_address(b->name) ||
		       socket_same_address(a->name, b->name));
}

static bool shares_port(const struct socket_restore *q, const struct image_socket *s)
{
	return socket_option_value(
		&q->options[s->first_option], s->option_count, SOL_SOCKET, SO_REUSEPORT);
}

/* Two can have come to the same address by an option that one of them has no more: it is set
 * for both, as long as they are made. */
static int allow_rivals(
	const struct socket_restore *q, int fd, const struct image_socket *s, struct err *e)
{
	for (size_t i = 0; i < q->count; i++) {
		const struct image_socket *o = &q->s[i];
		bool port = shares_port(q, s) || shares_port(q, o);
		int name = port ? SO_REUSEPORT : SO_REUSEADDR, on = 1;

		if (are_rivals(s, o) && setsockopt(fd, SOL_SOCKET, name, &on, sizeof(on)))
			return err_set(e, errno, "cannot let sockets share an address");
	}
	return 0;
}

/* A TCP socket whose address others may have, too, until all are there. */
static int new_shared(struct socket_restore *q, const struct image_socket *s, struct err *e)
{
	int fd = socket_new(q, s, e), on = 1;

	if (fd < 0)
		return -1;
	if (s->type == SOCK_STREAM && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		err_set(e, errno, "cannot set SO_REUSEADDR of a socket");
	else if (!allow_rivals(q, fd, s, e))
		return fd;
	close(fd);
	return -1;
}

static bool is_stream(int fd)
{
	socklen_t size = sizeof(int);
	int type = 0;

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) && type == SOCK_STREAM;
}

static int bind_name(int fd, const uint8_t *name, uint32_t size, struct err *e)
{
	int error = size && bind(fd, (const struct sockaddr *)name, size) ? errno : 0;

	if (error == EADDRINUSE && is_stream(fd)) {
		/* Whoever had it may have gone by the time that it is looked for. */
		(void)past_connections_forget(socket_port(name));
		error = bind(fd, (const struct sockaddr *)name, size) ? errno : 0;
	}
	if (!error)
		return 0;
	return no_name("bind a socket to", name, size, error, e);
}

/* As the program had set what past_connections_share() sets for the moment. */
static void end_choice(struct socket_restore *q, int fd, const struct image_socket *s)
{
	static const int names[] = {IP_LOCAL_PORT_RANGE, IP_BIND_ADDRESS_NO_PORT};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		int value = socket_option_value(
			&q->options[s->first_option], s->option_count, IPPROTO_IP, names[i]);

		(void)setsockopt(
			fd, IPPROTO_IP, names[i], &value, sizeof(value)); /* as above */
	}
}

/* -1 and errno on failure. */
static int try_to_connect(int fd, const uint8_t *name, uint32_t size)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t length = sizeof(int);
	int error;

	if (!connect(fd, (const struct sockaddr *)name, size))
		return 0;
	error = errno;
	if (error == EINPROGRESS && poll(&p, 1, PATIENCE_MS) == 1)
		(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
	errno = error;
	return error ? -1 : 0;
}

/* Connect @fd to @name, with the name of @client. */
static int connect_to(struct socket_restore *q, int fd, const struct image_socket *client,
	const uint8_t *name, uint32_t size, struct err *e)
{
	bool bound = !client->name_size;
	int error = 0;

	if (!bound && !past_connections_share(fd, client->name, client->name_size)) {
		if (bind_name(fd, client->name, client->name_size, e))
			return -1;
		bound = true;
	}
	for (int i = 0; i < FORGET_PAUSES; i++) {
		error = try_to_connect(fd, name, size) ? errno : 0;
		if (error == EADDRNOTAVAIL && !bound &&
			past_connections_forget(socket_port(client->name)))
			continue;
		/* The port's owners have bound it, if that is not what keeps it. */
		if (error == EADDRNOTAVAIL && !bound)
			bound = !bind(
				fd, (const struct sockaddr *)client->name, client->name_size);
		else if (error != EADDRNOTAVAIL)
			break;
		sleep_ns(FORGET_PAUSE_NS);
	}
	end_choice(q, fd, client);
	if (error == EADDRNOTAVAIL && client->name_size)
		return no_name(
			"connect a socket from", client->name, client->name_size, error, e);
	return error ? no_name("connect a socket to", name, size, error, e) : 0;
}

/* Others may have come, too, if the port is known: they are turned away. */
static int accept_from(int listening, const struct sockaddr_storage *client, struct err *e)
{
	for (;;) {
		struct pollfd p = {.fd = listening, .events = POLLIN};
		struct sockaddr_storage from;
		socklen_t size = sizeof(from);
		int fd;

		if (poll(&p, 1, PATIENCE_MS) != 1)
			return err_set(e, ETIMEDOUT, "cannot accept a connection");
		fd = accept4(listening, (struct sockaddr *)&from, &size, SOCK_CLOEXEC);
		if (fd < 0)
			return err_set(e, errno, "cannot accept a connection");
		if (socket_same_address((const uint8_t *)&from, (const uint8_t *)client))
			return fd;
		close(fd);
	}
}

static int listen_for(struct socket_restore *q, const struct image_socket *server,
	struct sockaddr_storage *name, socklen_t *size, struct err *e)
{
	int fd = new_shared(q, server, e);

	if (fd < 0)
		return -1;
	*size = sizeof(*name);
	if (bind_name(fd, server->name, server->name_size, e))
		goto out_close;
	if (!listen(fd, 8) && !getsockname(fd, (struct sockaddr *)name, size))
		return fd;
	no_name("listen at", server->name, server->name_size, errno, e);

out_close:
	close(fd);
	return -1;
}

/* The name of @server as a socket of the family of @client has to write it. */
static void name_for(
	const struct image_socket *client, struct sockaddr_storage *name, socklen_t *size)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	struct sockaddr_in v4;

	if (client->peer_name_size && socket_port(client->peer_name)) {
		memcpy(name, client->peer_name, client->peer_name_size);
		*size = client->peer_name_size;
	} else if (client->family == AF_INET6 && name->ss_family == AF_INET) {
		memcpy(&v4, name, sizeof(v4));
		v6.sin6_port = v4.sin_port;
		v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
		memcpy(&v6.sin6_addr.s6_addr[12], &v4.sin_addr, 4);
		memcpy(name, &v6, sizeof(v6));
		*size = sizeof(v6);
	}
}

static int make_connection(struct socket_restore *q, const struct image_socket *server,
	const struct image_socket *client, int *server_fd, int *client_fd, struct err *e)
{
	struct sockaddr_storage name, from;
	socklen_t size, from_size = sizeof(from);
	cleanup_fd int listening = -1;
	int fd;

	listening = listen_for(q, server, &name, &size, e);
	if (listening < 0)
		return -1;
	name_for(client, &name, &size);
	*client_fd = fd = new_shared(q, client, e);
	if (fd < 0 || connect_to(q, fd, client, (const uint8_t *)&name, size, e))
		return -1;
	if (getsockname(fd, (struct sockaddr *)&from, &from_size))
		return err_set(e, errno, "cannot query a socket's name");
	*server_fd = accept_from(listening, &from, e);
	if (*server_fd >= 0)
		*server_fd = fd_lift_into(q->r, server->description, *server_fd, e);
	return *server_fd < 0 ? -1 : 0;
}

static bool is_listened_at(const struct socket_restore *q, const struct image_socket *s)
{
	for (size_t i = 0; i < q->count; i++)
		if (q->s[i].state == IMAGE_SOCKET_LISTENING && socket_is_tcp(&q->s[i]) &&
			socket_port(q->s[i].name) == socket_port(s->name))
			return true;
	return false;
}

/* What the other end of a connection was that has none any more, as far as it can be here. */
static struct image_socket ghost_of(const struct image_socket *s)
{
	struct image_socket ghost = {.family = s->family,
		.type = s->type,
		.protocol = s->protocol,
		.description = FD_NO_DESCRIPTION};

	/* Of a dead connection it shows no more. */
	if (s->peer_name_size && !(s->flags & IMAGE_SOCKET_DEAD) &&
		socket_is_local(s->peer_name, s->peer_name_size)) {
		ghost.name_size = s->peer_name_size;
		memcpy(ghost.name, s->peer_name, s->peer_name_size);
		return ghost;
	}
	/* At the same address of this machine, with any port. */
	ghost.name_size =
		s->family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	memcpy(ghost.name, s->name, ghost.name_size);
	((struct sockaddr_in *)ghost.name)->sin_port = 0;
	memcpy(ghost.name, &s->family, sizeof(s->family));
	return ghost;
}

static int make_ended(struct socket_restore *q, const struct image_socket *s,
	struct socket_made *made, struct err *e)
{
	struct image_socket ghost = ghost_of(s), client = *s;
	int r;

	/* The port of its name, if it has one, is bound as a client's. */
	if (!socket_port(ghost.name))
		client.peer_name_size = 0;
	/* A connection that was accepted is accepted again. */
	if (socket_port(ghost.name) && is_listened_at(q, s))
		r = make_connection(q, s, &ghost, &made->fd, &made->other, e);
	else
		r = make_connection(q, &ghost, &client, &made->other, &made->fd, e);
	if (r)
		return -1;
	made->sender = made->other;
	return 0;
}

static int make_connected(struct socket_restore *q, size_t number, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1], *o = &q->s[s->peer - 1];
	struct socket_made *made = &q->made[number - 1], *peer = &q->made[s->peer - 1];
	int r;

	if (o->peer != number || peer->fd >= 0 || s->peer == number)
		return err_set(e, 0, "the image is damaged: ends of a connection");
	if (is_listened_at(q, s))
		r = make_connection(q, s, o, &made->fd, &peer->fd, e);
	else
		r = make_connection(q, o, s, &peer->fd, &made->fd, e);
	made->sender = peer->fd;
	peer->sender = made->fd;
	return r;
}

const struct image_tcp *socket_find_kept(const struct socket_restore *q, size_t number)
{
	for (size_t i = 0; i < q->tcp_count; i++)
		if (q->tcp[i].socket == number)
			return &q->tcp[i];
	return NULL;
}

static int make_kept(struct socket_restore *q, size_t number, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];
	uint32_t object = q->r->descriptions[s->description].object;
	const struct image_object *o =
		fd_object_info(q->r->job, object, IMAGE_OBJECT_SOCKET, e);
	cleanup_buf struct buf data = {0};
	int *fd = &q->made[number - 1].fd;

	if (!o || fd_object_contents(q->r, object, o->size, &data, e))
		return -1;
	*fd = socket_new(q, s, e);
	return *fd < 0 || socket_is_new(q, number, e)
		       ? -1
		       : socket_repair_restore(*fd, s, socket_find_kept(q, number), &data, e);
}

int socket_inet_listen(struct socket_restore *q, size_t number, uint32_t backlog, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];

	return listen(q->made[number - 1].fd, backlog)
		       ? no_name("listen at", s->name, s->name_size, errno, e)
		       : 0;
}

/* It has received what waited in it before it can receive anything else. */
static int make_udp(struct socket_restore *q, size_t number, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];
	const struct image_socket_option *options = &q->options[s->first_option];
	struct socket_made *made = &q->made[number - 1];

	made->fd = socket_new_plain(q, s, e);
	if (made->fd < 0 || socket_is_new(q, number, e) ||
		socket_deliver_datagrams(q, number, e) ||
		socket_options_set(made->fd, options, s->option_count, true, e) ||
		allow_rivals(q, made->fd, s, e) ||
		bind_name(made->fd, s->name, s->name_size, e))
		return -1;
	made->bound = true;
	return 0;
}

int socket_inet_make(struct socket_restore *q, size_t number, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];
	struct socket_made *made = &q->made[number - 1];

	if (socket_find_kept(q, number))
		return make_kept(q, number, e);
	if (s->type == SOCK_STREAM && s->state == IMAGE_SOCKET_CONNECTED)
		return make_connected(q, number, e);
	if (s->type == SOCK_STREAM && s->state == IMAGE_SOCKET_ENDED)
		return make_ended(q, s, made, e);
	if (s->type == SOCK_DGRAM)
		return make_udp(q, number, e);
	made->fd = new_shared(q, s, e);
	if (made->fd < 0 || socket_is_new(q, number, e))
		return -1;
	if (s->state == IMAGE_SOCKET_WAITING) /* gets its name in fill_backlog() */
		return 0;
	if (bind_name(made->fd, s->name, s->name_size, e))
		return -1;
	return s->state == IMAGE_SOCKET_LISTENING
		       ? socket_inet_listen(q, number, socket_backlog_needed(q, number), e)
		       : 0;
}

/* ---- when all are there ---- */

int socket_inet_connect_waiting(struct socket_restore *q, size_t number,
	const struct socket_as_creator *as, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];

	return connect_to(q, q->made[number - 1].fd, s, s->peer_name, s->peer_name_size, e);
}

int socket_inet_reset(struct socket_restore *q, size_t number, struct err *e)
{
	const struct linger now = {.l_onoff = 1};

	return socket_is_tcp(&q->s[number - 1]) &&
			       setsockopt(q->made[number - 1].other, SOL_SOCKET, SO_LINGER,
				       &now, sizeof(now))
		       ? err_set(e, errno, "cannot reset a connection")
		       : 0;
}

/* Options that were set for all while they were made. */
int socket_inet_put_options_back(struct socket_restore *q, size_t number, struct err *e)
{
	static const int shared[] = {SO_REUSEADDR, SO_REUSEPORT};
	const struct image_socket *s = &q->s[number - 1];
	const struct image_socket_option *options = &q->options[s->first_option];
	int one = 1, fd = q->made[number - 1].fd;

	for (size_t i = 0; i < ARRAY_SIZE(shared); i++) {
		int value =
			socket_option_value(options, s->option_count, SOL_SOCKET, shared[i]);

		if (setsockopt(fd, SOL_SOCKET, shared[i], &value, sizeof(value)))
			return err_set(e, errno, "cannot set the options of a socket");
	}
	if (socket_is_tcp(s) && s->protocol == IPPROTO_TCP &&
		setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one)))
		return err_set(e, errno, "cannot set the options of a socket");
	return 0;
}

/* ---- what waits in one ---- */

bool socket_inet_is_sender(const struct socket_restore *q, size_t from,
	const struct image_socket *to, const struct image_message *m)
{
	const struct image_socket *s = &q->s[from - 1];

	return s->family == to->family && q->made[from - 1].bound &&
	       socket_port(s->name) == socket_port(m->name) &&
	       (socket_is_any_address(s->name) || socket_same_address(s->name, m->name));
}

int socket_inet_sender(struct socket_restore *q, const struct image_socket *to,
	const struct image_message *m, struct err *e)
{
	int fd = socket(to->family, SOCK_DGRAM | SOCK_CLOEXEC, to->protocol);

	if (fd < 0)
		return err_set(e, errno, "cannot create a socket");
	if (bind_name(fd, m->name, m->name_size, e)) {
		close(fd);
		return -1;
	}
	return fd;
}

int socket_inet_destination(struct socket_restore *q, size_t number,
	const struct image_message *m, struct sockaddr_storage *address, struct err *e)
{
	return socket_transit(q, number, m, address);
}
