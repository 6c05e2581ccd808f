/*
 * socket_families.c - the table of families, addresses as text and compared, and whether an address
 * is free here.
 */
#include "supervisor/socket/socket_families.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

#include "supervisor/socket/packet_sockets.h"
#include "supervisor/socket/sockets_dump.h"
#include "supervisor/socket/sockets_restore.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

/* Netlink protocols in which nothing but the socket itself is kept for it. */
static bool is_plain_netlink(int protocol)
{
	return protocol == NETLINK_ROUTE || protocol == NETLINK_SOCK_DIAG ||
	       protocol == NETLINK_USERSOCK || protocol == NETLINK_KOBJECT_UEVENT ||
	       protocol == NETLINK_GENERIC;
}

static bool is_known_unix(int type, int protocol)
{
	return type == SOCK_STREAM || type == SOCK_DGRAM || type == SOCK_SEQPACKET;
}

static bool is_known_inet(int type, int protocol)
{
	if (type == SOCK_DGRAM)
		return protocol == IPPROTO_UDP || protocol == IPPROTO_UDPLITE ||
		       protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6;
	return type == SOCK_RAW ||
	       (type == SOCK_STREAM && (protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP));
}

static bool is_known_netlink(int type, int protocol)
{
	return is_plain_netlink(protocol);
}

static bool is_known_packet(int type, int protocol)
{
	return type == SOCK_RAW || type == SOCK_DGRAM;
}

/* ---- which options ---- */

static unsigned unix_options(const struct image_socket *s)
{
	return SOCKET_TAKES_UNIX;
}

static unsigned inet_options(const struct image_socket *s)
{
	unsigned options = SOCKET_TAKES_V4;

	if (s->type == SOCK_STREAM)
		return options | SOCKET_TAKES_TCP;
	return options | SOCKET_TAKES_UDP4 |
	       (socket_is_raw(s) ? SOCKET_TAKES_RAW : SOCKET_TAKES_UDP);
}

static unsigned inet6_options(const struct image_socket *s)
{
	return inet_options(s) | SOCKET_TAKES_V6 |
	       (s->type == SOCK_STREAM ? 0 : SOCKET_TAKES_UDP6);
}

static unsigned netlink_options(const struct image_socket *s)
{
	return SOCKET_TAKES_NETLINK;
}

static unsigned packet_options(const struct image_socket *s)
{
	return SOCKET_TAKES_PACKET;
}

/* ---- what they are called ---- */

static const char *unix_kind(const struct image_socket *s)
{
	return s->type == SOCK_STREAM  ? "UNIX stream"
	       : s->type == SOCK_DGRAM ? "UNIX datagram"
				       : "UNIX seqpacket";
}

static const char *inet_kind(const struct image_socket *s)
{
	if (socket_is_raw(s))
		return s->type == SOCK_RAW ? "raw" : "ICMP";
	if (s->type == SOCK_STREAM)
		return s->protocol == IPPROTO_TCP ? "TCP" : "Multipath TCP";
	return s->protocol == IPPROTO_UDPLITE ? "UDP-Lite" : "UDP";
}

static const char *netlink_kind(const struct image_socket *s)
{
	return "netlink";
}

static const char *packet_kind(const struct image_socket *s)
{
	return "packet";
}

/* ---- addresses ---- */

#define PATH_AT offsetof(struct sockaddr_un, sun_path)

static int family_of(const uint8_t *name)
{
	sa_family_t family;

	memcpy(&family, name, sizeof(family));
	return family;
}

bool socket_name_is_file(const uint8_t *name, uint32_t size)
{
	return size > PATH_AT && name[PATH_AT];
}

char *socket_name_path(const uint8_t *name, uint32_t size)
{
	return xasprintf("%.*s", (int)(size - PATH_AT), (const char *)name + PATH_AT);
}

/* The family's own part of the address of @name; IPv4's in IPv6 is an IPv4 address. */
static const uint8_t *address_in(const uint8_t *name, size_t *size)
{
	static const uint8_t mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	const uint8_t *a;

	if (family_of(name) == AF_INET) {
		*size = 4;
		return name + offsetof(struct sockaddr_in, sin_addr);
	}
	a = name + offsetof(struct sockaddr_in6, sin6_addr);
	*size = memcmp(a, mapped, sizeof(mapped)) ? 16 : 4;
	return *size == 4 ? a + sizeof(mapped) : a;
}

uint16_t socket_port(const uint8_t *name)
{
	in_port_t port;

	memcpy(&port, name + offsetof(struct sockaddr_in, sin_port), sizeof(port));
	return ntohs(port);
}

