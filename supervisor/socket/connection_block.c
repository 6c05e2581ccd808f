/*
 * A block is, as nft(8) shows it:
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
 * (NAT), both chains see the addresses that the socket has: what goes out is dropped before any
 * translation and before connections are tracked, what comes in behind it (enum
 * nf_ip_hook_priorities).
 */
#include "supervisor/socket/connection_block.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>
#include <linux/membarrier.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "lib/util.h"
#include "supervisor/socket/netfilter_library.h"

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

char *connection_block_name(const uint8_t job_id[16])
{
	cleanup_buf struct buf name = {0};

	buf_printf(&name, "trecr-");
	for (int i = 0; i < 16; i++)
		buf_printf(&name, "%02x", job_id[i]);
	buf_add(&name, "", 1);
	return steal_ptr(name.data);
}

/* ---- messages to the kernel, which take place together or not at all ---- */

#define TRANSACTION_SIZE 32768 /* several times what the longest one takes */

struct transaction {
	char data[TRANSACTION_SIZE];
	struct mnl_nlmsg_batch *messages;
	uint32_t number; /* of the last message */
};

static struct nlmsghdr *new_message(struct transaction *t)
{
	char *at = mnl_nlmsg_batch_current(t->messages);

	memset(at, 0, MNL_NLMSG_HDRLEN); /* the end of the one before ends here */
	return (struct nlmsghdr *)at;
}

static struct transaction *transaction_new(void)
{
	struct transaction *t = xcalloc(1, sizeof(*t));

	t->messages = mnl_nlmsg_batch_start(t->data, sizeof(t->data) / 2);
	BUG_ON(!t->messages);
	new_message(t);
	nftnl_batch_begin(mnl_nlmsg_batch_current(t->messages), ++t->number);
	BUG_ON(!mnl_nlmsg_batch_next(t->messages));
	return t;
}

static void transaction_free(struct transaction *t)
{
	mnl_nlmsg_batch_stop(t->messages);
	free(t);
}

/* A message (enum nf_tables_msg_types) about IPv4 and IPv6 alike, to be filled; then
 * end_message().
 * @flags: NLM_F_CREATE, NLM_F_EXCL, NLM_F_APPEND. */
static struct nlmsghdr *begin_message(struct transaction *t, int type, int flags)
{
	return nftnl_nlmsg_build_hdr(mnl_nlmsg_batch_current(t->messages), type, NFPROTO_INET,
		flags | NLM_F_ACK, ++t->number);
}

static void end_message(struct transaction *t)
{
	BUG_ON(!mnl_nlmsg_batch_next(t->messages));
}

static struct mnl_socket *open_netlink(void)
{
	struct mnl_socket *netlink = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	int code;

	if (netlink && !mnl_socket_bind(netlink, 0, MNL_SOCKET_AUTOPID))
		return netlink;
	code = errno;
	if (netlink)
		(void)mnl_socket_close(netlink);
	errno = code;
	return NULL;
}

/* The answers are there when send(2) returns: the kernel does what it is told meanwhile. Each
 * message but the first has one, in their order; who lacks the privilege gets one to the first.
 * -1 and errno: then the socket is good for nothing else. */
static int commit_transaction(struct mnl_socket *netlink, struct transaction *t)
{
	uint32_t port = mnl_socket_get_portid(netlink), last = t->number;
	char *answer = t->data + sizeof(t->data) / 2;
	size_t size;

	nftnl_batch_end(mnl_nlmsg_batch_current(t->messages), ++t->number);
	end_message(t);
	size = mnl_nlmsg_batch_size(t->messages);
	if (mnl_socket_sendto(netlink, mnl_nlmsg_batch_head(t->messages), size) !=
		(ssize_t)size)
		return -1;
	for (uint32_t number = 2; number <= last; number++) {
		ssize_t n = mnl_socket_recvfrom(netlink, answer, sizeof(t->data) / 2);

		if (n < 0 || mnl_cb_run(answer, n, 0, port, NULL, NULL) < 0)
			return -1;
	}
	return 0;
}

/* Send @t, and free it. */
static int commit_and_free(struct mnl_socket *netlink, struct transaction *t)
{
	int failed = commit_transaction(netlink, t), code = errno;

	transaction_free(t);
	errno = code;
	return failed;
}

/* ---- rules ---- */

static struct nftnl_expr *add_expression(struct nftnl_rule *rule, const char *name)
{
	struct nftnl_expr *x = nftnl_expr_alloc(name);

	BUG_ON(!x);
	nftnl_rule_add_expr(rule, x);
	return x;
}

/* Continue with the next only if @key of a packet is @value. */
static void match_key(struct nftnl_rule *rule, uint32_t key, uint8_t value)
{
	struct nftnl_expr *x = add_expression(rule, "meta");

	nftnl_expr_set_u32(x, NFTNL_EXPR_META_KEY, key);
	nftnl_expr_set_u32(x, NFTNL_EXPR_META_DREG, FIRST_REGISTER);
	x = add_expression(rule, "cmp");
	nftnl_expr_set_u32(x, NFTNL_EXPR_CMP_SREG, FIRST_REGISTER);
	nftnl_expr_set_u32(x, NFTNL_EXPR_CMP_OP, NFT_CMP_EQ);
	nftnl_expr_set_u8(x, NFTNL_EXPR_CMP_DATA, value);
}

