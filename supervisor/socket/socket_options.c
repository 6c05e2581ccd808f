/*
 * socket_options.c - the table, then saving, then setting, and the options that need a
 * privilege or more room than allowed.
 */
#include "supervisor/socket/socket_options.h"

#include <errno.h>
#include <linux/icmp.h>
#include <linux/if_packet.h>
#include <linux/in6.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "supervisor/socket/long_options.h"
#include "supervisor/socket/socket_families.h"

#define SOL_RAW            255
#define SOL_UDPLITE        136
#define UDPLITE_SEND_CSCOV 10 /* net/udplite.h */
#define UDPLITE_RECV_CSCOV 11

/* Constants that headers of Debian 12 lack are given as numbers, with their names. */

enum {
	EARLY = 1,    /* before the socket gets its name */
	NEW_ONLY = 2, /* of a connection it shows something else */
	SIZE = 4,     /* SO_SNDBUF, SO_RCVBUF: kept twice as large as set */
	NAME = 8,     /* a string */
};

/* For which sockets. */
enum {
	UNIX = SOCKET_TAKES_UNIX,
	TCP = SOCKET_TAKES_TCP,
	UDP = SOCKET_TAKES_UDP,
	NETLINK = SOCKET_TAKES_NETLINK,
	V4 = SOCKET_TAKES_V4,
	V6 = SOCKET_TAKES_V6,
	UDP4 = SOCKET_TAKES_UDP4,
	UDP6 = SOCKET_TAKES_UDP6,
	RAW = SOCKET_TAKES_RAW,
	PACKET = SOCKET_TAKES_PACKET,
	INET = TCP | UDP | RAW,
	ALL = UNIX | INET | NETLINK | PACKET,
};

#define LOCK_OPTION 72 /* SO_BUF_LOCK, since 5.14: 1 send, 2 receive */

/* The option that sets the size of a buffer beyond the limit: takes a privilege. */
static int forcing_option(int name)
{
	return name == SO_SNDBUF ? SO_SNDBUFFORCE : SO_RCVBUFFORCE;
}

