/*
 * socket_families.c - families, addresses as text and compared, and whether an address is free
 * here.
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

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static const struct {
	int family;
	const char *name;
} families[] = {
	{AF_UNIX, "AF_UNIX"},
	{AF_INET, "AF_INET"},
	{AF_INET6, "AF_INET6"},
	{AF_NETLINK, "AF_NETLINK"},
	{AF_PACKET, "AF_PACKET"},
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

/* "AF_PACKET" */
static const char *socket_family_name(int family)
{
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		if (families[i].family == family)
			return families[i].name;
	return NULL;
}

/* Netlink protocols in which nothing but the socket itself is kept for it. */
static bool is_plain_netlink(int protocol)
{
	return protocol == NETLINK_ROUTE || protocol == NETLINK_SOCK_DIAG ||
	       protocol == NETLINK_USERSOCK || protocol == NETLINK_KOBJECT_UEVENT ||
	       protocol == NETLINK_GENERIC;
}

bool socket_is_known(int family, int type, int protocol)
{
	switch (family) {
	case AF_UNIX:
		return type == SOCK_STREAM || type == SOCK_DGRAM || type == SOCK_SEQPACKET;
	case AF_INET:
	case AF_INET6:
		if (type == SOCK_DGRAM)
			return protocol == IPPROTO_UDP || protocol == IPPROTO_UDPLITE ||
			       protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6;
		return type == SOCK_RAW ||
		       (type == SOCK_STREAM &&
			       (protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP));
	case AF_NETLINK:
		return is_plain_netlink(protocol);
	case AF_PACKET:
		return type == SOCK_RAW || type == SOCK_DGRAM;
	default:
		return false;
	}
}

bool socket_is_raw(const struct image_socket *s)
{
	return (s->family == AF_INET || s->family == AF_INET6) &&
	       (s->type == SOCK_RAW ||
		       (s->type == SOCK_DGRAM &&
			       (s->protocol == IPPROTO_ICMP || s->protocol == IPPROTO_ICMPV6)));
}

int socket_refuse(int fd, struct err *e)
{
	int family = 0, type = 0, protocol = 0;
	socklen_t size = sizeof(int);
	const char *name;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) ||
		getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) ||
		getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size))
		return err_set(e, errno, "cannot query its family");
	name = socket_family_name(family);
	if (family == AF_PACKET)
		return err_set(e, 0, "sockets of type SOCK_PACKET are not supported");
	if (family != AF_INET && family != AF_INET6 && family != AF_NETLINK)
		return name ? err_set(e, 0, "sockets of family %s are not supported", name)
			    : err_set(e, 0, "sockets of family %d are not supported", family);
	return err_set(e, 0, "sockets of family %s with protocol %d are not supported", name,
		protocol);
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
	return a == b || (a->family != AF_UNIX && b->family != AF_UNIX &&
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

static void show_unix(const uint8_t *name, uint32_t size, struct buf *out)
{
	if (size <= PATH_AT) {
		buf_printf(out, "(unnamed)");
		return;
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
}

void socket_name_show(const uint8_t *name, uint32_t size, struct buf *out)
{
	char text[INET6_ADDRSTRLEN] = "?";
	int family = size >= sizeof(sa_family_t) ? family_of(name) : AF_UNSPEC;

	if (family == AF_UNIX) {
		show_unix(name, size, out);
	} else if (family == AF_INET && size >= sizeof(struct sockaddr_in)) {
		inet_ntop(AF_INET, name + offsetof(struct sockaddr_in, sin_addr), text,
			sizeof(text));
		buf_printf(out, "%s:%u", text, socket_port(name));
	} else if (family == AF_INET6 && size >= sizeof(struct sockaddr_in6)) {
		inet_ntop(AF_INET6, name + offsetof(struct sockaddr_in6, sin6_addr), text,
			sizeof(text));
		buf_printf(out, "[%s]:%u", text, socket_port(name));
	} else {
		buf_printf(out, "(none)");
	}
}

void socket_show_name(const struct image_socket *s, struct buf *out)
{
	if (s->family == AF_PACKET)
		packet_socket_show(s, out);
	else
		socket_name_show(s->name, s->name_size, out);
}
