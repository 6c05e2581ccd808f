/*
 * multicast.c - tries each group of /proc/net/igmp and igmp6 on the socket; joins the groups of an image.
 */
#include "supervisor/socket/multicast.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "supervisor/socket/long_options.h"

#define ADDRESS     16 /* the first four bytes are one of IPv4 */
#define SOURCES_MAX 8192

/* A group in the value of the option, with its senders behind it. Interfaces are saved by name, as
 * their numbers are others after a reboot. */
struct group {
	char interface[IF_NAMESIZE];
	uint8_t address[ADDRESS];
	uint32_t
		mode; /* MCAST_INCLUDE: only from these senders, MCAST_EXCLUDE: from all others */
	uint32_t source_count;
};

static void set_address(struct sockaddr_storage *to, int level, const uint8_t *address)
{
	struct sockaddr_in *v4 = (void *)to;
	struct sockaddr_in6 *v6 = (void *)to;

	memset(to, 0, sizeof(*to));
	if (level == IPPROTO_IP) {
		v4->sin_family = AF_INET;
		memcpy(&v4->sin_addr, address, sizeof(v4->sin_addr));
	} else {
		v6->sin6_family = AF_INET6;
		memcpy(&v6->sin6_addr, address, sizeof(v6->sin6_addr));
	}
}

static void get_address(const struct sockaddr_storage *from, int level, uint8_t *address)
{
	const struct sockaddr_in *v4 = (const void *)from;
	const struct sockaddr_in6 *v6 = (const void *)from;

	memset(address, 0, ADDRESS);
	if (level == IPPROTO_IP)
		memcpy(address, &v4->sin_addr, sizeof(v4->sin_addr));
	else
		memcpy(address, &v6->sin6_addr, sizeof(v6->sin6_addr));
}

static const char *show_address(int level, const uint8_t *address, char text[INET6_ADDRSTRLEN])
{
	const char *shown = inet_ntop(
		level == IPPROTO_IP ? AF_INET : AF_INET6, address, text, INET6_ADDRSTRLEN);

	return shown ? shown : "?";
}

/* ---- saving ---- */

/* A member can query its filter, with as many senders as fit; others get
 * EADDRNOTAVAIL (ip_mc_gsfget()). */
static bool get_filter(int fd, int level, struct group_filter *filter, uint32_t room)
{
	socklen_t size = GROUP_FILTER_SIZE(room);

	filter->gf_numsrc = room;
	return !getsockopt(fd, level, MCAST_MSFILTER, filter, &size);
}

static int save_group(int fd, int level, uint32_t interface, const uint8_t *address,
	struct buf *out, struct err *e)
{
	struct group_filter one = {.gf_interface = interface}, *all;
	cleanup_free void *room = NULL;
	struct group group = {0};
	uint32_t count;

	set_address(&one.gf_group, level, address);
	if (!get_filter(fd, level, &one, 0))
		return 0;
	count = one.gf_numsrc <= SOURCES_MAX ? one.gf_numsrc : SOURCES_MAX;
	room = all = xcalloc(1, sizeof(*all) + count * sizeof(one.gf_slist[0]));
	*all = one;
	if (!get_filter(fd, level, all, count) || all->gf_numsrc != count ||
		!if_indextoname(interface, group.interface)) {
		char text[INET6_ADDRSTRLEN];

		return err_set(e, errno, "cannot query its membership in multicast group %s",
			show_address(level, address, text));
	}
	memcpy(group.address, address, ADDRESS);
	group.mode = all->gf_fmode;
	group.source_count = count;
	buf_add(out, &group, sizeof(group));
	for (uint32_t i = 0; i < count; i++) {
		uint8_t source[ADDRESS];

		get_address(&all->gf_slist[i], level, source);
		buf_add(out, source, sizeof(source));
	}
	return 0;
}

/* Lines "1 lo : 1 V3", each with lines "  010000E0 1 0:00000000 0" below it. */
static int save_v4(int fd, const char *text, struct buf *out, struct err *e)
{
	uint32_t interface = 0;

	for (const char *p = text; (p = strchr(p, '\n')) && p[1]; p++) {
		uint8_t address[ADDRESS] = {0};
		uint32_t v4;

		if (p[1] != '\t') {
			sscanf(p + 1, "%" SCNu32, &interface);
			continue;
		}
		if (sscanf(p + 1, "%" SCNx32, &v4) != 1)
			continue;
		memcpy(address, &v4, sizeof(v4));
		if (save_group(fd, IPPROTO_IP, interface, address, out, e))
			return -1;
	}
	return 0;
}