static const struct row {
	int level, name;
	unsigned sockets;
	unsigned flags;
	size_t size;
} rows[] = {
	{SOL_SOCKET, SO_DEBUG, ALL, 0, sizeof(int)},
	{SOL_SOCKET, SO_REUSEADDR, ALL, EARLY, sizeof(int)},
	{SOL_SOCKET, SO_REUSEPORT, INET, EARLY, sizeof(int)},
	{SOL_SOCKET, SO_BINDTODEVICE, ALL, EARLY | NAME, 16},
	{SOL_SOCKET, SO_BROADCAST, ALL, 0, sizeof(int)},
	{SOL_SOCKET, SO_KEEPALIVE, ALL, 0, sizeof(int)},
	{SOL_SOCKET, SO_OOBINLINE, ALL, 0, sizeof(int)},
	{SOL_SOCKET, SO_PRIORITY, ALL, 0, sizeof(int)},
	{SOL_SOCKET, SO_LINGER, ALL, 0, sizeof(struct linger)},
	{SOL_SOCKET, SO_DONTROUTE, ALL, 0, sizeof(int)},
	{SOL_SOCKET, SO_NO_CHECK, ALL, 0, sizeof(int)},
	{SOL_SOCKET, SO_PASSCRED, UNIX | NETLINK, 0, sizeof(int)},
	{SOL_SOCKET, SO_PASSSEC, UNIX | NETLINK, 0, sizeof(int)},
	{SOL_SOCKET, 76 /* SO_PASSPIDFD */, UNIX | NETLINK, 0, sizeof(int)},
	{SOL_SOCKET, 83 /* SO_PASSRIGHTS */, UNIX, 0, sizeof(int)},
	{SOL_SOCKET, SO_RCVTIMEO, ALL, 0, sizeof(struct timeval)},
	{SOL_SOCKET, SO_SNDTIMEO, ALL, 0, sizeof(struct timeval)},
	{SOL_SOCKET, SO_TIMESTAMP, ALL, 0, sizeof(int)},
	{SOL_SOCKET, SO_TIMESTAMPNS, ALL, 0, sizeof(int)},
	{SOL_SOCKET, SO_TIMESTAMPING, ALL, 0, 8},
	/* Behind the old ones, whose layout they change. */
	{SOL_SOCKET, 63 /* SO_TIMESTAMP_NEW */, ALL, 0, sizeof(int)},
	{SOL_SOCKET, 64 /* SO_TIMESTAMPNS_NEW */, ALL, 0, sizeof(int)},
	{SOL_SOCKET, 65 /* SO_TIMESTAMPING_NEW */, ALL, 0, 8},
	{SOL_SOCKET, SO_TXTIME, INET, 0, 8},
	{SOL_SOCKET, SO_MARK, ALL, 0, sizeof(int)},
	{SOL_SOCKET, SO_RXQ_OVFL, ALL, 0, sizeof(int)},
	{SOL_SOCKET, SO_WIFI_STATUS, ALL, 0, sizeof(int)},
	{SOL_SOCKET, SO_NOFCS, ALL, 0, sizeof(int)},
	{SOL_SOCKET, SO_SELECT_ERR_QUEUE, ALL, 0, sizeof(int)},
	{SOL_SOCKET, SO_BUSY_POLL, ALL, 0, sizeof(int)},
	{SOL_SOCKET, 69 /* SO_PREFER_BUSY_POLL */, ALL, 0, sizeof(int)},
	{SOL_SOCKET, 70 /* SO_BUSY_POLL_BUDGET */, ALL, 0, sizeof(int)},
	{SOL_SOCKET, SO_MAX_PACING_RATE, INET, 0, sizeof(uint32_t)},
	{SOL_SOCKET, SO_ZEROCOPY, UNIX | INET, 0, sizeof(int)},
	{SOL_SOCKET, 75 /* SO_RCVMARK */, ALL, 0, sizeof(int)},
	{SOL_SOCKET, 82 /* SO_RCVPRIORITY */, ALL, 0, sizeof(int)},
	{SOL_SOCKET, SO_SNDBUF, ALL, SIZE, sizeof(int)},
	{SOL_SOCKET, SO_RCVBUF, ALL, SIZE, sizeof(int)},
	{SOL_SOCKET, LOCK_OPTION, ALL, 0, sizeof(int)}, /* behind the sizes, which set it */
	{SOL_SOCKET, SO_RCVLOWAT, ALL, 0, sizeof(int)},
	{SOL_SOCKET, SO_PEEK_OFF, ALL, 0, sizeof(int)},
	{SOL_SOCKET, 74 /* SO_TXREHASH */, INET, 0, sizeof(int)},
	{SOL_SOCKET, 84 /* SO_INQ */, UNIX, 0, sizeof(int)},
	{SOL_SOCKET, SO_LOCK_FILTER, ALL, 0, sizeof(int)},

	{IPPROTO_TCP, TCP_NODELAY, TCP, 0, sizeof(int)},
	{IPPROTO_TCP, TCP_MAXSEG, TCP, EARLY | NEW_ONLY, sizeof(int)},
	{IPPROTO_TCP, TCP_CORK, TCP, 0, sizeof(int)},
	{IPPROTO_TCP, TCP_KEEPIDLE, TCP, 0, sizeof(int)},
	{IPPROTO_TCP, TCP_KEEPINTVL, TCP, 0, sizeof(int)},
	{IPPROTO_TCP, TCP_KEEPCNT, TCP, 0, sizeof(int)},
	{IPPROTO_TCP, TCP_SYNCNT, TCP, 0, sizeof(int)},
	{IPPROTO_TCP, TCP_LINGER2, TCP, 0, sizeof(int)},
	{IPPROTO_TCP, TCP_DEFER_ACCEPT, TCP, NEW_ONLY, sizeof(int)},
	{IPPROTO_TCP, TCP_WINDOW_CLAMP, TCP, NEW_ONLY, sizeof(int)},
	{IPPROTO_TCP, TCP_CONGESTION, TCP, NAME, 16},
	{IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, TCP, 0, sizeof(int)},
	{IPPROTO_TCP, TCP_USER_TIMEOUT, TCP, 0, sizeof(int)},
	{IPPROTO_TCP, TCP_FASTOPEN, TCP, NEW_ONLY, sizeof(int)},
	{IPPROTO_TCP, TCP_NOTSENT_LOWAT, TCP, 0, sizeof(int)},
	{IPPROTO_TCP, TCP_SAVE_SYN, TCP, 0, sizeof(int)},
	{IPPROTO_TCP, TCP_FASTOPEN_CONNECT, TCP, NEW_ONLY, sizeof(int)},
	{IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, TCP, 0, sizeof(int)},
	{IPPROTO_TCP, TCP_INQ, TCP, 0, sizeof(int)},
	{IPPROTO_TCP, 37 /* TCP_TX_DELAY */, TCP, 0, sizeof(int)},
	{IPPROTO_TCP, 44 /* TCP_RTO_MAX_MS */, TCP, 0, sizeof(int)},
	{IPPROTO_TCP, 45 /* TCP_RTO_MIN_US */, TCP, 0, sizeof(int)},
	{IPPROTO_TCP, 46 /* TCP_DELACK_MAX_US */, TCP, 0, sizeof(int)},

	{IPPROTO_UDP, 1 /* UDP_CORK */, UDP, 0, sizeof(int)},
	{IPPROTO_UDP, 100 /* UDP_ENCAP */, UDP, 0, sizeof(int)},
	{IPPROTO_UDP, 101 /* UDP_NO_CHECK6_TX */, UDP, 0, sizeof(int)},
	{IPPROTO_UDP, 102 /* UDP_NO_CHECK6_RX */, UDP, 0, sizeof(int)},
	{IPPROTO_UDP, 103 /* UDP_SEGMENT */, UDP, 0, sizeof(int)},
	{IPPROTO_UDP, 104 /* UDP_GRO */, UDP, 0, sizeof(int)},

	{IPPROTO_IP, IP_FREEBIND, V4, EARLY, sizeof(int)},
	{IPPROTO_IP, IP_TRANSPARENT, V4, EARLY, sizeof(int)},
	{IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, V4, EARLY, sizeof(int)},
	{IPPROTO_IP, 51 /* IP_LOCAL_PORT_RANGE */, V4, EARLY, sizeof(int)},
	{IPPROTO_IP, IP_TOS, V4, 0, sizeof(int)},
	{IPPROTO_IP, IP_TTL, V4, 0, sizeof(int)},
	{IPPROTO_IP, IP_RECVOPTS, V4, 0, sizeof(int)},
	{IPPROTO_IP, IP_RETOPTS, V4, 0, sizeof(int)},
	{IPPROTO_IP, IP_PKTINFO, V4, 0, sizeof(int)},
	{IPPROTO_IP, IP_MTU_DISCOVER, V4, 0, sizeof(int)},
	{IPPROTO_IP, IP_RECVERR, V4, 0, sizeof(int)},
	{IPPROTO_IP, IP_RECVTTL, V4, 0, sizeof(int)},
	{IPPROTO_IP, IP_RECVTOS, V4, 0, sizeof(int)},
	{IPPROTO_IP, IP_ORIGDSTADDR, V4, 0, sizeof(int)},
	{IPPROTO_IP, IP_MINTTL, V4, 0, sizeof(int)},
	{IPPROTO_IP, IP_CHECKSUM, V4, 0, sizeof(int)},
	{IPPROTO_IP, IP_RECVFRAGSIZE, V4, 0, sizeof(int)},
	{IPPROTO_IP, IP_MULTICAST_IF, UDP4, 0, sizeof(struct in_addr)},
	{IPPROTO_IP, IP_MULTICAST_TTL, UDP4, 0, sizeof(int)},
	{IPPROTO_IP, IP_MULTICAST_LOOP, UDP4, 0, sizeof(int)},
	{IPPROTO_IP, IP_MULTICAST_ALL, V4, 0, sizeof(int)},
	{IPPROTO_IP, IP_UNICAST_IF, V4, 0, sizeof(int)},
	{IPPROTO_IP, IP_PASSSEC, V4, 0, sizeof(int)},
	{IPPROTO_IP, 26 /* IP_RECVERR_RFC4884 */, V4, 0, sizeof(int)},

	{IPPROTO_IPV6, IPV6_V6ONLY, V6, EARLY, sizeof(int)},
	{IPPROTO_IPV6, IPV6_FREEBIND, V6, EARLY, sizeof(int)},
	{IPPROTO_IPV6, IPV6_TRANSPARENT, V6, EARLY, sizeof(int)},
	{IPPROTO_IPV6, IPV6_UNICAST_HOPS, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_MULTICAST_IF, UDP6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_MULTICAST_HOPS, UDP6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_MULTICAST_LOOP, UDP6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_MULTICAST_ALL, UDP6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_MTU_DISCOVER, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_RECVERR, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_RECVPKTINFO, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_RECVHOPLIMIT, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_RECVTCLASS, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_TCLASS, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_DONTFRAG, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_FLOWINFO_SEND, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_ADDR_PREFERENCES, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_MINHOPCOUNT, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_2292PKTINFO, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_2292HOPOPTS, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_2292DSTOPTS, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_2292RTHDR, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_2292HOPLIMIT, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_FLOWINFO, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_ROUTER_ALERT_ISOLATE, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, 31 /* IPV6_RECVERR_RFC4884 */, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_RECVHOPOPTS, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_RECVRTHDR, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_RECVDSTOPTS, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_RECVPATHMTU, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_UNICAST_IF, V6, 0, sizeof(int)},
	{IPPROTO_IPV6, IPV6_RECVFRAGSIZE, V6, 0, sizeof(int)},

	{SOL_RAW, ICMP_FILTER, RAW, 0, sizeof(uint32_t)},
	{SOL_RAW, IPV6_CHECKSUM, RAW, 0, sizeof(int)},
	{IPPROTO_IP, IP_HDRINCL, RAW, 0, sizeof(int)},
	{IPPROTO_IPV6, 36 /* IPV6_HDRINCL */, RAW, 0, sizeof(int)},
	{IPPROTO_IP, IP_NODEFRAG, RAW, 0, sizeof(int)},

	{SOL_UDPLITE, UDPLITE_SEND_CSCOV, UDP, 0, sizeof(int)},
	{SOL_UDPLITE, UDPLITE_RECV_CSCOV, UDP, 0, sizeof(int)},

	{SOL_PACKET, PACKET_AUXDATA, PACKET, 0, sizeof(int)},
	{SOL_PACKET, PACKET_ORIGDEV, PACKET, 0, sizeof(int)},
	{SOL_PACKET, PACKET_VERSION, PACKET, 0, sizeof(int)},
	{SOL_PACKET, PACKET_RESERVE, PACKET, 0, sizeof(int)},
	{SOL_PACKET, PACKET_LOSS, PACKET, 0, sizeof(int)},
	{SOL_PACKET, PACKET_VNET_HDR, PACKET, 0, sizeof(int)},
	{SOL_PACKET, 24 /* PACKET_VNET_HDR_SZ */, PACKET, 0, sizeof(int)},
	{SOL_PACKET, PACKET_TIMESTAMP, PACKET, 0, sizeof(int)},
	{SOL_PACKET, PACKET_TX_HAS_OFF, PACKET, 0, sizeof(int)},
	{SOL_PACKET, PACKET_QDISC_BYPASS, PACKET, 0, sizeof(int)},
	{SOL_PACKET, 23 /* PACKET_IGNORE_OUTGOING */, PACKET, 0, sizeof(int)},
	{SOL_PACKET, PACKET_COPY_THRESH, PACKET, 0, sizeof(int)}, /* shown since 6.12 */
	{SOL_PACKET, PACKET_FANOUT, PACKET, 0, sizeof(int)},

	/* One a group; no call shows it like this (socket/netlink_dump.c). */
	{SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, NETLINK, 0, sizeof(int)},
	{SOL_NETLINK, 3 /* NETLINK_PKTINFO */, NETLINK, 0, sizeof(int)},
	{SOL_NETLINK, 4 /* NETLINK_BROADCAST_ERROR */, NETLINK, 0, sizeof(int)},
	{SOL_NETLINK, 5 /* NETLINK_NO_ENOBUFS */, NETLINK, 0, sizeof(int)},
	{SOL_NETLINK, 8 /* NETLINK_LISTEN_ALL_NSID */, NETLINK, 0, sizeof(int)},
	{SOL_NETLINK, 10 /* NETLINK_CAP_ACK */, NETLINK, 0, sizeof(int)},
	{SOL_NETLINK, 11 /* NETLINK_EXT_ACK */, NETLINK, 0, sizeof(int)},
	{SOL_NETLINK, 12 /* NETLINK_GET_STRICT_CHK */, NETLINK, 0, sizeof(int)},
};