bool socket_same_address(const uint8_t *a, const uint8_t *b)
{
	size_t size_a, size_b;
	const uint8_t *in_a = address_in(a, &size_a), *in_b = address_in(b, &size_b);

	return socket_port(a) == socket_port(b) && size_a == size_b &&
	       !memcmp(in_a, in_b, size_a);
}

bool socket_is_any_address(const uint8_t *name)
{
	static const uint8_t zero[16];
	size_t size;
	const uint8_t *a = address_in(name, &size);

	return !memcmp(a, zero, size);
}

bool socket_is_free(const uint8_t *name, uint32_t size, int type, int protocol)
{
	cleanup_fd int fd = socket(family_of(name), type | SOCK_CLOEXEC, protocol);

	return fd >= 0 && !bind(fd, (const struct sockaddr *)name, size);
}

bool socket_is_local(const uint8_t *name, uint32_t size)
{
	uint8_t any_port[IMAGE_SOCKET_ADDRESS];

	memcpy(any_port, name, size);
	memset(any_port + offsetof(struct sockaddr_in, sin_port), 0, sizeof(in_port_t));
	return socket_is_free(any_port, size, SOCK_STREAM, 0);
}

static bool shares_port(const struct image_socket *a, const struct image_socket *b)
{
	return a == b ||
	       (socket_has_trait(a, SOCKET_INET) && socket_has_trait(b, SOCKET_INET) &&
		       socket_port(a->name) == socket_port(b->name));
}

uint32_t socket_waiting_at(const struct image_socket *s, size_t count, size_t listener)
{
	uint32_t waiting = 0;

	for (size_t i = 0; i < count; i++)
		waiting += s[i].state == IMAGE_SOCKET_WAITING && s[i].listener &&
			   shares_port(&s[s[i].listener - 1], &s[listener - 1]);
	return waiting;
}

/* ---- addresses in words ---- */

static bool show_unix(const uint8_t *name, uint32_t size, struct buf *out)
{
	if (size <= PATH_AT) {
		buf_printf(out, "(unnamed)");
		return true;
	}
	/* Abstract names are bytes (man 7 unix). */
	if (!name[PATH_AT])
		buf_printf(out, "@");
	for (uint32_t i = PATH_AT + !name[PATH_AT]; i < size && (name[i] || !name[PATH_AT]);
		i++)
		if (name[i] >= ' ' && name[i] < 127)
			buf_printf(out, "%c", name[i]);
		else
			buf_printf(out, "\\%03o", name[i]);
	return true;
}

static bool show_inet(const uint8_t *name, uint32_t size, struct buf *out)
{
	char text[INET6_ADDRSTRLEN] = "?";

	if (size < sizeof(struct sockaddr_in))
		return false;
	inet_ntop(AF_INET, name + offsetof(struct sockaddr_in, sin_addr), text, sizeof(text));
	buf_printf(out, "%s:%u", text, socket_port(name));
	return true;
}

static bool show_inet6(const uint8_t *name, uint32_t size, struct buf *out)
{
	char text[INET6_ADDRSTRLEN] = "?";

	if (size < sizeof(struct sockaddr_in6))
		return false;
	inet_ntop(
		AF_INET6, name + offsetof(struct sockaddr_in6, sin6_addr), text, sizeof(text));
	buf_printf(out, "[%s]:%u", text, socket_port(name));
	return true;
}

/* ---- the table ---- */

#define INET_FUNCTIONS                                                                         \
	.is_known = is_known_inet, .kind = inet_kind, .look = socket_inet_look,                \
	.relate = socket_inet_relate, .make = socket_inet_make, .listen = socket_inet_listen,  \
	.connect_waiting = socket_inet_connect_waiting, .reset = socket_inet_reset,            \
	.before_options = socket_inet_put_options_back, .is_sender = socket_inet_is_sender,    \
	.sender = socket_inet_sender, .destination = socket_inet_destination

