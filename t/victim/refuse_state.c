/* Something that a checkpoint refuses: states of descriptors of kinds that are saved otherwise.
 */
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/un.h>
#include <termios.h>

#include "refuse.h"
#include "sockets.h"

/* A pidfd, which fd watches, has changed its number. */
static void epoll_moved(void)
{
	struct epoll_event e = {.events = EPOLLIN};
	int pidfd;

	child = fork();
	if (!child)
		for (;;)
			pause();
	pidfd = syscall(SYS_pidfd_open, child, 0);
	need(pidfd >= 0, "no pidfds");
	fd = epoll_create1(0);
	MUST(!epoll_ctl(fd, EPOLL_CTL_ADD, pidfd, &e));
	other = dup(pidfd);
	MUST(other >= 0 && !close(pidfd));
}

static void still_watches(void)
{
	struct epoll_event e;

	CHECK(!kill(child, SIGKILL) && epoll_wait(fd, &e, 1, 5000) == 1, "the watch");
	CHECK(waitpid(child, NULL, 0) == child, "waitpid: %m");
}

/* Somebody wants to open the file. */
static void breaking_lease(void)
{
	signal(SIGIO, SIG_IGN);
	fd = open("leased", O_RDWR | O_CREAT, 0600);
	need(fd >= 0 && !fcntl(fd, F_SETLEASE, F_WRLCK), "no leases here");
	MUST(open("leased", O_RDONLY | O_NONBLOCK) < 0 && errno == EWOULDBLOCK);
}

/* From where the program has come back. */
static void socket_namespace(void)
{
	other = open("/proc/self/ns/net", O_RDONLY);
	need(!unshare(CLONE_NEWNET), "no network namespaces here");
	need_socket(AF_INET, SOCK_STREAM, 0);
	MUST(!setns(other, CLONE_NEWNET) && !close(other));
}

/* ---- terminals: fd is the master, other the slave ---- */

static void need_terminal(void)
{
	char name[64];

	fd = posix_openpt(O_RDWR | O_NOCTTY);
	need(fd >= 0, "no pseudo-terminals");
	MUST(!grantpt(fd) && !unlockpt(fd) && !ptsname_r(fd, name, sizeof(name)));
	other = open(name, O_RDWR | O_NOCTTY);
	MUST(other >= 0);
}

static void packet_status(void)
{
	need_terminal();
	MUST(!ioctl(fd, TIOCPKT, &(int){1}) && !tcflow(other, TCOOFF));
}

static void still_packet_status(void)
{
	char status = 0;

	CHECK(read(fd, &status, 1) == 1 && status == TIOCPKT_STOP, "status %x", status);
}

static void external_processing(void)
{
	struct termios t;

	need_terminal();
	MUST(!tcgetattr(other, &t));
	t.c_lflag |= 0200000; /* EXTPROC */
	MUST(!tcsetattr(other, TCSANOW, &t));
}

static void locked_settings(void)
{
	struct termios locks = {.c_iflag = IXON};

	need_terminal();
	need(!ioctl(other, TIOCSLCKTRMIOS, &locks), "needs root");
}

/* ---- sockets ---- */

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

/* Groups beyond those that bind(2) knows of. */
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

	need(poll(&p, 1, 5000) == 1 && p.revents & POLLERR, "no reports here");
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

static void still_answers(void)
{
	char text[8];

	CHECK(recv(fd, text, 8, 0) == 4 && !memcmp(text, "echo", 4), "echo");
}

static void still_outside(void)
{
	CHECK(write(fd, "echo", 4) == 4, "%s", strerror(errno));
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

static const struct kind kinds[] = {
	{"epoll-moved", epoll_moved, still_watches, 'd'},
	{"breaking-lease", breaking_lease, nothing, 'd'},
	{"packet-status", packet_status, still_packet_status, 'd'},
	{"external-processing", external_processing, nothing, 'd'},
	{"locked-settings", locked_settings, nothing, 'd'},
	{"kernel-answer", kernel_answer, still_answer, 'd'},
	{"corked", corked, still_corked, 'd'},
	{"datagram-from-outside", datagram_from_outside, still_answers, 'd'},
	{"unix-outside", unix_outside, still_outside, 'd'},
	{"zerocopy", zerocopy, still_reports, 'd'},
	{"datagram-error", datagram_error, still_reports, 'd'},
	{"socket-namespace", socket_namespace, nothing, 'd'},
	{"multipath", multipath, still_multipath, '-'},
	{"tcp-urgent", tcp_urgent, still_tcp_urgent, 'd'},
};

int main(int argc, char **argv)
{
	return refuse_main(kinds, sizeof(kinds) / sizeof(kinds[0]), argv[1]);
}
