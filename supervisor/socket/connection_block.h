/*
 * socket/connection_block.h - hold a TCP connection still: what comes in by it and what goes
 * out by it is dropped by the kernel's packet filter, and sent again by TCP when that is over.
 * Takes CAP_NET_ADMIN over the network namespace.
 *
 * A block is a table of nf_tables. It goes with the process that made it, however that ends;
 * or, when it is a lasting one, stays until it is removed by its name.
 */
#ifndef SUPERVISOR_SOCKET_CONNECTION_BLOCK_H
#define SUPERVISOR_SOCKET_CONNECTION_BLOCK_H

#include <stdint.h>

#include "lib/err.h"

struct mnl_socket;

/* All zero is none. */
struct connection_block {
	struct mnl_socket *netlink;
	char *table;
};

/* The name of the lasting block of connections that job @job_id has: its table is
 * "inet trecr-" and the id in hexadecimal. One job has one, whatever its checkpoint, as it can
 * come back from any, and be elsewhere in between. The caller's to free. */
char *connection_block_name(const uint8_t job_id[16]);

/* A block of nothing yet. With @name it lasts, in the place of the table that has
 * that name; NULL: it ends with us. */
int connection_block_begin(struct connection_block *l, const char *name, struct err *e);
/* The connection between @name and @peer (IPv4, IPv6, or the one written as the other). */
int connection_block_add(
	struct connection_block *l, const uint8_t *name, const uint8_t *peer, struct err *e);
/* From here on nothing arrives that had passed the filter before. */
void connection_block_await_packets(void);
/* End a block that is not lasting; a lasting one stays. */
void connection_block_end(struct connection_block *l);

/* Remove the lasting block @name. 1: done, 0: there is none, -1: failure. */
int connection_block_remove(const char *name, struct err *e);

#endif
