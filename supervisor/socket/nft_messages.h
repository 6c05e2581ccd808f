/*
 * socket/nft.h - changes of the kernel's packet filter (nf_tables), as messages of netlink.
 * They are gathered in a batch, and take place together or not at all.
 *
 * <linux/netfilter/nf_tables.h> names messages and attributes; that numbers are in network byte
 * order is left to net/netfilter/nf_tables_api.c to tell.
 */
#ifndef SUPERVISOR_SOCKET_NFT_MESSAGES_H
#define SUPERVISOR_SOCKET_NFT_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"

/* All zero is a valid empty one; out is the caller's to free. */
struct nft_batch {
	struct buf out;
	size_t message; /* where the last one begins; 0: there is none yet */
	uint32_t count;
};

/* Begin a message (enum nf_tables_msg_types) about IPv4 and IPv6 alike; @flags: NLM_F_CREATE,
 * NLM_F_EXCL, NLM_F_APPEND. */
void nft_message(struct nft_batch *b, int type, int flags);

/* Attributes of it: of bytes, a number, a string; or of attributes, between open and close. */
void nft_put(struct nft_batch *b, int type, const void *data, size_t size);
void nft_put_number(struct nft_batch *b, int type, uint32_t value);
void nft_put_text(struct nft_batch *b, int type, const char *text);
size_t nft_open(struct nft_batch *b, int type);
void nft_close(struct nft_batch *b, size_t at);

/* A netlink socket for them, with an address (that is the owner of tables, and as long as it is
 * open nobody else's in this network namespace): into *port, unless that is NULL. -1 with errno
 * set. */
int nft_socket(uint32_t *port);

/* Have it done. 0, or an errno: then the socket is good for nothing else. */
int nft_commit(int netlink, struct nft_batch *b);

#endif
