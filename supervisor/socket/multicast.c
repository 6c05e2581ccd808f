#include "supervisor/socket/multicast.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/util.h"

/* A member is told with what filter it joined; others get EADDRNOTAVAIL (ip_mc_gsfget()). */
static bool is_member(int fd, int level, const struct group_filter *group)
{
	struct group_filter answer = *group;
	socklen_t size = sizeof(answer);

	return !getsockopt(fd, level, MCAST_MSFILTER, &answer, &size);
}

static int refuse_group(int family, const void *address, struct err *e)
{
	char text[INET6_ADDRSTRLEN] = "?";

	inet_ntop(family, address, text, sizeof(text));
	return err_set(e, 0, "it is in multicast group %s, which is not supported", text);
}

/* Lines "1 lo : 1 V3", each with lines "  010000E0 1 0:00000000 0" below it. */
static int check_v4(int fd, const char *text, struct err *e)
{
	struct group_filter g = {0};
	struct sockaddr_in *a = (void *)&g.gf_group;
	uint32_t interface = 0;

	a->sin_family = AF_INET;
	for (const char *p = text; (p = strchr(p, '\n')) && p[1]; p++) {
		if (p[1] != '\t') {
			sscanf(p + 1, "%" SCNu32, &interface);
			continue;
		}
		g.gf_interface = interface;
		if (sscanf(p + 1, "%" SCNx32, &a->sin_addr.s_addr) == 1 &&
			is_member(fd, IPPROTO_IP, &g))
			return refuse_group(AF_INET, &a->sin_addr, e);
	}
	return 0;
}

/* Lines "1 lo ff020000000000000000000000000001 1 0000000C 0" */
static int check_v6(int fd, const char *text, struct err *e)
{
	struct group_filter g = {0};
	struct sockaddr_in6 *a = (void *)&g.gf_group;

	a->sin6_family = AF_INET6;
	for (const char *p = text; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
		char hex[33];

		if (sscanf(p, "%" SCNu32 " %*s %32s", &g.gf_interface, hex) != 2)
			continue;
		for (int i = 0; i < 16; i++)
			if (sscanf(hex + 2 * i, "%2hhx", &a->sin6_addr.s6_addr[i]) != 1)
				break;
		if (is_member(fd, IPPROTO_IPV6, &g))
			return refuse_group(AF_INET6, &a->sin6_addr, e);
	}
	return 0;
}

int socket_refuse_multicast(int fd, int family, struct err *e)
{
	cleanup_free char *v4 = NULL, *v6 = NULL;
	size_t size;

	/* A kernel without multicast has no such file. */
	if (!read_file("/proc/net/igmp", &v4, &size, NULL) && check_v4(fd, v4, e))
		return -1;
	if (family == AF_INET6 && !read_file("/proc/net/igmp6", &v6, &size, NULL))
		return check_v6(fd, v6, e);
	return 0;
}
