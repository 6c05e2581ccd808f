/*
 * Options of sockets of all kinds: whatever the kernel knows that a number can be given to, but
 * for what is its own to choose.
 */
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "sockets.h"

#define NAMES 128 /* of options, from 0 on */
#define ROOM  64

enum {
	NEW4,
	NEW6,
	LISTENING,
	CLIENT,
	SERVER,
	UDP4,
	UDP6,
	PAIR,
	OTHER,
	LETTER,
	LETTER_BACK,
	RECORD,
	RECORD_BACK,
	LOCAL,
	ROUTES,
	LOCKED,
	SOCKETS
};

static const int levels[] = {SOL_SOCKET, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, IPPROTO_UDP};
#define LEVELS (sizeof(levels) / sizeof(levels[0]))

/* Counters, ids, what belongs to one moment or to the kernel's own choice. */
static const struct {
	int level, name;
} others[] = {
	{SOL_SOCKET, SO_PEERCRED},
	{SOL_SOCKET, SO_PEERSEC},
	{SOL_SOCKET, SO_PEERNAME},
	{SOL_SOCKET, SO_INCOMING_CPU},
	{SOL_SOCKET, SO_MEMINFO},
	{SOL_SOCKET, SO_INCOMING_NAPI_ID},
	{SOL_SOCKET, SO_COOKIE},
	{SOL_SOCKET, 59 /* SO_PEERGROUPS */},
	{SOL_SOCKET, 71 /* SO_NETNS_COOKIE */},
	{SOL_SOCKET, 73 /* SO_RESERVE_MEM */},
	{SOL_SOCKET, 77 /* SO_PEERPIDFD */},
	{IPPROTO_IP, IP_PKTOPTIONS},
	{IPPROTO_IP, IP_MTU},
	{IPPROTO_IPV6, IPV6_2292PKTOPTIONS},
	{IPPROTO_IPV6, IPV6_MTU},
	{IPPROTO_IPV6, IPV6_PATHMTU},
	{IPPROTO_TCP, TCP_INFO},
	{IPPROTO_TCP, TCP_QUICKACK},
	{IPPROTO_TCP, TCP_REPAIR},
	{IPPROTO_TCP, TCP_REPAIR_QUEUE},
	{IPPROTO_TCP, TCP_QUEUE_SEQ},
	{IPPROTO_TCP, TCP_REPAIR_OPTIONS},
	{IPPROTO_TCP, TCP_TIMESTAMP},
	{IPPROTO_TCP, TCP_CC_INFO},
	{IPPROTO_TCP, TCP_SAVED_SYN},
	{IPPROTO_TCP, TCP_REPAIR_WINDOW},
	{IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE},
};

/* Read from a connection, these show something else. */
static const int of_new_ones[] = {
	TCP_MAXSEG, TCP_DEFER_ACCEPT, TCP_WINDOW_CLAMP, TCP_FASTOPEN, TCP_FASTOPEN_CONNECT};

struct value {
	socklen_t size;
	char data[ROOM];
};

static int sockets[SOCKETS];
static struct value before[SOCKETS][LEVELS][NAMES];

void victim_hurt(void)
{
	sock_set(sockets[UDP6], IPPROTO_IPV6, IPV6_RECVTCLASS, 0);
}

static bool is_other(int which, int level, int name)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (others[i].level == level && others[i].name == name)
			return true;
	for (size_t i = 0; i < sizeof(of_new_ones) / sizeof(of_new_ones[0]); i++)
		if ((which == CLIENT || which == SERVER) && level == IPPROTO_TCP &&
			of_new_ones[i] == name)
			return true;
	return false;
}

static struct value get(int which, size_t level, int name)
{
	struct value v = {.size = ROOM};

	if (is_other(which, levels[level], name) ||
		getsockopt(sockets[which], levels[level], name, v.data, &v.size))
		v.size = 0;
	return v;
}

static bool same(const struct value *a, const struct value *b)
{
	return a->size == b->size && !memcmp(a->data, b->data, a->size);
}

/* Sizes of buffers are locked by being set: to unlock them would leave them to the kernel. */
#define SO_BUF_LOCK 72

/* To another number, if there is one that can be set; true when it is now different. */
static bool change(int which, size_t level, int name)
{
	static const int numbers[] = {1, 2, 3, 5, 1000, 4};
	struct value old = get(which, level, name), now;

	if (which == LOCKED || (levels[level] == SOL_SOCKET && name == SO_BUF_LOCK))
		return false;
	for (size_t i = 0; old.size == sizeof(int) && i < sizeof(numbers) / sizeof(int); i++) {
		if (setsockopt(sockets[which], levels[level], name, &numbers[i], sizeof(int)))
			continue;
		now = get(which, level, name);
		if (!same(&old, &now))
			return true;
	}
	return false;
}

static void make_sockets(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(a);

	sockets[NEW4] = socket(AF_INET, SOCK_STREAM, 0);
	sockets[NEW6] = socket(AF_INET6, SOCK_STREAM, 0);
	sockets[LISTENING] = socket(AF_INET, SOCK_STREAM, 0);
	sockets[CLIENT] = socket(AF_INET, SOCK_STREAM, 0);
	sockets[UDP4] = socket(AF_INET, SOCK_DGRAM, 0);
	sockets[UDP6] = socket(AF_INET6, SOCK_DGRAM, 0);
	sockets[LOCKED] = socket(AF_INET, SOCK_STREAM, 0);
	sockets[LOCAL] = socket(AF_UNIX, SOCK_STREAM, 0);
	sockets[ROUTES] = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, &sockets[PAIR]));
	MUST(!socketpair(AF_UNIX, SOCK_DGRAM, 0, &sockets[LETTER]));
	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, &sockets[RECORD]));
	MUST(!bind(sockets[LISTENING], (struct sockaddr *)&a, sizeof(a)));
	MUST(!listen(sockets[LISTENING], 5));
	MUST(!getsockname(sockets[LISTENING], (struct sockaddr *)&a, &size));
	MUST(!connect(sockets[CLIENT], (struct sockaddr *)&a, size));
	sockets[SERVER] = accept(sockets[LISTENING], NULL, NULL);
	for (int i = 0; i < SOCKETS; i++)
		MUST(sockets[i] >= 0);
}

#define EACH_OPTION(which, level, name)                                                        \
	for (int which = 0; which < SOCKETS; which++)                                          \
		for (size_t level = 0; level < LEVELS; level++)                                \
			for (int name = 0; name < NAMES; name++)

int main(void)
{
	int changed = 0;

	make_sockets();
	EACH_OPTION(s, l, n)
	changed += change(s, l, n);
	MUST(changed > 100);
	/* Since Linux 5.14. */
	(void)setsockopt(sockets[LOCKED], SOL_SOCKET, SO_BUF_LOCK, &(int){3}, sizeof(int));
	EACH_OPTION(s, l, n)
	before[s][l][n] = get(s, l, n);
	victim_ready();
	victim_wait();
	EACH_OPTION(s, l, n)
	{
		struct value now = get(s, l, n);

		CHECK(same(&now, &before[s][l][n]),
			"socket %d, level %d, option %d: %u bytes, %#x; was %u, %#x", s,
			levels[l], n, now.size, *(int *)now.data, before[s][l][n].size,
			*(int *)before[s][l][n].data);
	}
	return victim_done();
}