static unsigned kind_of(const struct image_socket *s)
{
	return socket_family_of(s)->options(s);
}

static const struct row *find_row(uint32_t level, uint32_t name)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].level == (int)level && rows[i].name == (int)name)
			return &rows[i];
	return NULL;
}

/* ---- saving ---- */

static int lock_of(int fd)
{
	socklen_t size = sizeof(int);
	int value;

	return getsockopt(fd, SOL_SOCKET, LOCK_OPTION, &value, &size) ? 0 : value;
}

/* Sizes that nobody has set are the kernel's to choose, and a connection's grow. */
static bool is_chosen(int fd, const struct row *row, const struct image_socket *s)
{
	int bit = row->name == SO_SNDBUF ? 1 : 2;

	return !(row->flags & SIZE) || !socket_is_tcp(s) || lock_of(fd) & bit;
}

/* Kernels do not know all of them: those are not set either. */
static bool get_option(int fd, const struct row *row, struct image_socket_option *o)
{
	socklen_t size = row->size;

	*o = (struct image_socket_option){.level = row->level, .name = row->name};
	if (getsockopt(fd, row->level, row->name, o->value, &size))
		return false;
	o->size = row->flags & NAME ? strnlen((char *)o->value, size) : size;
	return true;
}

/* What stays in the headers of all that is sent: of any size. */
static bool has_headers(int fd, int level, int name)
{
	char value[256];
	socklen_t size = sizeof(value);

	return !getsockopt(fd, level, name, value, &size) && size;
}