static const struct socket_family families[] = {
	{
		.family = AF_UNIX,
		.name = "AF_UNIX",
		.traits = SOCKET_OF_MACHINE | SOCKET_HAS_MESSAGES | SOCKET_SHUT_BY_END,
		.is_known = is_known_unix,
		.options = unix_options,
		.kind = unix_kind,
		.show_address = show_unix,
		.look = socket_unix_look,
		.relate = socket_unix_relate,
		.make = socket_unix_make,
		.listen = socket_unix_listen,
		.connect_waiting = socket_unix_connect_waiting,
		.connect_peer = socket_unix_connect_peer,
		.reset = socket_unix_reset,
		.before_options = socket_unix_set_early,
		.finish = socket_unix_reveal,
		.is_sender = socket_unix_is_sender,
		.sender = socket_unix_sender,
		.destination = socket_unix_destination,
	},
	{
		.family = AF_INET,
		.name = "AF_INET",
		.traits = SOCKET_INET | SOCKET_HAS_MESSAGES,
		.options = inet_options,
		.show_address = show_inet,
		INET_FUNCTIONS,
	},
	{
		.family = AF_INET6,
		.name = "AF_INET6",
		.traits = SOCKET_INET | SOCKET_HAS_MESSAGES,
		.options = inet6_options,
		.show_address = show_inet6,
		INET_FUNCTIONS,
	},
	{
		.family = AF_NETLINK,
		.name = "AF_NETLINK",
		.is_known = is_known_netlink,
		.options = netlink_options,
		.kind = netlink_kind,
		.look = socket_netlink_look,
		.make = socket_netlink_make,
	},
	{
		.family = AF_PACKET,
		.name = "AF_PACKET",
		.traits =
			SOCKET_IS_FIRST, /* what it does to interfaces is told to netlink sockets */
		.is_known = is_known_packet,
		.why_unknown = "sockets of type SOCK_PACKET are not supported",
		.options = packet_options,
		.kind = packet_kind,
		.show_name = packet_socket_show,
		.look = socket_packet_look,
		.check = packet_socket_check,
		.make = socket_packet_make,
		.finish = socket_packet_open,
	},
};

const struct socket_family *socket_family_row(int family)
{
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		if (families[i].family == family)
			return &families[i];
	return NULL;
}

const struct socket_family *socket_family_of(const struct image_socket *s)
{
	const struct socket_family *f = socket_family_row(s->family);

	BUG_ON(!f);
	return f;
}

bool socket_has_trait(const struct image_socket *s, enum socket_family_trait trait)
{
	const struct socket_family *f = socket_family_row(s->family);

	return f && f->traits & trait;
}

bool socket_is_known(int family, int type, int protocol)
{
	const struct socket_family *f = socket_family_row(family);

	return f && f->is_known(type, protocol);
}

bool socket_is_raw(const struct image_socket *s)
{
	return socket_has_trait(s, SOCKET_INET) &&
	       (s->type == SOCK_RAW ||
		       (s->type == SOCK_DGRAM &&
			       (s->protocol == IPPROTO_ICMP || s->protocol == IPPROTO_ICMPV6)));
}

bool socket_is_tcp(const struct image_socket *s)
{
	return socket_has_trait(s, SOCKET_INET) && s->type == SOCK_STREAM;
}

void socket_name_show(const uint8_t *name, uint32_t size, struct buf *out)
{
	const struct socket_family *f =
		socket_family_row(size >= sizeof(sa_family_t) ? family_of(name) : AF_UNSPEC);

	if (!f || !f->show_address || !f->show_address(name, size, out))
		buf_printf(out, "(none)");
}

void socket_show_name(const struct image_socket *s, struct buf *out)
{
	const struct socket_family *f = socket_family_row(s->family);

	if (f && f->show_name)
		f->show_name(s, out);
	else
		socket_name_show(s->name, s->name_size, out);
}

/* ---- families that are not supported ---- */

static const struct {
	int family;
	const char *name;
} unsupported[] = {
	{AF_VSOCK, "AF_VSOCK"},
	{AF_ALG, "AF_ALG"},
	{AF_XDP, "AF_XDP"},
	{AF_KEY, "AF_KEY"},
	{AF_BLUETOOTH, "AF_BLUETOOTH"},
	{AF_CAN, "AF_CAN"},
	{AF_TIPC, "AF_TIPC"},
	{AF_RDS, "AF_RDS"},
	{AF_SMC, "AF_SMC"},
	{AF_QIPCRTR, "AF_QIPCRTR"},
	{AF_KCM, "AF_KCM"},
};

static int refuse_family(int family, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(unsupported); i++)
		if (unsupported[i].family == family)
			return err_set(e, 0, "sockets of family %s are not supported",
				unsupported[i].name);
	return err_set(e, 0, "sockets of family %d are not supported", family);
}

int socket_refuse(int fd, struct err *e)
{
	int family = 0, type = 0, protocol = 0;
	socklen_t size = sizeof(int);
	const struct socket_family *f;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) ||
		getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) ||
		getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size))
		return err_set(e, errno, "cannot query its family");
	f = socket_family_row(family);
	if (!f)
		return refuse_family(family, e);
	if (f->why_unknown)
		return err_set(e, 0, "%s", f->why_unknown);
	return err_set(e, 0, "sockets of family %s with protocol %d are not supported", f->name,
		protocol);
}