/* Read a field of a packet into *@where, a register, and continue behind it. */
static void load_field(
	struct nftnl_rule *rule, uint32_t *where, uint32_t base, uint32_t offset, uint32_t size)
{
	struct nftnl_expr *x = add_expression(rule, "payload");

	nftnl_expr_set_u32(x, NFTNL_EXPR_PAYLOAD_DREG, *where);
	nftnl_expr_set_u32(x, NFTNL_EXPR_PAYLOAD_BASE, base);
	nftnl_expr_set_u32(x, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
	nftnl_expr_set_u32(x, NFTNL_EXPR_PAYLOAD_LEN, size);
	*where += (size + 3) / 4;
}

static void look_up_and_drop(struct nftnl_rule *rule, const char *set)
{
	struct nftnl_expr *x = add_expression(rule, "lookup");

	nftnl_expr_set_u32(x, NFTNL_EXPR_LOOKUP_SREG, FIRST_REGISTER);
	nftnl_expr_set_str(x, NFTNL_EXPR_LOOKUP_SET, set);
	x = add_expression(rule, "immediate");
	nftnl_expr_set_u32(x, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
	nftnl_expr_set_u32(x, NFTNL_EXPR_IMM_VERDICT, NF_DROP);
}

static void add_rule(struct transaction *t, const char *table, const char *chain, bool incoming,
	const struct family *f)
{
	/* Both are at the beginning of the header of TCP. */
	const uint32_t source_port = 0, destination_port = PORT_SIZE;
	uint32_t where = FIRST_REGISTER;
	struct nftnl_rule *rule = nftnl_rule_alloc();

	BUG_ON(!rule);
	nftnl_rule_set_str(rule, NFTNL_RULE_TABLE, table);
	nftnl_rule_set_str(rule, NFTNL_RULE_CHAIN, chain);
	match_key(rule, NFT_META_NFPROTO, f->protocol);
	match_key(rule, NFT_META_L4PROTO, IPPROTO_TCP);
	load_field(rule, &where, NFT_PAYLOAD_NETWORK_HEADER,
		incoming ? f->destination : f->source, f->address_size);
	load_field(rule, &where, NFT_PAYLOAD_TRANSPORT_HEADER,
		incoming ? destination_port : source_port, PORT_SIZE);
	load_field(rule, &where, NFT_PAYLOAD_NETWORK_HEADER,
		incoming ? f->source : f->destination, f->address_size);
	load_field(rule, &where, NFT_PAYLOAD_TRANSPORT_HEADER,
		incoming ? source_port : destination_port, PORT_SIZE);
	look_up_and_drop(rule, f->set);
	nftnl_rule_nlmsg_build_payload(
		begin_message(t, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND), rule);
	end_message(t);
	nftnl_rule_free(rule);
}

/* ---- a table ---- */

static void table_message(
	struct transaction *t, int type, int flags, const char *name, uint32_t table_flags)
{
	struct nftnl_table *table = nftnl_table_alloc();

	BUG_ON(!table);
	nftnl_table_set_str(table, NFTNL_TABLE_NAME, name);
	if (table_flags)
		nftnl_table_set_u32(table, NFTNL_TABLE_FLAGS, table_flags);
	nftnl_table_nlmsg_build_payload(begin_message(t, type, flags), table);
	end_message(t);
	nftnl_table_free(table);
}

static void add_table(struct transaction *t, const char *name, uint32_t flags)
{
	table_message(t, NFT_MSG_NEWTABLE, NLM_F_CREATE, name, flags);
}

static void delete_table(struct transaction *t, const char *name)
{
	table_message(t, NFT_MSG_DELTABLE, 0, name, 0);
}

static struct nftnl_set *new_set(const char *table, const struct family *f)
{
	struct nftnl_set *set = nftnl_set_alloc();

	BUG_ON(!set);
	nftnl_set_set_str(set, NFTNL_SET_TABLE, table);
	nftnl_set_set_str(set, NFTNL_SET_NAME, f->set);
	return set;
}

static void add_set(struct transaction *t, const char *table, const struct family *f)
{
	struct nftnl_set *set = new_set(table, f);
	uint32_t half = f->type << TYPE_BITS | TYPE_SERVICE;

	nftnl_set_set_u32(set, NFTNL_SET_FAMILY, NFPROTO_INET);
	nftnl_set_set_u32(set, NFTNL_SET_KEY_TYPE, half << 2 * TYPE_BITS | half);
	nftnl_set_set_u32(set, NFTNL_SET_KEY_LEN, key_size(f));
	nftnl_set_set_u32(set, NFTNL_SET_ID, 1 + (f - families));
	nftnl_set_nlmsg_build_payload(begin_message(t, NFT_MSG_NEWSET, NLM_F_CREATE), set);
	end_message(t);
	nftnl_set_free(set);
}

static void add_chain(struct transaction *t, const char *table, const char *name, bool incoming)
{
	struct nftnl_chain *chain = nftnl_chain_alloc();

	BUG_ON(!chain);
	nftnl_chain_set_str(chain, NFTNL_CHAIN_TABLE, table);
	nftnl_chain_set_str(chain, NFTNL_CHAIN_NAME, name);
	nftnl_chain_set_str(chain, NFTNL_CHAIN_TYPE, "filter");
	nftnl_chain_set_u32(
		chain, NFTNL_CHAIN_HOOKNUM, incoming ? NF_INET_LOCAL_IN : NF_INET_LOCAL_OUT);
	nftnl_chain_set_s32(
		chain, NFTNL_CHAIN_PRIO, incoming ? PRIORITY_INPUT : PRIORITY_OUTPUT);
	nftnl_chain_nlmsg_build_payload(
		begin_message(t, NFT_MSG_NEWCHAIN, NLM_F_CREATE), chain);
	end_message(t);
	nftnl_chain_free(chain);
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		add_rule(t, table, name, incoming, &families[i]);
}

static int block_failed(struct err *e)
{
	static const char cannot[] =
		"a connection to the outside cannot be kept, as its packets cannot "
		"be held back meanwhile (nf_tables)";

	switch (errno) {
	case EPERM:
	case EACCES:
		return err_set(e, 0,
			"%s: this requires CAP_NET_ADMIN over the network namespace", cannot);
	case ENOENT:
	case EOPNOTSUPP:
	case EAFNOSUPPORT:
	case EPROTONOSUPPORT:
		return err_set(e, 0, "%s: this kernel does not have it", cannot);
	default:
		return err_set(e, errno, "%s", cannot);
	}
}

int connection_block_begin(struct connection_block *l, const char *name, struct err *e)
{
	struct transaction *t;

	if (netfilter_load(e))
		return err_prefix(e, "a connection to the outside cannot be kept");
	l->netlink = open_netlink();
	if (!l->netlink)
		return block_failed(e);
	l->table = name ? xstrdup(name)
			: xasprintf("trecr-checkpoint-%u", mnl_socket_get_portid(l->netlink));
	t = transaction_new();
	/* There may be one or not: together, this is a new one in both cases. */
	if (name) {
		add_table(t, l->table, 0);
		delete_table(t, l->table);
	}
	add_table(t, l->table, name ? 0 : NFT_TABLE_F_OWNER);
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		add_set(t, l->table, &families[i]);
	add_chain(t, l->table, "input", true);
	add_chain(t, l->table, "output", false);
	if (!commit_and_free(l->netlink, t))
		return 0;
	block_failed(e);
	connection_block_end(l);
	if (name)
		(void)connection_block_remove(name, NULL); /* it may be there all the same */
	return -1;
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

int connection_block_add(
	struct connection_block *l, const uint8_t *name, const uint8_t *peer, struct err *e)
{
	cleanup_buf struct buf key = {0};
	const struct family *f = take_end(name, &key);
	struct nftnl_set_elem *element = nftnl_set_elem_alloc();
	struct nftnl_set *set = new_set(l->table, f);
	struct transaction *t = transaction_new();

	BUG_ON(!element);
	(void)take_end(peer, &key); /* of the same family */
	nftnl_set_elem_set(element, NFTNL_SET_ELEM_KEY, key.data, key.len);
	nftnl_set_elem_add(set, element);
	nftnl_set_elems_nlmsg_build_payload(
		begin_message(t, NFT_MSG_NEWSETELEM, NLM_F_CREATE), set);
	end_message(t);
	nftnl_set_free(set); /* and the element */
	return commit_and_free(l->netlink, t) ? block_failed(e) : 0;
}

/* A packet is taken from the filter to its socket inside one read-side section of RCU
 * (ip_local_deliver_finish() and its callers), and this waits for all that have begun
 * (kernel/sched/membarrier.c). Where it is not available (nohz_full=), nothing else is. */
void connection_block_await_packets(void)
{
	(void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
}

void connection_block_end(struct connection_block *l)
{
	if (l->netlink)
		(void)mnl_socket_close(
			l->netlink); /* the table goes with it, if it is not a lasting one */
	l->netlink = NULL;
	free(l->table);
	l->table = NULL;
}

int connection_block_remove(const char *name, struct err *e)
{
	struct mnl_socket *netlink;
	int code;

	if (netfilter_load(e))
		return err_prefix(e, "cannot remove table inet %s", name);
	netlink = open_netlink();
	code = errno;
	if (netlink) {
		struct transaction *t = transaction_new();

		delete_table(t, name);
		code = commit_and_free(netlink, t) ? errno : 0;
		(void)mnl_socket_close(netlink);
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
