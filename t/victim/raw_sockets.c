/* Sockets other than those of UNIX, TCP and UDP: raw ones, of ICMP, UDP-Lite, netlink, packet
 * sockets; and what filters them. */
#include <net/if.h>

#include <linux/filter.h>
#include <linux/icmp.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <poll.h>

#include "sockets.h"

#define SOL_UDPLITE   136
#define SEND_COVERAGE 10 /* UDPLITE_SEND_CSCOV */

static int raw, raw6, connected, ping, unused_ping, lite[2], filtered[2], locked;
static int unbound, grouped, peered, owner;
static struct sockaddr_in ping_name, lite_name;
static struct sockaddr_nl owner_name, grouped_name;
static const struct sockaddr_in self = {
	.sin_family = AF_INET, .sin_addr.s_addr = 0x0100007f /* 127.0.0.1 */};

void victim_hurt(void)
{
	struct icmp_filter none = {0};

	MUST(!setsockopt(raw, SOL_RAW, ICMP_FILTER, &none, sizeof(none)));
}

/* Only what starts with an "a". */
static void filter(int fd, int offset)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, offset),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 'a', 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0xffff),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = {4, code};

	MUST(!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)));
}

static void make_raw(void)
{
	struct icmp_filter all_but_replies = {~(1u << ICMP_ECHOREPLY)};
	struct icmp6_filter replies;

	raw = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
	if (raw < 0 && errno == EPERM)
		victim_skip("needs CAP_NET_RAW");
	MUST(!setsockopt(raw, SOL_RAW, ICMP_FILTER, &all_but_replies, sizeof(all_but_replies)));
	MUST(!bind(raw, (struct sockaddr *)&self, sizeof(self)));
	raw6 = socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
	ICMP6_FILTER_SETBLOCKALL(&replies);
	ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &replies);
	MUST(!setsockopt(raw6, IPPROTO_ICMPV6, ICMP6_FILTER, &replies, sizeof(replies)));
	connected = socket(AF_INET, SOCK_RAW, 253); /* for experiments (RFC 3692) */
	MUST(!connect(connected, (struct sockaddr *)&self, sizeof(self)));
}

static void make_ping(void)
{
	socklen_t size = sizeof(ping_name);

	ping = socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
	if (ping < 0) /* net.ipv4.ping_group_range */
		return;
	unused_ping = socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
	MUST(!bind(ping, (struct sockaddr *)&self, sizeof(self)));
	MUST(!getsockname(ping, (struct sockaddr *)&ping_name, &size));
}

static void make_lite(void)
{
	socklen_t size = sizeof(lite_name);

	for (int i = 0; i < 2; i++)
		lite[i] = socket(AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE);
	if (lite[0] < 0) /* gone in later kernels */
		return;
	sock_set(lite[0], SOL_UDPLITE, SEND_COVERAGE, 16);
	MUST(!bind(lite[1], (struct sockaddr *)&self, sizeof(self)));
	MUST(!getsockname(lite[1], (struct sockaddr *)&lite_name, &size));
	MUST(!connect(lite[0], (struct sockaddr *)&lite_name, size));
	MUST(send(lite[0], "lite", 4, 0) == 4);
}

static void make_filtered(void)
{
	MUST(!socketpair(AF_UNIX, SOCK_DGRAM, 0, filtered));
	MUST(send(filtered[1], "before", 6, 0) == 6);
	filter(filtered[0], 0);
	locked = socket(AF_INET, SOCK_DGRAM, 0);
	filter(locked, 8);
	sock_set(locked, SOL_SOCKET, SO_LOCK_FILTER, 1);
	MUST(!bind(locked, (struct sockaddr *)&self, sizeof(self)));
}

static void make_netlink(void)
{
	const struct sockaddr_nl any = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
	socklen_t size = sizeof(owner_name);

	unbound = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	sock_set(unbound, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, RTNLGRP_IPV4_IFADDR);
	grouped = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	MUST(!bind(grouped, (struct sockaddr *)&any, sizeof(any)));
	sock_set(grouped, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, RTNLGRP_NEXTHOP);
	MUST(!getsockname(grouped, (struct sockaddr *)&grouped_name, &size));
	owner = socket(AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK);
	peered = socket(AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK);
	MUST(!bind(owner, (struct sockaddr *)&(struct sockaddr_nl){.nl_family = AF_NETLINK},
		sizeof(any)));
	size = sizeof(owner_name);
	MUST(!getsockname(owner, (struct sockaddr *)&owner_name, &size));
	MUST(!connect(peered, (struct sockaddr *)&owner_name, size));
}

/* ---- packet sockets; an Ethernet type for experiments (IEEE 802, 0x88b5) ---- */

static int packets, some_packets, new_packets;
static struct packet_mreq member = {
	.mr_type = PACKET_MR_MULTICAST, .mr_alen = 6, .mr_address = {1, 0, 0x5e, 0, 0, 0xfb}};

