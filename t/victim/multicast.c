/* Multicast groups: to hear all senders, all but one, and one only; over IPv4, and over IPv6 where it
 * is there. What waits, what comes later, and what is not to come. */
#include <net/if.h>
#include <netinet/in.h>

#include "sockets.h"

#define GROUP      0xefff2a01 /* 239.255.42.1 */
#define BLOCKED    (INADDR_LOOPBACK + 1)
#define OTHER      (INADDR_LOOPBACK + 2)
#define FILTER_MAX 4

static int heard, some, one, six = -1;
static unsigned lo;

void victim_hurt(void)
{
	struct ip_mreqn group = {.imr_multiaddr = {htonl(GROUP)}, .imr_ifindex = lo};

	MUST(!setsockopt(heard, IPPROTO_IP, IP_DROP_MEMBERSHIP, &group, sizeof(group)));
}

static struct sockaddr_in address_of(in_addr_t address, in_port_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr = {htonl(address)}, .sin_port = port};
}

static in_port_t port_of(int fd)
{
	struct sockaddr_in a;
	socklen_t size = sizeof(a);

	MUST(!getsockname(fd, (struct sockaddr *)&a, &size));
	return a.sin_port;
}

static int bound(in_addr_t address, in_port_t port)
{
	struct sockaddr_in a = address_of(address, port);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	/* What others on this machine have joined does not count. */
	sock_set(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
	sock_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	MUST(fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a)));
	return fd;
}

static bool join(int fd, int option, in_addr_t source)
{
	struct group_source_req r = {.gsr_interface = lo};
	struct sockaddr_in group = address_of(GROUP, 0), from = address_of(source, 0);

	memcpy(&r.gsr_group, &group, sizeof(group));
	memcpy(&r.gsr_source, &from, sizeof(from));
	return !setsockopt(fd, IPPROTO_IP, option, &r,
		option == MCAST_JOIN_GROUP ? sizeof(struct group_req) : sizeof(r));
}

static bool send_from(in_addr_t address, char c)
{
	struct sockaddr_in to = address_of(GROUP, port_of(heard));
	struct ip_mreqn out = {.imr_ifindex = lo};
	int fd = bound(address, 0);
	bool sent = !setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &out, sizeof(out)) &&
		    sendto(fd, &c, 1, 0, (struct sockaddr *)&to, sizeof(to)) == 1;

	close(fd);
	return sent;
}

/* The filter of @fd is of this mode, with these senders at most. */
static void check_filter(
	int fd, uint32_t mode, uint32_t count, in_addr_t source, const char *what)
{
	union {
		struct group_filter f;
		char room[GROUP_FILTER_SIZE(FILTER_MAX)];
	} u = {.f = {.gf_interface = lo, .gf_numsrc = FILTER_MAX}};
	struct sockaddr_in group = address_of(GROUP, 0);
	socklen_t size = sizeof(u);

	memcpy(&u.f.gf_group, &group, sizeof(group));
	CHECK(!getsockopt(fd, IPPROTO_IP, MCAST_MSFILTER, &u, &size), "%s: not in the group",
		what);
	CHECK(u.f.gf_fmode == mode && u.f.gf_numsrc == count, "%s: mode %u, %u senders", what,
		u.f.gf_fmode, u.f.gf_numsrc);
	CHECK(!count || ((struct sockaddr_in *)&u.f.gf_slist[0])->sin_addr.s_addr ==
				htonl(source),
		"%s: another sender", what);
}

static void prepare_six(void)
{
	struct ipv6_mreq r = {.ipv6mr_interface = lo};

	memcpy(&r.ipv6mr_multiaddr, "\xff\x11\0\0\0\0\0\0\0\0\0\0\0\0\x2a\x01", 16);
	six = socket(AF_INET6, SOCK_DGRAM, 0);
	if (six >= 0 && setsockopt(six, IPPROTO_IPV6, IPV6_JOIN_GROUP, &r, sizeof(r))) {
		close(six);
		six = -1;
	}
}

static void check_six(void)
{
	struct ipv6_mreq r = {.ipv6mr_interface = lo};

	memcpy(&r.ipv6mr_multiaddr, "\xff\x11\0\0\0\0\0\0\0\0\0\0\0\0\x2a\x01", 16);
	CHECK(six < 0 || !setsockopt(six, IPPROTO_IPV6, IPV6_LEAVE_GROUP, &r, sizeof(r)),
		"IPv6: not in the group");
}

int main(void)
{
	lo = if_nametoindex("lo");
	heard = bound(INADDR_ANY, 0);
	some = bound(GROUP, port_of(heard));
	one = bound(INADDR_ANY, port_of(heard));
	if (!lo || !join(heard, MCAST_JOIN_GROUP, 0) || !join(some, MCAST_JOIN_GROUP, 0))
		victim_skip("no multicast");
	MUST(join(some, MCAST_BLOCK_SOURCE, BLOCKED) &&
		join(one, MCAST_JOIN_SOURCE_GROUP, OTHER));
	prepare_six();
	if (!send_from(OTHER, '1'))
		victim_skip("nothing can be sent to a group here");
	MUST(send_from(BLOCKED, '2'));
	victim_ready();
	victim_wait();
	MUST(send_from(BLOCKED, '3') && send_from(OTHER, '4'));
	COMES(heard, "1");
	COMES(heard, "2");
	COMES(heard, "3");
	COMES(heard, "4");
	COMES(some, "1");
	COMES(some, "4");
	EMPTY(some);
	COMES(one, "1");
	COMES(one, "4");
	EMPTY(one);
	check_filter(heard, MCAST_EXCLUDE, 0, 0, "all");
	check_filter(some, MCAST_EXCLUDE, 1, BLOCKED, "all but one");
	check_filter(one, MCAST_INCLUDE, 1, OTHER, "one");
	check_six();
	return victim_done();
}
