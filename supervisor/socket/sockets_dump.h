/*
 * socket/sockets_dump.h - sockets at a checkpoint: what is gathered of each while the
 * descriptors of all processes are looked at (socket/sockets_dump.c), and what a family adds to
 * it when all are known.
 */
#ifndef SUPERVISOR_SOCKET_SOCKETS_DUMP_H
#define SUPERVISOR_SOCKET_SOCKETS_DUMP_H

#include <sys/socket.h>

#include "supervisor/fd/fd.h"
#include "supervisor/socket/queue_peek.h"

struct socket_dump {
	struct image_socket s;
	int fd; /* a duplicate */
	uint64_t inode;
	uint32_t object;     /* its number */
	pid_t pid;           /* a process of the program that has it open, or any */
	struct buf options;  /* struct image_socket_option */
	struct buf messages; /* struct image_message, rights counted from this socket's first */
	struct buf rights;   /* uint32_t: descriptions */
	struct buf
		waiting; /* uint32_t: inodes of the sockets in a listening socket's backlog */
	bool looked_at;
	bool closed_end; /* its other end is closed, or waits to be accepted */
	bool orphaned;   /* it was closed, and what it has sent may be under way still: */
	uint32_t unsent_by_orphan; /* bytes */
	bool halved;               /* the kernel has no other end of it */
	uint32_t peer_inode;
	bool kept; /* a connection to the outside that is to continue: */
	struct image_tcp tcp;
	uint32_t waiting_count, waiting_found; /* of a listening TCP socket */
};

/* Number @number (from 1) of those found so far; valid until the next one is found. */
struct socket_dump *socket_dump_at(const struct fd_dump *d, uint32_t number);
uint32_t socket_dump_count(const struct fd_dump *d);
/* The number of the one with this inode, 0 when there is none. */
uint32_t socket_dump_find(const struct fd_dump *d, uint64_t inode);

/* When all descriptors are known: look at all sockets, also at sockets in messages. */
int socket_dump_all(struct fd_dump *d, struct err *e);
/* After it: the notes. @description: the description that has socket @number. */
void socket_dump_write(struct fd_dump *d);
/* The program resumes: so do connections that stood still to be kept. */
void socket_dump_resume(struct fd_dump *d);
/* Or it is to be ended: those stay blocked until a restart from a checkpoint of job @job_id, or
 * until connection_block_remove(). Whether there are any. */
int socket_dump_hold(struct fd_dump *d, const uint8_t job_id[16], struct err *e);
bool socket_dump_keeps(const struct fd_dump *d);
/* It has been ended, and its sockets have no user but us. */
void socket_dump_let_go(struct fd_dump *d);
void socket_dump_free(struct fd_dump *d);

/* ---- by family: functions of its row (socket_families.h) ---- */

/* State, names, what the kernel says of the other end. */
int socket_unix_look(struct fd_dump *d, struct socket_dump *k, struct err *e);
int socket_inet_look(struct fd_dump *d, struct socket_dump *k, struct err *e);
/* The same for a raw or an ICMP socket, by socket_inet_look(). */
int socket_raw_look(struct fd_dump *d, struct socket_dump *k, struct err *e);
/* Its own address, if it has a port, and its peer's, if it has one. */
int socket_get_names(struct socket_dump *k, struct err *e);
int socket_netlink_look(struct fd_dump *d, struct socket_dump *k, struct err *e);
int socket_packet_look(struct fd_dump *d, struct socket_dump *k, struct err *e);

/* To which other one it belongs; of a connection to the outside, what is to become of it. */
int socket_unix_relate(struct fd_dump *d, struct socket_dump *k, struct err *e);
int socket_inet_relate(struct fd_dump *d, struct socket_dump *k, struct err *e);

/* When all are related: bring to a connection what its other end in the tree has sent. */
int socket_inet_await_arrival(struct fd_dump *d, struct socket_dump *k, struct err *e);
/* Behind what waits in it: how far a connection has come that is kept, and what it has sent. */
int socket_inet_save_kept(struct fd_dump *d, struct socket_dump *k, struct err *e);
int socket_inet_check_backlog(struct fd_dump *d, struct socket_dump *k, struct err *e);

#endif