static int refuse_headers(int fd, unsigned kind, struct err *e)
{
	static const int names[] = {IPV6_HOPOPTS, IPV6_RTHDRDSTOPTS, IPV6_RTHDR, IPV6_DSTOPTS};
	bool some = kind & V4 && has_headers(fd, IPPROTO_IP, IP_OPTIONS);

	for (size_t i = 0; kind & V6 && i < ARRAY_SIZE(names); i++)
		some |= has_headers(fd, IPPROTO_IPV6, names[i]);
	return some ? err_set(e, 0,
			      "it sends further headers (IP_OPTIONS, IPV6_RTHDR and the like), "
			      "which is not supported")
		    : 0;
}

static int refuse_hidden(int fd, const struct image_socket *s, struct err *e)
{
	char name[16] = "";
	socklen_t size = sizeof(name);

	/* Multipath TCP is made so. */
	if (kind_of(s) & TCP && s->protocol == IPPROTO_TCP &&
		!getsockopt(fd, IPPROTO_TCP, TCP_ULP, name, &size) && size && *name)
		return err_set(e, 0,
			"it has protocol %.16s on top (TCP_ULP), which is not supported", name);
	return refuse_headers(fd, kind_of(s), e);
}

/* Bytes that the kernel holds for options of it: keys, filters, and the like. */
static uint32_t option_memory(int fd)
{
	uint32_t info[SK_MEMINFO_VARS] = {0};
	socklen_t size = sizeof(info);

	(void)getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &size); /* Linux 4.12 has it */
	return info[SK_MEMINFO_OPTMEM];
}

