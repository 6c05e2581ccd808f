/*
 * socket/packet_block.h - hold a TCP connection still: what comes in by it and what goes out by
 * it is dropped by the kernel's packet filter, and sent again by TCP when that is over. Takes
 * CAP_NET_ADMIN over the network namespace.
 *
 * A lock is a table of nf_tables. It goes with who has made it, however that ends; or, when it
 * is a lasting one, stays until it is removed by its name.
 */
#ifndef SUPERVISOR_SOCKET_PACKET_BLOCK_H
#define SUPERVISOR_SOCKET_PACKET_BLOCK_H

#include <stdint.h>

#include "lib/err.h"

struct mnl_socket;

/* All zero is none. */
struct packet_block {
	struct mnl_socket *netlink;
	char *table;
};

/* The name of the lasting lock of connections that job @job_id has: its table is
 * "inet trecr-" and the id in hexadecimal. One job has one, whatever its checkpoint, as it can
 * come back from any, and be elsewhere in between. The caller's to free. */
char *packet_block_name(const uint8_t job_id[16]);

/* A lock on nothing yet. @name is that of a lasting one, which takes the place of what has that
 * name; NULL: it ends with us. */
int packet_block_begin(struct packet_block *l, const char *name, struct err *e);
/* The connection between @name and @peer (IPv4, IPv6, or the one written as the other). */
int packet_block_add(
	struct packet_block *l, const uint8_t *name, const uint8_t *peer, struct err *e);
/* From here on nothing arrives that had passed the filter before. */
void packet_block_settle(void);
/* The end of one that is not lasting; a lasting one is let be. */
void packet_block_end(struct packet_block *l);

/* Remove the lasting lock @name. 1: done, 0: there is none, -1: failure. */
int packet_block_remove(const char *name, struct err *e);

#endif
