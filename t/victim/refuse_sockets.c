/* Sockets that a checkpoint refuses. */
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/un.h>

#include "refuse.h"
#include "sockets.h"

/* The test's own server: its port is in the environment. */
static void outside(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};

	need(getenv("OUTSIDE_PORT"), "no server");
	a.sin_port = htons(atoi(getenv("OUTSIDE_PORT")));
	need_socket(AF_INET, SOCK_STREAM, 0);
	MUST(!connect(fd, (struct sockaddr *)&a, sizeof(a)));
}

/* Packets of its own to itself, which it has not read. */
static void raw(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};

	need_socket(AF_INET, SOCK_RAW, 253); /* for experiments (RFC 3692) */
	MUST(sendto(fd, "x", 1, 0, (struct sockaddr *)&a, sizeof(a)) == 1);
}

static void still_raw(void)
{
	char packet[32];

	CHECK(recv(fd, packet, sizeof(packet), MSG_DONTWAIT) == 21, "the packet is gone");
}

static void packet(void)
{
	const struct tpacket_req ring = {4096, 2, 2048, 4};

	need_socket(AF_PACKET, SOCK_RAW, 0);
	MUST(!setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof(ring)));
}

static void packet_type(void)
{
	need_socket(AF_INET, SOCK_PACKET, htons(ETH_P_ALL));
}

/* Which of a group of sockets gets a packet, a program chooses. */
static void packet_fanout(void)
{
	const struct sockaddr_ll at = {.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_LOOP),
		.sll_ifindex = if_nametoindex("lo")};
	int group = (getpid() & 0xffff) | 6 /* PACKET_FANOUT_CBPF */ << 16;

	need_socket(AF_PACKET, SOCK_RAW, 0);
	MUST(!bind(fd, (const struct sockaddr *)&at, sizeof(at)) &&
		!setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &group, sizeof(group)));
}

static void xdp(void)
{
	need_socket(AF_XDP, SOCK_RAW, 0);
}

static void vsock(void)
{
	need_socket(AF_VSOCK, SOCK_STREAM, 0);
}

static void alg(void)
{
	need_socket(AF_ALG, SOCK_SEQPACKET, 0);
}

static void urgent(void)
{
	int pair[2];

	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	fd = pair[0];
	other = pair[1];
	need(send(other, "!", 1, MSG_OOB) == 1, "no urgent data");
}

static void still_urgent(void)
{
	char c = 0;

	CHECK(recv(fd, &c, 1, MSG_OOB) == 1 && c == '!', "urgent data");
}

static void headers(void)
{
	const char nothing_but_ends[4] = {IPOPT_NOP, IPOPT_NOP, IPOPT_NOP, IPOPT_END};

	need_socket(AF_INET, SOCK_DGRAM, 0);
	MUST(!setsockopt(fd, IPPROTO_IP, IP_OPTIONS, nothing_but_ends, 4));
}

static void headers6(void)
{
	/* Next header, units of 8 bytes beyond the first; padding of 6 bytes (RFC 8200, 4.2).
	 */
	const char padding[8] = {0, 0, 1, 4};

	need_socket(AF_INET6, SOCK_DGRAM, 0);
	need(!setsockopt(fd, IPPROTO_IPV6, IPV6_DSTOPTS, padding, sizeof(padding)),
		"no such option here");
}

/* A filter that the kernel does not show: an eBPF program, "return 0xffff". */
static void filter(void)
{
	struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0xffff},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr load = {
		.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.insns = (uintptr_t)code,
		.insn_cnt = 2,
		.license = (uintptr_t) "GPL",
	};
	int program = syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load));

	need(program >= 0, "no BPF");
	need_socket(AF_INET, SOCK_DGRAM, 0);
	MUST(!setsockopt(fd, SOL_SOCKET, SO_ATTACH_BPF, &program, sizeof(program)));
	close(program);
}

/* A connection that is not accepted yet, with bytes in it. */
static void wait_unaccepted(struct sockaddr *a, socklen_t size)
{
	MUST((other = socket(a->sa_family, SOCK_STREAM, 0)) >= 0);
	MUST(!bind(other, a, size) && !listen(other, 1) && !getsockname(other, a, &size));
	need_socket(a->sa_family, SOCK_STREAM, 0);
	MUST(!connect(fd, a, size) && write(fd, "early", 5) == 5);
}

static void unaccepted(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "unaccepted"};

	wait_unaccepted((struct sockaddr *)&a, sizeof(a));
}

static void unaccepted_tcp(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};

	wait_unaccepted((struct sockaddr *)&a, sizeof(a));
}

