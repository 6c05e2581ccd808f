/*
 * socket/sock_diag.h - what the kernel tells about sockets that no call on their descriptors
 * does (man sock_diag).
 */
#ifndef SUPERVISOR_SOCKET_SOCK_DIAG_H
#define SUPERVISOR_SOCKET_SOCK_DIAG_H

#include <linux/packet_diag.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "lib/err.h"
#include "lib/util.h"

struct unix_facts {
	uint8_t state; /* TCP_ESTABLISHED, TCP_LISTEN, TCP_CLOSE */
	uint8_t shutdown;
	bool has_peer;
	uint32_t peer; /* its inode; 0: it is closed, or not accepted yet */
	bool has_file;
	uint32_t file_dev, file_inode; /* of the file behind the name */
	uint32_t backlog;
	struct buf
		waiting; /* uint32_t: inodes of sockets that wait to be accepted; 0: closed */
};

/* Of the UNIX socket @inode. The caller frees ->waiting. */
int socket_diag_unix(uint32_t inode, struct unix_facts *out, struct err *e);

struct tcp_facts {
	bool found;
	uint32_t inode;          /* 0: nobody has it open */
	bool orphan;             /* it was closed */
	uint32_t unread, unsent; /* bytes; what is not acknowledged counts as unsent */
};

/* Of the TCP connection with these ends. */
int socket_diag_tcp(const struct sockaddr_storage *local, const struct sockaddr_storage *remote,
	struct tcp_facts *out, struct err *e);

struct packet_facts {
	bool has_ring;
	struct buf memberships; /* struct packet_diag_mclist */
};

/* Of the packet socket @inode of this network namespace. The caller frees ->memberships. */
int socket_diag_packet(uint32_t inode, struct packet_facts *out, struct err *e);

#endif
