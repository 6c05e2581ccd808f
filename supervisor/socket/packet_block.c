/*
 * A lock is, as nft(8) shows it:
 *
 *	table inet trecr-... {
 *		set ip4 { type ipv4_addr . inet_service . ipv4_addr . inet_service; }
 *		set ip6 { type ipv6_addr . inet_service . ipv6_addr . inet_service; }
 *		chain input {
 *			type filter hook input priority 150;
 *			meta nfproto ipv4 meta l4proto tcp
 *				ip daddr . tcp dport . ip saddr . tcp sport @ip4 drop
 *			(the same of IPv6)
 *		}
 *		chain output {
 *			type filter hook output priority -300;
 *			meta nfproto ipv4 meta l4proto tcp
 *				ip saddr . tcp sport . ip daddr . tcp dport @ip4 drop
 *			(the same of IPv6)
 *		}
 *	}
 *
 * An element is a connection: our end, then the other. Where both are of this machine, what the
 * other end sends is dropped where it comes in, not where it goes out. Of translated addresses
 * (NAT), both chains see those that the socket has: what goes out is dropped before any
 * translation and before connections are tracked, what comes in behind it (enum
 * nf_ip_hook_priorities).
 */
#include "supervisor/socket/packet_block.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "lib/util.h"
#include "supervisor/socket/nft_messages.h"

/* The types of fields, for nft(8) to show sets by (its include/datatype.h); the kernel takes
 * any.
 */
#define TYPE_IPADDR  7
#define TYPE_IP6ADDR 8
#define TYPE_SERVICE 13
#define TYPE_BITS    6

#define PRIORITY_INPUT  150    /* behind NF_IP_PRI_NAT_SRC, 100 */
#define PRIORITY_OUTPUT (-300) /* before NF_IP_PRI_CONNTRACK, -200 */

/* Of a packet, and in a key: each field begins at a register of 32 bits. */
#define FIRST_REGISTER NFT_REG32_00
#define PORT_SIZE      2
#define PORT_ROOM      4

struct family {
	const char *set;
	uint8_t protocol;
	uint32_t type, address_size;
	uint32_t source, destination; /* where its addresses lie in a header */
};

static const struct family families[2] = {
	{"ip4", NFPROTO_IPV4, TYPE_IPADDR, 4, 12, 16},
	{"ip6", NFPROTO_IPV6, TYPE_IP6ADDR, 16, 8, 24},
};

static uint32_t key_size(const struct family *f)
{
	return 2 * (f->address_size + PORT_ROOM);
}

char *socket_lock_name(const uint8_t job_id[16])
{
	cleanup_buf struct buf name = {0};

	buf_printf(&name, "trecr-");
	for (int i = 0; i < 16; i++)
		buf_printf(&name, "%02x", job_id[i]);
	buf_add(&name, "", 1);
	return steal_ptr(name.data);
}

/* ---- rules ---- */

struct expression {
	size_t element, data;
};

static struct expression begin(struct nft_batch *b, const char *name)
{
	struct expression x = {.element = nft_open(b, NFTA_LIST_ELEM)};

	nft_put_text(b, NFTA_EXPR_NAME, name);
	x.data = nft_open(b, NFTA_EXPR_DATA);
	return x;
}

static void end(struct nft_batch *b, struct expression x)
{
	nft_close(b, x.data);
	nft_close(b, x.element);
}

/* Go on with the next only if @key of a packet is @value. */
static void match(struct nft_batch *b, uint32_t key, uint8_t value)
{
	struct expression x = begin(b, "meta");
	size_t data;

	nft_put_number(b, NFTA_META_KEY, key);
	nft_put_number(b, NFTA_META_DREG, FIRST_REGISTER);
	end(b, x);
	x = begin(b, "cmp");
	nft_put_number(b, NFTA_CMP_SREG, FIRST_REGISTER);
	nft_put_number(b, NFTA_CMP_OP, NFT_CMP_EQ);
	data = nft_open(b, NFTA_CMP_DATA);
	nft_put(b, NFTA_DATA_VALUE, &value, sizeof(value));
	nft_close(b, data);
	end(b, x);
}

/* Read a field of a packet into *@where, a register, and go on behind it. */
static void load(
	struct nft_batch *b, uint32_t *where, uint32_t base, uint32_t offset, uint32_t size)
{
	struct expression x = begin(b, "payload");

	nft_put_number(b, NFTA_PAYLOAD_DREG, *where);
	nft_put_number(b, NFTA_PAYLOAD_BASE, base);
	nft_put_number(b, NFTA_PAYLOAD_OFFSET, offset);
	nft_put_number(b, NFTA_PAYLOAD_LEN, size);
	end(b, x);
	*where += (size + 3) / 4;
}