/* Nothing shows the keys themselves to an ordinary user, but their memory is counted, like a
 * filter's (sock_kmalloc()): @fresh gets the filter in @options, to be compared with. Data that is
 * sent without being copied is counted there, too, until it has arrived. */
static int refuse_keys(int fd, int fresh, const struct buf *options, struct err *e)
{
	size_t count = buf_count(options, struct image_socket_option), i = 0;
	const struct image_socket_option *o = options->data;
	socklen_t size = sizeof(int);
	int zerocopy = 0;

	(void)getsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &zerocopy, &size); /* before Linux 4.14 */
	while (i < count && (o[i].level != SOL_SOCKET || o[i].name != SO_ATTACH_FILTER))
		i++;
	if (zerocopy || (i < count && socket_long_option_set(fresh, &o[i], count - i, e) < 0))
		return zerocopy ? 0 : -1;
	return option_memory(fd) <= option_memory(fresh)
		       ? 0
		       : err_set(e, 0,
				 "its packets are signed (TCP_MD5SIG or TCP_AO), by keys that "
				 "are "
				 "not supported: nothing shows them to ordinary users");
}

int socket_options_save(int fd, const struct image_socket *s, struct buf *out, struct err *e)
{
	cleanup_fd int fresh = socket(s->family, s->type | SOCK_CLOEXEC, s->protocol);
	bool connection = s->state != IMAGE_SOCKET_OPEN && s->state != IMAGE_SOCKET_LISTENING;
	unsigned kind = kind_of(s);

	if (fresh < 0)
		return err_set(e, errno, "cannot create a socket to compare it with");
	/* A filter comes before SO_LOCK_FILTER. */
	if (refuse_hidden(fd, s, e) || socket_long_options_save(fd, fresh, out, e) ||
		(kind & TCP && refuse_keys(fd, fresh, out, e)))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct image_socket_option now, new;

		if (!(rows[i].sockets & kind) || (rows[i].flags & NEW_ONLY && connection) ||
			!is_chosen(fd, &rows[i], s) || !get_option(fd, &rows[i], &now) ||
			!get_option(fresh, &rows[i], &new) || !memcmp(&now, &new, sizeof(now)))
			continue;
		buf_push(out, struct image_socket_option, &now);
	}
	return 0;
}