static struct sockaddr_ll loopback(void)
{
	return (struct sockaddr_ll){.sll_family = AF_PACKET,
		.sll_protocol = htons(0x88b5),
		.sll_ifindex = if_nametoindex("lo")};
}

static void send_packet(const char *text)
{
	struct sockaddr_ll a = loopback();

	CHECK(sendto(new_packets, text, strlen(text), 0, (struct sockaddr *)&a, sizeof(a)) ==
			(ssize_t)strlen(text),
		"sending a packet: %m");
}

static void make_packet(void)
{
	struct sockaddr_ll a = loopback();

	packets = socket(AF_PACKET, SOCK_DGRAM, 0);
	if (packets < 0 && errno == EPERM)
		victim_skip("needs CAP_NET_RAW");
	some_packets = socket(AF_PACKET, SOCK_DGRAM, htons(0x88b5));
	new_packets = socket(AF_PACKET, SOCK_DGRAM, 0);
	MUST(packets >= 0 && some_packets >= 0 && new_packets >= 0);
	MUST(!bind(packets, (struct sockaddr *)&a, sizeof(a)));
	sock_set(packets, SOL_PACKET, PACKET_AUXDATA, 1);
	sock_set(packets, SOL_PACKET, PACKET_FANOUT, 77 | PACKET_FANOUT_LB << 16);
	member.mr_ifindex = a.sll_ifindex;
	for (int i = 0; i < 2; i++)
		MUST(!setsockopt(
			packets, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &member, sizeof(member)));
	filter(some_packets, 0);
	send_packet("lost");
}

static bool is_heard(void)
{
	char text[4096] = "";
	int fd = open("/proc/net/dev_mcast", O_RDONLY | O_CLOEXEC);

	MUST(fd >= 0 && read(fd, text, sizeof(text) - 1) >= 0 && !close(fd));
	return strstr(text, "01005e0000fb");
}

/* It has been asked for twice. */
static void check_membership(void)
{
	for (int i = 0; i < 2; i++) {
		CHECK(is_heard(), "its address is not heard after %d of 2", i);
		CHECK(!setsockopt(packets, SOL_PACKET, PACKET_DROP_MEMBERSHIP, &member,
			      sizeof(member)),
			"PACKET_DROP_MEMBERSHIP: %m");
	}
	CHECK(!is_heard(), "its address is heard once more");
}

static void check_packet(void)
{
	struct sockaddr_ll a, want = loopback();
	socklen_t size = sizeof(a);
	char rest[8];

	CHECK(!getsockname(packets, (struct sockaddr *)&a, &size) &&
			a.sll_protocol == want.sll_protocol &&
			a.sll_ifindex == want.sll_ifindex,
		"a packet socket is bound to %x of %d", ntohs(a.sll_protocol), a.sll_ifindex);
	size = sizeof(a);
	CHECK(!getsockname(some_packets, (struct sockaddr *)&a, &size) && !a.sll_ifindex &&
			a.sll_protocol == want.sll_protocol,
		"that of all interfaces is bound to %x of %d", ntohs(a.sll_protocol),
		a.sll_ifindex);
	size = sizeof(a);
	CHECK(!getsockname(new_packets, (struct sockaddr *)&a, &size) && !a.sll_ifindex &&
			!a.sll_protocol,
		"a new packet socket is bound");
	CHECK(sock_int(packets, SOL_PACKET, PACKET_AUXDATA) == 1, "PACKET_AUXDATA");
	CHECK(sock_int(packets, SOL_PACKET, PACKET_FANOUT) == (77 | PACKET_FANOUT_LB << 16),
		"PACKET_FANOUT is %x", sock_int(packets, SOL_PACKET, PACKET_FANOUT));
	while (recv(packets, rest, sizeof(rest), MSG_DONTWAIT) >= 0)
		; /* not lost in a program that runs on */
	send_packet("bad");
	send_packet("alright");
	COMES(packets, "bad");
	COMES(packets, "alright");
	COMES(some_packets, "alright");
	EMPTY(some_packets);
	check_membership();
}

