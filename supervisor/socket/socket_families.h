/*
 * socket/socket_families.h - facts about families of sockets and their
 * addresses.
 *
 * How to add a family: a row in the table of socket_families.c (struct socket_family), whose functions
 * are in FAMILY_dump.c (socket_FAMILY_look() refuses what its queues hold if that cannot come back)
 * and FAMILY_restore.c. Its options are rows in socket_options.c. The family is removed from the
 * list unsupported[] in socket_families.c, and its refusal from t/victim/refuse_sockets.c and t/refuse.t.
 * Then a victim (t/victim/), and its row in doc/kernel-state.md.
 */
#ifndef SUPERVISOR_SOCKET_SOCKET_FAMILIES_H
#define SUPERVISOR_SOCKET_SOCKET_FAMILIES_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "ckpt/image.h"
#include "lib/err.h"
#include "lib/util.h"
#include "supervisor/fd/fd.h"

struct socket_as_creator;
struct socket_dump;
struct socket_restore;

/* For which sockets an option is (a row of socket_options.c). */
enum {
	SOCKET_TAKES_UNIX = 1,
	SOCKET_TAKES_TCP = 2,
	SOCKET_TAKES_UDP = 4,
	SOCKET_TAKES_NETLINK = 8,
	SOCKET_TAKES_V4 = 16, /* TCP and UDP over IPv4; IPv6 sockets have these, too */
	SOCKET_TAKES_V6 = 32,
	SOCKET_TAKES_UDP4 = 64, /* UDP over IPv4 or IPv6; over IPv6 */
	SOCKET_TAKES_UDP6 = 128,
	SOCKET_TAKES_RAW = 256, /* and ICMP sockets (man 7 icmp) */
	SOCKET_TAKES_PACKET = 512,
};

enum socket_family_trait {
	SOCKET_INET = 1, /* over IP: its addresses have ports, its streams are TCP */
	SOCKET_OF_MACHINE =
		2, /* it works across network namespaces: its own is not looked at */
	SOCKET_HAS_MESSAGES = 4, /* what waits in it is saved, and sent to it again */
	SOCKET_IS_FIRST = 8,     /* made before all others */
	SOCKET_SHUT_BY_END = 16, /* a connection is shut down by the end of its other end */
};

/* A function that is not there (NULL) is of something that the family does not have, unless it says
 * more. An error is the reason only. */
struct socket_family {
	int family;
	const char *name; /* "AF_UNIX" */
	unsigned traits;  /* enum socket_family_trait */

	/* Whether such a socket can be saved at all; and why others cannot: NULL: by protocol. */
	bool (*is_known)(int type, int protocol);
	const char *why_unknown;
	/* SOCKET_TAKES_... */
	unsigned (*options)(const struct image_socket *s);

	/* ---- in words ---- */

	const char *(*kind)(const struct image_socket *s); /* "TCP" */
	/* An address of the family; false: it is none. */
	bool (*show_address)(const uint8_t *name, uint32_t size, struct buf *out);
	/* The name of such a socket. NULL: it is an address. */
	void (*show_name)(const struct image_socket *s, struct buf *out);

	/* ---- checkpoint ---- */

	/* State, names, what the kernel says of the other end. */
	int (*look)(struct fd_dump *d, struct socket_dump *k, struct err *e);
	/* To which other one it belongs; of a connection to the outside, what is to become of it. */
	int (*relate)(struct fd_dump *d, struct socket_dump *k, struct err *e);

	/* ---- restart ---- */

	/* Before anything is made: whether it can be made here. */
	int (*check)(const struct image_socket *s, struct err *e);
	/* Make socket @number (from 1), with its other end if it has one. */
	int (*make)(struct socket_restore *q, size_t number, struct err *e);
	/* Listen at it, with another @backlog perhaps than before. */
	int (*listen)(struct socket_restore *q, size_t number, uint32_t backlog, struct err *e);
	/* Connect @number, which waits to be accepted, to its listener. */
	int (*connect_waiting)(struct socket_restore *q, size_t number,
		const struct socket_as_creator *as, struct err *e);
	/* Connect datagram socket @number to its peer in the tree. NULL: to the peer's address. */
	int (*connect_peer)(struct socket_restore *q, size_t number, struct err *e);
	/* Have the other end of @number go with an error, as it did: called before it is closed. */
	int (*reset)(struct socket_restore *q, size_t number, struct err *e);
	/* What is to be done to @number before its last options are set, and when all have them. */
	int (*before_options)(struct socket_restore *q, size_t number, struct err *e);
	int (*finish)(struct socket_restore *q, size_t number, struct err *e);

	/* Of datagrams (SOCKET_HAS_MESSAGES). Whether socket number @from can send message @m to
	 * @to, as it was sent: */
	bool (*is_sender)(const struct socket_restore *q, size_t from,
		const struct image_socket *to, const struct image_message *m);
	/* A socket that can, if there is none, the caller's to close; -1. */
	int (*sender)(struct socket_restore *q, const struct image_socket *to,
		const struct image_message *m, struct err *e);
	/* Where to @m is sent for @number to have it: the size of @address; -1. */
	int (*destination)(struct socket_restore *q, size_t number,
		const struct image_message *m, struct sockaddr_storage *address, struct err *e);
};

/* The row of a family; NULL: it is not known. */
const struct socket_family *socket_family_row(int family);
/* The row of a socket that is known: fd_socket_check() and socket_restore_begin() have seen to it. */
const struct socket_family *socket_family_of(const struct image_socket *s);
bool socket_has_trait(const struct image_socket *s, enum socket_family_trait trait);

/* Whether such a socket can be saved at all. */
bool socket_is_known(int family, int type, int protocol);
/* Whether it is a socket for packets of a protocol (SOCK_RAW) or of ICMP (man 7 icmp),
 * which holds no connection and whose queue cannot be filled again. */
bool socket_is_raw(const struct image_socket *s);
/* Whether it is a TCP socket, or one of Multipath TCP. */
bool socket_is_tcp(const struct image_socket *s);
/* Say in @e why @fd, one of another kind, cannot; returns -1. */
int socket_refuse(int fd, struct err *e);

/* How many of the @count sockets @s wait to be accepted by number @listener, or by another one
 * at the same address, to which of which they come is the kernel's choice (SO_REUSEPORT). */
uint32_t socket_waiting_at(const struct image_socket *s, size_t count, size_t listener);

/* Whether the name of a UNIX socket leads to a file. */
bool socket_name_is_file(const uint8_t *name, uint32_t size);
/* The path in it, the caller's to free. */
char *socket_name_path(const uint8_t *name, uint32_t size);

/* "127.0.0.1:80", "/run/x", "@abstract" */
void socket_name_show(const uint8_t *name, uint32_t size, struct buf *out);
/* The name of @s, of whatever family. */
void socket_show_name(const struct image_socket *s, struct buf *out);

/* Whether two addresses are the same, be they written as IPv4 or as IPv6. */
bool socket_same_address(const uint8_t *a, const uint8_t *b);
bool socket_is_any_address(const uint8_t *name);
uint16_t socket_port(const uint8_t *name);
/* Whether the IP address is one of this machine; and the port of it free. */
bool socket_is_local(const uint8_t *name, uint32_t size);
bool socket_is_free(const uint8_t *name, uint32_t size, int type, int protocol);

/* The row of sockets in the table of kinds of open files. */
FD_ROW(fd_socket);

#endif