/* Lines "1 lo ff020000000000000000000000000001 1 0000000C 0" */
static int save_v6(int fd, const char *text, struct buf *out, struct err *e)
{
	for (const char *p = text; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
		uint8_t address[ADDRESS];
		uint32_t interface;
		char hex[33];
		int i = 0;

		if (sscanf(p, "%" SCNu32 " %*s %32s", &interface, hex) != 2)
			continue;
		while (i < ADDRESS && sscanf(hex + 2 * i, "%2hhx", &address[i]) == 1)
			i++;
		if (i == ADDRESS && save_group(fd, IPPROTO_IPV6, interface, address, out, e))
			return -1;
	}
	return 0;
}

/* A kernel without multicast has no such file. */
static int save_level(int fd, int level, struct buf *out, struct err *e)
{
	bool v4 = level == IPPROTO_IP;
	cleanup_buf struct buf groups = {0};
	cleanup_free char *text = NULL;
	size_t size;

	if (read_file(v4 ? "/proc/net/igmp" : "/proc/net/igmp6", &text, &size, NULL))
		return 0;
	if (v4 ? save_v4(fd, text, &groups, e) : save_v6(fd, text, &groups, e))
		return -1;
	socket_long_option_push(out, level, SOCKET_MULTICAST, groups.data, groups.len);
	return 0;
}

/* Sockets of IPv6 can be in groups of both. */
int socket_multicast_save(int fd, int family, struct buf *out, struct err *e)
{
	return save_level(fd, IPPROTO_IP, out, e) ||
			       (family == AF_INET6 && save_level(fd, IPPROTO_IPV6, out, e))
		       ? -1
		       : 0;
}

/* ---- joining ---- */

/* A socket that is to hear certain senders only is not a member without these. */
static int join_group(int fd, int level, const struct group *group, uint32_t interface,
	const uint8_t *sources)
{
	struct group_req whole = {.gr_interface = interface};
	struct group_source_req one = {.gsr_interface = interface};
	bool all = group->mode == MCAST_EXCLUDE;

	set_address(&whole.gr_group, level, group->address);
	one.gsr_group = whole.gr_group;
	if (all && setsockopt(fd, level, MCAST_JOIN_GROUP, &whole, sizeof(whole)))
		return -1;
	for (uint32_t i = 0; i < group->source_count; i++) {
		set_address(&one.gsr_source, level, sources + (size_t)i * ADDRESS);
		if (setsockopt(fd, level, all ? MCAST_BLOCK_SOURCE : MCAST_JOIN_SOURCE_GROUP,
			    &one, sizeof(one)))
			return -1;
	}
	return 0;
}

static int find_interface(
	int level, const struct group *group, uint32_t *interface, struct err *e)
{
	char text[INET6_ADDRSTRLEN];

	*interface = if_nametoindex(group->interface);
	return *interface ? 0
			  : err_set(e, 0,
				    "it is in multicast group %s at network interface %s, "
				    "which does not exist here",
				    show_address(level, group->address, text),
				    group->interface);
}

/* Each group of @data: joined by @fd, or looked at only if that is -1. */
static int each_group(int fd, int level, const char *data, size_t size, struct err *e)
{
	struct group group;

	for (size_t at = 0; at < size;) {
		char text[INET6_ADDRSTRLEN];
		uint32_t interface;

		if (size - at < sizeof(group))
			return err_set(e, 0, "the image is damaged: multicast groups");
		memcpy(&group, data + at, sizeof(group));
		group.interface[IF_NAMESIZE - 1] = 0;
		at += sizeof(group);
		if (group.source_count > (size - at) / ADDRESS)
			return err_set(e, 0, "the image is damaged: multicast groups");
		if (find_interface(level, &group, &interface, e))
			return -1;
		if (fd >= 0 &&
			join_group(fd, level, &group, interface, (const uint8_t *)data + at))
			return err_set(e, errno, "cannot join multicast group %s at %s",
				show_address(level, group.address, text), group.interface);
		at += (size_t)group.source_count * ADDRESS;
	}
	return 0;
}

int socket_multicast_join(int fd, int level, const void *data, size_t size, struct err *e)
{
	return each_group(fd, level, data, size, e);
}

int socket_multicast_check(
	const struct image_socket_option *options, size_t count, struct err *e)
{
	static const int levels[] = {IPPROTO_IP, IPPROTO_IPV6};

	for (size_t l = 0; l < ARRAY_SIZE(levels); l++) {
		cleanup_buf struct buf data = {0};

		socket_long_option_get(options, count, levels[l], SOCKET_MULTICAST, &data);
		if (each_group(-1, levels[l], data.data, data.len, e))
			return -1;
	}
	return 0;
}