/* ---- setting ---- */

static int set_size(int fd, const struct row *row, const struct image_socket_option *o)
{
	int value, now, half;
	socklen_t size = sizeof(now);

	memcpy(&value, o->value, sizeof(value));
	half = value / 2;
	/* Without the privilege, up to net.core.wmem_max and rmem_max. */
	if (setsockopt(fd, SOL_SOCKET, forcing_option(row->name), &half, sizeof(half)) &&
		setsockopt(fd, SOL_SOCKET, row->name, &half, sizeof(half)))
		return -1;
	if (getsockopt(fd, SOL_SOCKET, row->name, &now, &size))
		return -1;
	errno = ENOBUFS;
	return now / 2 == half ? 0 : -1;
}

static int set_option(int fd, const struct image_socket_option *o, struct err *e)
{
	const struct row *row = find_row(o->level, o->name);
	struct image_socket_option now;

	if (!row)
		return err_set(e, 0,
			"a socket has option %u of level %u, which this trecr does not know",
			o->name, o->level);
	/* Some can be set but once without a privilege. */
	if (get_option(fd, row, &now) && !memcmp(&now, o, sizeof(now)))
		return 0;
	if (row->flags & SIZE ? set_size(fd, row, o)
			      : setsockopt(fd, row->level, row->name, o->value, o->size))
		return err_set(e, errno, "cannot set option %u of level %u of a socket",
			o->name, o->level);
	return 0;
}

int socket_options_set(int fd, const struct image_socket_option *options, size_t count,
	bool early, struct err *e)
{
	for (size_t i = 0; i < count; i++) {
		const struct row *row = find_row(options[i].level, options[i].name);
		ssize_t parts;

		if (socket_option_is_long(&options[i])) {
			parts = early ? 1
				      : socket_long_option_set(fd, &options[i], count - i, e);
			if (parts < 0)
				return -1;
			i += parts - 1;
			continue;
		}
		if (row && !!(row->flags & EARLY) != early)
			continue;
		if (set_option(fd, &options[i], e))
			return -1;
	}
	return 0;
}