/* While the backlog is full the other end has not even taken the bytes. */
static void unaccepted_full(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(a);
	int first, on = 1, off = 0;

	need_socket(AF_INET, SOCK_STREAM, 0);
	MUST((first = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
	MUST((other = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
	/* It is not in the backlog before something has come. */
	MUST(!setsockopt(other, IPPROTO_TCP, TCP_DEFER_ACCEPT, &on, sizeof(on)));
	MUST(!listen(other, 8) && !getsockname(other, (struct sockaddr *)&a, &size));
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	MUST(!connect(fd, (struct sockaddr *)&a, size) && !listen(other, 0));
	MUST(!setsockopt(other, IPPROTO_TCP, TCP_DEFER_ACCEPT, &off, sizeof(off)));
	MUST(!connect(first, (struct sockaddr *)&a, size));
	MUST(write(fd, "early", 5) == 5);
}

static void still_unaccepted_full(void)
{
	char text[6] = "";
	int accepted;

	MUST(accept(other, NULL, NULL) >= 0);
	accepted = accept(other, NULL, NULL);
	CHECK(recv(accepted, text, 5, MSG_WAITALL) == 5 && !strcmp(text, "early"), "'%s'",
		text);
}

static void still_unaccepted(void)
{
	int accepted = accept(other, NULL, NULL);
	char text[6] = "";

	CHECK(recv(accepted, text, 5, MSG_WAITALL) == 5 && !strcmp(text, "early"), "'%s'",
		text);
}

/* From where the program has come back. */
static void socket_namespace(void)
{
	other = open("/proc/self/ns/net", O_RDONLY);
	need(!unshare(CLONE_NEWNET), "no network namespaces here");
	need_socket(AF_INET, SOCK_STREAM, 0);
	MUST(!setns(other, CLONE_NEWNET) && !close(other));
}

/* Asked for, and not read. */
static void kernel_answer(void)
{
	need_socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	MUST(sock_ask_links(fd));
}

static void still_answer(void)
{
	char answer[256];

	CHECK(recv(fd, answer, sizeof(answer), MSG_DONTWAIT) > 0, "the answer");
}

static socklen_t bind_inet(int to, struct sockaddr_in *a)
{
	socklen_t size = sizeof(*a);

	*a = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	MUST(!bind(to, (struct sockaddr *)a, size) &&
		!getsockname(to, (struct sockaddr *)a, &size));
	return size;
}

/* It would be longer yet. */
static void corked(void)
{
	struct sockaddr_in a;

	need_socket(AF_INET, SOCK_DGRAM, 0);
	MUST(!connect(fd, (struct sockaddr *)&a, bind_inet(fd, &a)));
	MUST(send(fd, "part", 4, MSG_MORE) == 4);
}

static void still_corked(void)
{
	char text[8];

	CHECK(send(fd, "ial", 3, 0) == 3 && recv(fd, text, 8, MSG_DONTWAIT) == 7 &&
			!memcmp(text, "partial", 7),
		"the datagram");
}

/* Between other and fd. */
static void connect_tcp(void)
{
	int listening = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a;
	socklen_t size = bind_inet(listening, &a);

	other = socket(AF_INET, SOCK_STREAM, 0);
	MUST(!listen(listening, 1) && !connect(other, (struct sockaddr *)&a, size));
	fd = accept(listening, NULL, NULL);
	MUST(fd >= 0);
}

static void tcp_urgent(void)
{
	connect_tcp();
	MUST(send(other, "!", 1, MSG_OOB) == 1);
}

static void await_report(void)
{
	struct pollfd p = {.fd = fd};

	need(poll(&p, 1, 60000) == 1 && p.revents & POLLERR, "no reports here");
}

/* That the memory of what was sent is free again. */
static void zerocopy(void)
{
	connect_tcp();
	need(!setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &(int){1}, sizeof(int)) &&
			send(fd, "sent", 4, 0x4000000 /* MSG_ZEROCOPY */) == 4,
		"nothing is sent without a copy here");
	await_report();
}

/* That nobody has the port. */
static void datagram_error(void)
{
	int closed = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in a;
	socklen_t size = bind_inet(closed, &a);

	close(closed);
	need_socket(AF_INET, SOCK_DGRAM, 0);
	MUST(!setsockopt(fd, IPPROTO_IP, IP_RECVERR, &(int){1}, sizeof(int)));
	MUST(sendto(fd, "sent", 4, 0, (struct sockaddr *)&a, size) == 4);
	await_report();
}

static void still_reports(void)
{
	char data[8], control[256];
	struct iovec iov = {data, sizeof(data)};
	struct msghdr h = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};

	CHECK(recvmsg(fd, &h, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0 && h.msg_controllen, "%s",
		strerror(errno));
}

static void still_tcp_urgent(void)
{
	char c = 0;

	CHECK(recv(fd, &c, 1, MSG_OOB) == 1 && c == '!', "urgent data");
}

/* From a socket that somebody else has: it cannot be sent again. */
static void datagram_from_outside(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	char c;

	need(getenv("OUTSIDE_PORT"), "no server");
	a.sin_port = htons(atoi(getenv("OUTSIDE_PORT")));
	need_socket(AF_INET, SOCK_DGRAM, 0);
	MUST(sendto(fd, "echo", 4, 0, (struct sockaddr *)&a, sizeof(a)) == 4);
	MUST(recv(fd, &c, 1, MSG_PEEK) == 1);
}

static void unix_outside(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	need(getenv("OUTSIDE_UNIX"), "no server");
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", getenv("OUTSIDE_UNIX"));
	need_socket(AF_UNIX, SOCK_STREAM, 0);
	MUST(!connect(fd, (struct sockaddr *)&a, sizeof(a)));
}

/* Bound to a relative name, in a directory in which the program is no more. */
static void relative_name(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "relative"};

	need_socket(AF_UNIX, SOCK_STREAM, 0);
	other = ioctl(fd, SIOCPROTOPRIVATE /* SIOCUNIXFILE */);
	need(other < 0 && errno == EPERM, "the kernel tells files of sockets here");
	MUST(!mkdir("left", 0700) && !chdir("left"));
	MUST(!bind(fd, (struct sockaddr *)&a, sizeof(a)) && !listen(fd, 1) && !chdir(".."));
}

static void still_relative(void)
{
	CHECK(!access("left/relative", F_OK), "the file is gone");
}

static void still_answers(void)
{
	char text[8];

	CHECK(recv(fd, text, 4, MSG_WAITALL) == 4 && !memcmp(text, "echo", 4), "echo");
}

static void still_outside(void)
{
	CHECK(write(fd, "echo", 4) == 4, "the connection is broken: %s", strerror(errno));
	still_answers();
}

static int listening, accepted;

static void multipath(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(a);

	listening = socket(AF_INET, SOCK_STREAM, 262 /* IPPROTO_MPTCP */);
	need(listening >= 0, "no Multipath TCP here");
	MUST(!bind(listening, (struct sockaddr *)&a, size) && !listen(listening, 1) &&
		!getsockname(listening, (struct sockaddr *)&a, &size));
	need_socket(AF_INET, SOCK_STREAM, 262);
	MUST(!connect(fd, (struct sockaddr *)&a, size));
	accepted = accept(listening, NULL, NULL);
	MUST(accepted >= 0 && !close(listening) && write(fd, "text", 4) == 4);
}

static void still_multipath(void)
{
	COMES(accepted, "text");
}

static const struct sockaddr_in *any_port(void)
{
	static struct sockaddr_in a = {.sin_family = AF_INET};

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return &a;
}

/* A socket that listens, for connections from its own address; another has a filter and no key. */
static void signed_packets(void)
{
	struct sock_filter all = {BPF_RET | BPF_K, 0, 0, UINT32_MAX};
	struct sock_fprog filter = {1, &all};
	struct tcp_md5sig key = {.tcpm_keylen = 4, .tcpm_key = "key"};
	socklen_t size = sizeof(struct sockaddr_in);

	memcpy(&key.tcpm_addr, any_port(), size);
	other = socket(AF_INET, SOCK_STREAM, 0);
	need_socket(AF_INET, SOCK_STREAM, 0);
	need(!setsockopt(fd, IPPROTO_TCP, TCP_MD5SIG, &key, sizeof(key)),
		"no such option here");
	for (int i = 0; i < 2; i++) {
		int s = i ? fd : other;

		/* Where only root may attach one, without. */
		MUST(!setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ||
			errno == EPERM);
		MUST(!bind(s, (const struct sockaddr *)any_port(), size) && !listen(s, 1));
	}
}

/* Those without it are not heard. */
static void still_signed(void)
{
	struct sockaddr_in a;
	socklen_t size = sizeof(a);
	int c = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	MUST(!getsockname(fd, (struct sockaddr *)&a, &size) && c >= 0);
	CHECK(connect(c, (struct sockaddr *)&a, size) && errno == EINPROGRESS, "connected");
	close(c);
}

static const struct kind kinds[] = {
	{"outside", outside, still_outside, 'd'},
	{"raw", raw, still_raw, 'd'},
	{"packet", packet, nothing, 'd'},
	{"packet-type", packet_type, nothing, 'd'},
	{"packet-fanout", packet_fanout, nothing, 'd'},
	{"xdp", xdp, nothing, 'd'},
	{"vsock", vsock, nothing, 'd'},
	{"alg", alg, nothing, 'd'},
	{"urgent", urgent, still_urgent, 'd'},
	{"headers", headers, nothing, 'd'},
	{"headers6", headers6, nothing, 'd'},
	{"filter", filter, nothing, 'd'},
	{"unaccepted", unaccepted, still_unaccepted, 'd'},
	{"unaccepted-tcp", unaccepted_tcp, still_unaccepted, 'd'},
	{"unaccepted-full", unaccepted_full, still_unaccepted_full, 'd'},
	{"kernel-answer", kernel_answer, still_answer, 'd'},
	{"corked", corked, still_corked, 'd'},
	{"datagram-from-outside", datagram_from_outside, still_answers, 'd'},
	{"unix-outside", unix_outside, still_outside, 'd'},
	{"relative-name", relative_name, still_relative, 'd'},
	{"zerocopy", zerocopy, still_reports, 'd'},
	{"datagram-error", datagram_error, still_reports, 'd'},
	{"socket-namespace", socket_namespace, nothing, 'd'},
	{"multipath", multipath, still_multipath, '-'},
	{"tcp-urgent", tcp_urgent, still_tcp_urgent, 'd'},
	{"signed-packets", signed_packets, still_signed, 'd'},
};

int main(int argc, char **argv)
{
	return refuse_main(kinds, sizeof(kinds) / sizeof(kinds[0]), argv[1]);
}