static void drop(struct nft_batch *b)
{
	struct expression x = begin(b, "immediate");
	size_t data, verdict;

	nft_put_number(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = nft_open(b, NFTA_IMMEDIATE_DATA);
	verdict = nft_open(b, NFTA_DATA_VERDICT);
	nft_put_number(b, NFTA_VERDICT_CODE, NF_DROP);
	nft_close(b, verdict);
	nft_close(b, data);
	end(b, x);
}

static void add_rule(struct nft_batch *b, const char *table, const char *chain, bool incoming,
	const struct family *f)
{
	/* Both are at the beginning of the header of TCP. */
	const uint32_t source_port = 0, destination_port = PORT_SIZE;
	uint32_t where = FIRST_REGISTER;
	struct expression x;
	size_t rule;

	nft_message(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
	nft_put_text(b, NFTA_RULE_TABLE, table);
	nft_put_text(b, NFTA_RULE_CHAIN, chain);
	rule = nft_open(b, NFTA_RULE_EXPRESSIONS);
	match(b, NFT_META_NFPROTO, f->protocol);
	match(b, NFT_META_L4PROTO, IPPROTO_TCP);
	load(b, &where, NFT_PAYLOAD_NETWORK_HEADER, incoming ? f->destination : f->source,
		f->address_size);
	load(b, &where, NFT_PAYLOAD_TRANSPORT_HEADER, incoming ? destination_port : source_port,
		PORT_SIZE);
	load(b, &where, NFT_PAYLOAD_NETWORK_HEADER, incoming ? f->source : f->destination,
		f->address_size);
	load(b, &where, NFT_PAYLOAD_TRANSPORT_HEADER, incoming ? source_port : destination_port,
		PORT_SIZE);
	x = begin(b, "lookup");
	nft_put_text(b, NFTA_LOOKUP_SET, f->set);
	nft_put_number(b, NFTA_LOOKUP_SREG, FIRST_REGISTER);
	end(b, x);
	drop(b);
	nft_close(b, rule);
}

/* ---- a table ---- */

static void add_table(struct nft_batch *b, const char *table, uint32_t flags)
{
	nft_message(b, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	nft_put_text(b, NFTA_TABLE_NAME, table);
	nft_put_number(b, NFTA_TABLE_FLAGS, flags);
}

static void delete_table(struct nft_batch *b, const char *table)
{
	nft_message(b, NFT_MSG_DELTABLE, 0);
	nft_put_text(b, NFTA_TABLE_NAME, table);
}

static void add_set(struct nft_batch *b, const char *table, const struct family *f)
{
	uint32_t half = f->type << TYPE_BITS | TYPE_SERVICE;

	nft_message(b, NFT_MSG_NEWSET, NLM_F_CREATE);
	nft_put_text(b, NFTA_SET_TABLE, table);
	nft_put_text(b, NFTA_SET_NAME, f->set);
	nft_put_number(b, NFTA_SET_FLAGS, 0);
	nft_put_number(b, NFTA_SET_KEY_TYPE, half << 2 * TYPE_BITS | half);
	nft_put_number(b, NFTA_SET_KEY_LEN, key_size(f));
	nft_put_number(b, NFTA_SET_ID, 1 + (f - families));
}

static void add_chain(struct nft_batch *b, const char *table, const char *chain, bool incoming)
{
	size_t hook;

	nft_message(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	nft_put_text(b, NFTA_CHAIN_TABLE, table);
	nft_put_text(b, NFTA_CHAIN_NAME, chain);
	hook = nft_open(b, NFTA_CHAIN_HOOK);
	nft_put_number(b, NFTA_HOOK_HOOKNUM, incoming ? NF_INET_LOCAL_IN : NF_INET_LOCAL_OUT);
	nft_put_number(b, NFTA_HOOK_PRIORITY, incoming ? PRIORITY_INPUT : PRIORITY_OUTPUT);
	nft_close(b, hook);
	nft_put_text(b, NFTA_CHAIN_TYPE, "filter");
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		add_rule(b, table, chain, incoming, &families[i]);
}

static int fail(int code, struct err *e)
{
	static const char cannot[] =
		"a connection to the outside cannot be kept, as its packets cannot "
		"be held back meanwhile (nf_tables)";

	switch (code) {
	case EPERM:
	case EACCES:
		return err_set(e, 0, "%s: that takes CAP_NET_ADMIN over the network namespace",
			cannot);
	case ENOENT:
	case EOPNOTSUPP:
	case EAFNOSUPPORT:
	case EPROTONOSUPPORT:
		return err_set(e, 0, "%s: the kernel lacks it", cannot);
	default:
		return err_set(e, code, "%s", cannot);
	}
}

int socket_lock_begin(struct socket_lock *l, const char *name, struct err *e)
{
	struct nft_batch b = {0};
	uint32_t port = 0;
	int code;

	l->netlink = nft_socket(&port);
	if (l->netlink < 0)
		return fail(errno, e);
	l->table = name ? xstrdup(name) : xasprintf("trecr-checkpoint-%u", port);
	/* There may be one or not: together, this is a new one in both cases. */
	if (name) {
		add_table(&b, l->table, 0);
		delete_table(&b, l->table);
	}
	add_table(&b, l->table, name ? 0 : NFT_TABLE_F_OWNER);
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		add_set(&b, l->table, &families[i]);
	add_chain(&b, l->table, "input", true);
	add_chain(&b, l->table, "output", false);
	code = nft_commit(l->netlink, &b);
	buf_free(&b.out);
	if (!code)
		return 0;
	socket_lock_end(l);
	if (name)
		(void)socket_lock_remove(name, NULL); /* it may be there all the same */
	return fail(code, e);
}

/* ---- connections ---- */

/* As its packets have it, into @out: address and port. Returns the family. */
static const struct family *take_end(const uint8_t *name, struct buf *out)
{
	struct sockaddr_in6 in6 = {0};
	struct sockaddr_in in;
	bool mapped;

	memcpy(&in, name, sizeof(in));
	if (in.sin_family == AF_INET6)
		memcpy(&in6, name, sizeof(in6));
	mapped = IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr);
	if (in.sin_family == AF_INET)
		buf_add(out, &in.sin_addr, sizeof(in.sin_addr));
	else if (mapped)
		buf_add(out, &in6.sin6_addr.s6_addr[12], sizeof(in.sin_addr));
	else
		buf_add(out, &in6.sin6_addr, sizeof(in6.sin6_addr));
	buf_add(out, &in.sin_port, PORT_SIZE); /* at the same place in both */
	buf_grow(out, PORT_ROOM - PORT_SIZE);
	return &families[in.sin_family == AF_INET6 && !mapped];
}

int socket_lock_add(
	struct socket_lock *l, const uint8_t *name, const uint8_t *peer, struct err *e)
{
	cleanup_buf struct buf key = {0};
	const struct family *f = take_end(name, &key);
	struct nft_batch b = {0};
	size_t list, element, data;
	int code;

	(void)take_end(peer, &key); /* of the same family */
	nft_message(&b, NFT_MSG_NEWSETELEM, NLM_F_CREATE);
	nft_put_text(&b, NFTA_SET_ELEM_LIST_TABLE, l->table);
	nft_put_text(&b, NFTA_SET_ELEM_LIST_SET, f->set);
	list = nft_open(&b, NFTA_SET_ELEM_LIST_ELEMENTS);
	element = nft_open(&b, NFTA_LIST_ELEM);
	data = nft_open(&b, NFTA_SET_ELEM_KEY);
	nft_put(&b, NFTA_DATA_VALUE, key.data, key.len);
	nft_close(&b, data);
	nft_close(&b, element);
	nft_close(&b, list);
	code = nft_commit(l->netlink, &b);
	buf_free(&b.out);
	return code ? fail(code, e) : 0;
}

/* A packet is taken from the filter to its socket inside one read-side section of RCU
 * (ip_local_deliver_finish() and its callers), and this waits for all that have begun
 * (kernel/sched/membarrier.c). Where it is not to be had (nohz_full=), nothing else is. */
void socket_lock_settle(void)
{
	(void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
}

void socket_lock_end(struct socket_lock *l)
{
	util_close(&l->netlink); /* the table goes with it, if it is not a lasting one */
	l->netlink = -1;
	free(l->table);
	l->table = NULL;
}

int socket_lock_remove(const char *name, struct err *e)
{
	cleanup_fd int netlink = nft_socket(NULL);
	struct nft_batch b = {0};
	int code = netlink < 0 ? errno : 0;

	if (!code) {
		delete_table(&b, name);
		code = nft_commit(netlink, &b);
		buf_free(&b.out);
	}
	switch (code) {
	case 0:
		return 1;
	case ENOENT:
	case EOPNOTSUPP: /* there is no nf_tables here */
	case EPROTONOSUPPORT:
	case EAFNOSUPPORT:
		return 0;
	default:
		return err_set(e, code, "cannot remove table inet %s (nf_tables)", name);
	}
}
