/*
 * socket/sockets_restore.h - sockets at a restart. All is done by the first process, before it
 * makes the others: sockets are made one by one, with their other ends, as descriptors name
 * them; when all are there, what waited in them is sent again, and they get their final state.
 */
#ifndef SUPERVISOR_SOCKET_SOCKETS_RESTORE_H
#define SUPERVISOR_SOCKET_SOCKETS_RESTORE_H

#include <sys/socket.h>

#include "supervisor/fd/fd.h"
#include "supervisor/socket/as_creator.h"

/* What is made of a socket. */
struct socket_made {
	int fd;      /* -1: nothing yet */
	int other;   /* where the other end no longer exists: that end, for now; or -1 */
	int sender;  /* the socket to send what waited in it from; -1: find one by its name */
	size_t pair; /* of datagram sockets: number of the one it was made with; 0: none */
	char *root;  /* its name leads to a file below this directory, and nowhere else */
	bool bound;  /* of UDP: it has its address */
	struct sockaddr_storage transit; /* of UDP: where it is sent what waited in it */
};

struct socket_restore {
	struct fd_restore *r;
	const struct image_socket *s;
	size_t count;
	const struct image_socket_option *options;
	const struct image_message *messages;
	const uint32_t *rights;
	const struct image_tcp *tcp;
	size_t tcp_count;
	struct socket_made *made; /* by number less 1 */
	unsigned roots;           /* made->root, and others, so far */
};

int socket_restore_begin(struct fd_restore *r, struct err *e);
int socket_restore_finish(struct fd_restore *r, struct err *e);
void socket_restore_end(struct fd_restore *r);

/* ---- between the files ---- */

/* Make socket @number (from 1), unless it is there. */
int socket_make(struct socket_restore *q, size_t number, struct err *e);
/* It has been made, and neither listens nor is connected yet, or has nothing under way: poll(2)
 * says that it is ready. */
int socket_is_new(struct socket_restore *q, size_t number, struct err *e);
/* How far the connection to the outside had come that @number is; NULL: it is none. */
const struct image_tcp *socket_find_kept(const struct socket_restore *q, size_t number);
/* How many connections have to have room in the backlog of @listener while it is filled. */
uint32_t socket_backlog_needed(const struct socket_restore *q, size_t listener);

/* A new socket of the kind of @s, lifted; socket_new() sets the options that come early. */
int socket_new_plain(struct socket_restore *q, const struct image_socket *s, struct err *e);
int socket_new(struct socket_restore *q, const struct image_socket *s, struct err *e);

/* Send again what waited in socket @number, unless that was done before it was bound. */
int socket_deliver(struct socket_restore *q, size_t number, struct err *e);
/* The same for one of UDP that is not bound yet. */
int socket_deliver_datagrams(struct socket_restore *q, size_t number, struct err *e);

/* ---- by family: functions of its row (socket_families.h) ---- */

int socket_unix_make(struct socket_restore *q, size_t number, struct err *e);
int socket_inet_make(struct socket_restore *q, size_t number, struct err *e);
int socket_netlink_make(struct socket_restore *q, size_t number, struct err *e);
int socket_packet_make(struct socket_restore *q, size_t number, struct err *e);

int socket_unix_listen(
	struct socket_restore *q, size_t number, uint32_t backlog, struct err *e);
int socket_inet_listen(
	struct socket_restore *q, size_t number, uint32_t backlog, struct err *e);

int socket_unix_connect_waiting(struct socket_restore *q, size_t number,
	const struct socket_as_creator *as, struct err *e);
int socket_inet_connect_waiting(struct socket_restore *q, size_t number,
	const struct socket_as_creator *as, struct err *e);
int socket_unix_connect_peer(struct socket_restore *q, size_t number, struct err *e);

int socket_unix_reset(struct socket_restore *q, size_t number, struct err *e);
int socket_inet_reset(struct socket_restore *q, size_t number, struct err *e);
int socket_unix_set_early(struct socket_restore *q, size_t number, struct err *e);
int socket_inet_put_options_back(struct socket_restore *q, size_t number, struct err *e);

/* Give UNIX socket @number the name of its file that it had been renamed to. */
int socket_unix_reveal(struct socket_restore *q, size_t number, struct err *e);
/* It has all of its options, and receives from now on. */
int socket_packet_open(struct socket_restore *q, size_t number, struct err *e);

bool socket_unix_is_sender(const struct socket_restore *q, size_t from,
	const struct image_socket *to, const struct image_message *m);
bool socket_inet_is_sender(const struct socket_restore *q, size_t from,
	const struct image_socket *to, const struct image_message *m);
int socket_unix_sender(struct socket_restore *q, const struct image_socket *to,
	const struct image_message *m, struct err *e);
int socket_inet_sender(struct socket_restore *q, const struct image_socket *to,
	const struct image_message *m, struct err *e);
int socket_unix_destination(struct socket_restore *q, size_t number,
	const struct image_message *m, struct sockaddr_storage *address, struct err *e);
int socket_inet_destination(struct socket_restore *q, size_t number,
	const struct image_message *m, struct sockaddr_storage *address, struct err *e);

#endif