static void check_raw(void)
{
	struct icmphdr echo = {.type = ICMP_ECHO, .un.echo = {htons(77), htons(1)}};
	struct pollfd p = {.fd = raw, .events = POLLIN};
	struct icmp_filter v4 = {0};
	struct icmp6_filter v6;
	socklen_t size = sizeof(v4);
	char packet[128];

	CHECK(!getsockopt(raw, SOL_RAW, ICMP_FILTER, &v4, &size) &&
			v4.data == ~(1u << ICMP_ECHOREPLY),
		"ICMP_FILTER is %x", v4.data);
	size = sizeof(v6);
	CHECK(!getsockopt(raw6, IPPROTO_ICMPV6, ICMP6_FILTER, &v6, &size) &&
			ICMP6_FILTER_WILLPASS(ICMP6_ECHO_REPLY, &v6) &&
			ICMP6_FILTER_WILLBLOCK(ICMP6_ECHO_REQUEST, &v6),
		"ICMP6_FILTER");
	echo.checksum = ~(htons(ICMP_ECHO << 8) + htons(77) + htons(1));
	CHECK(sendto(raw, &echo, sizeof(echo), 0, (struct sockaddr *)&self, sizeof(self)) ==
			sizeof(echo),
		"an echo request");
	CHECK(poll(&p, 1, 60000) == 1 && recv(raw, packet, sizeof(packet), 0) == 28,
		"its reply");
	CHECK(packet[20] == ICMP_ECHOREPLY, "type %d", packet[20]);
	CHECK(send(connected, "x", 1, 0) == 1, "a connected one sends");
	CHECK(recv(connected, packet, sizeof(packet), 0) == 21 && packet[20] == 'x',
		"and receives");
}

static void check_ping(void)
{
	struct icmphdr echo = {.type = ICMP_ECHO, .un.echo.sequence = htons(9)}, reply;
	struct sockaddr_in a;
	socklen_t size = sizeof(a);

	if (ping < 0)
		return;
	CHECK(!getsockname(ping, (struct sockaddr *)&a, &size) && !memcmp(&a, &ping_name, size),
		"it has another id");
	CHECK(sendto(ping, &echo, sizeof(echo), 0, (struct sockaddr *)&self, sizeof(self)) ==
			sizeof(echo),
		"an echo request");
	CHECK(recv(ping, &reply, sizeof(reply), 0) == sizeof(reply) &&
			reply.un.echo.sequence == htons(9) &&
			reply.un.echo.id == ping_name.sin_port,
		"its reply");
	CHECK(!getsockname(unused_ping, (struct sockaddr *)&a, &size) && !a.sin_port,
		"an unused one has id %u", ntohs(a.sin_port));
}

static void check_lite(void)
{
	if (lite[0] < 0)
		return;
	CHECK(sock_int(lite[0], SOL_UDPLITE, SEND_COVERAGE) == 16, "UDPLITE_SEND_CSCOV");
	COMES(lite[1], "lite");
	CHECK(send(lite[0], "again", 5, 0) == 5, "sending");
	COMES(lite[1], "again");
}

static void check_filtered(void)
{
	struct sockaddr_in a;
	socklen_t size = sizeof(a);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	COMES(filtered[0], "before");
	CHECK(send(filtered[1], "bad", 3, 0) == 3 || errno == EPERM, "sending");
	CHECK(send(filtered[1], "alright", 7, 0) == 7, "sending");
	COMES(filtered[0], "alright");
	CHECK(!getsockname(locked, (struct sockaddr *)&a, &size) &&
			sendto(fd, "bad", 3, 0, (struct sockaddr *)&a, size) == 3 &&
			sendto(fd, "a", 1, 0, (struct sockaddr *)&a, size) == 1,
		"sending");
	COMES(locked, "a");
	EMPTY(locked);
	CHECK(setsockopt(locked, SOL_SOCKET, SO_DETACH_FILTER, &fd, sizeof(fd)) < 0 &&
			errno == EPERM,
		"a locked filter can be removed");
}

static bool is_in_group(int fd, unsigned group)
{
	uint32_t groups[8] = {0};
	socklen_t size = sizeof(groups);

	CHECK(!getsockopt(fd, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, groups, &size), "groups");
	return groups[(group - 1) / 32] & 1u << (group - 1) % 32;
}

static void check_netlink(void)
{
	struct sockaddr_nl a;
	socklen_t size = sizeof(a);

	CHECK(!getsockname(unbound, (struct sockaddr *)&a, &size) && !a.nl_pid,
		"an unbound one has port %u", a.nl_pid);
	CHECK(is_in_group(unbound, RTNLGRP_IPV4_IFADDR) && !is_in_group(unbound, RTNLGRP_LINK),
		"groups of an unbound one");
	CHECK(!getsockname(grouped, (struct sockaddr *)&a, &size) &&
			!memcmp(&a, &grouped_name, size),
		"a bound one has port %u", a.nl_pid);
	CHECK(is_in_group(grouped, RTNLGRP_LINK) && is_in_group(grouped, RTNLGRP_NEXTHOP),
		"groups of a bound one");
	CHECK(!getpeername(peered, (struct sockaddr *)&a, &size) &&
			a.nl_pid == owner_name.nl_pid,
		"its peer is %u", a.nl_pid);
	CHECK(send(peered, "direct", 6, 0) == 6, "sending to it");
	COMES(owner, "direct");
}

int main(void)
{
	/* First: netlink sockets are notified of its interface. */
	make_packet();
	make_raw();
	make_ping();
	make_lite();
	make_filtered();
	make_netlink();
	victim_ready();
	victim_wait();
	check_raw();
	check_ping();
	check_lite();
	check_filtered();
	check_netlink();
	check_packet();
	return victim_done();
}