int socket_option_value(
	const struct image_socket_option *options, size_t count, uint32_t level, uint32_t name)
{
	int value = 0;

	for (size_t i = 0; i < count; i++)
		if (options[i].level == level && options[i].name == name &&
			options[i].size >= sizeof(value))
			memcpy(&value, options[i].value, sizeof(value));
	return value;
}

/* ---- room ---- */

/* Small messages take several times their size. */
#define ROOM_FACTOR 4
#define ROOM_MAX    (512 << 20)

/* What anybody may choose (net.core.wmem_max, rmem_max), as the kernel keeps it. */
static int largest_allowed(int name)
{
	cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(int);
	int size = ROOM_MAX;

	return fd < 0 || setsockopt(fd, SOL_SOCKET, name, &size, sizeof(size)) ||
			       getsockopt(fd, SOL_SOCKET, name, &size, &length)
		       ? 0
		       : size;
}

/* Without the privilege, unless that is the wrong way: TCP's own limits (net.ipv4.tcp_rmem,
 * tcp_wmem), up to which the kernel chooses by itself, can be higher. */
static void set_room(int fd, int name, int size)
{
	int half = size / 2, now, most, got;
	socklen_t length = sizeof(now);

	if (!setsockopt(fd, SOL_SOCKET, forcing_option(name), &half, sizeof(half)) ||
		getsockopt(fd, SOL_SOCKET, name, &now, &length))
		return;
	most = largest_allowed(name);
	got = size < most ? size : most;
	if (size > now ? got > now : got == size)
		(void)setsockopt(
			fd, SOL_SOCKET, name, &half, sizeof(half)); /* see the header */
}

int socket_grow_note(struct socket_guard *g, struct err *e)
{
	if (socket_guard_note(g, SOL_SOCKET, SO_RCVLOWAT, e))
		return -1;
	if (!(lock_of(g->socket) & 2))
		return 0;
	if (socket_guard_note(g, SOL_SOCKET, SO_RCVBUF, e))
		return -1;
	g->options[g->count - 1].value /= 2;
	return 0;
}

/* The mark makes the kernel enlarge a buffer whose size is its own to choose, up to
 * net.ipv4.tcp_rmem (tcp_set_rcvlowat()). */
void socket_grow(int fd, uint64_t size)
{
	int mark = size > ROOM_MAX / ROOM_FACTOR ? ROOM_MAX / ROOM_FACTOR : size + 65536;

	if (lock_of(fd) & 2)
		set_room(fd, SO_RCVBUF, mark * ROOM_FACTOR);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof(mark)); /* see the header */
}

int socket_force_note(struct socket_guard *g, struct err *e)
{
	if (socket_guard_note(g, SOL_SOCKET, SO_RCVBUF, e))
		return -1;
	g->options[g->count - 1].value /= 2;
	return socket_guard_note(g, SOL_SOCKET, LOCK_OPTION, e);
}

int socket_force(int fd, uint64_t size)
{
	int half = size > ROOM_MAX / ROOM_FACTOR ? ROOM_MAX / 2 : size * ROOM_FACTOR / 2;

	return setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &half, sizeof(half));
}

struct socket_room socket_room_make(int fd, int name, uint64_t size)
{
	struct socket_room room = {.fd = fd, .name = name, .lock = lock_of(fd)};
	socklen_t length = sizeof(room.size);

	size = size > ROOM_MAX / ROOM_FACTOR ? ROOM_MAX : size * ROOM_FACTOR + 65536;
	if (getsockopt(fd, SOL_SOCKET, name, &room.size, &length) || room.size >= (int)size)
		room.fd = -1;
	else
		set_room(fd, name, size);
	return room;
}

void socket_room_end(const struct socket_room *room)
{
	if (room->fd < 0)
		return;
	set_room(room->fd, room->name, room->size);
	/* Kernels before 5.14 do not choose the size by themselves any more then. */
	(void)setsockopt(room->fd, SOL_SOCKET, LOCK_OPTION, &room->lock, sizeof(room->lock));
}
