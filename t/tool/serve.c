/*
 * serve - a server of the outside world: prints its port, and sends back what it gets.
 *
 *	serve [-6] [GREETING [PATH]]
 *	serve -c PORT GREETING		a client, of a server at that port, or one to come
 *
 * Each connection is greeted. When one ends, "closed" is printed, or "reset". At the same port
 * it answers datagrams; at PATH it listens as a UNIX socket. With -6 it is reached at ::1.
 *
 * At SIGUSR1 it sends "later" to all, and then prints "heard" when the kernels of all have
 * said that this has come, or "unheard" when one had to be told again. At SIGUSR2 it prints
 * "heard" when they have said so of all that was sent.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 16

enum { TCP = CONNECTIONS, LOCAL, UDP, ALL };

static const struct timespec moment = {.tv_nsec = 10000000};

static struct pollfd fds[ALL];
static volatile sig_atomic_t asked;

static void note_signal(int signal)
{
	asked = signal;
}

static int serve_at(struct sockaddr_in6 *a)
{
	socklen_t size = sizeof(*a);
	int fd = socket(a->sin6_family, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)a, size) || listen(fd, 5) ||
		getsockname(fd, (struct sockaddr *)a, &size)) {
		perror("serve");
		exit(1);
	}
	return fd;
}

static int serve_datagrams(const struct sockaddr_in6 *a)
{
	int fd = socket(a->sin6_family, SOCK_DGRAM, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)a, sizeof(*a))) {
		perror("serve");
		exit(1);
	}
	return fd;
}

static int serve_locally(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 5)) {
		perror("serve");
		exit(1);
	}
	return fd;
}

static void answer(int fd)
{
	struct sockaddr_in from;
	socklen_t size = sizeof(from);
	char data[4096];
	ssize_t n = recvfrom(fd, data, sizeof(data), 0, (struct sockaddr *)&from, &size);

	if (n >= 0)
		(void)!sendto(fd, data, n, 0, (struct sockaddr *)&from, size);
}

static void greet(int fd, const char *greeting)
{
	for (int i = 0; i < CONNECTIONS; i++)
		if (fds[i].fd < 0) {
			fds[i].fd = fd;
			(void)!write(fd, greeting, strlen(greeting));
			return;
		}
	close(fd);
}

static int be_client(struct sockaddr_in6 *a)
{
	int fd;

	while ((fd = socket(a->sin6_family, SOCK_STREAM, 0)) >= 0 &&
		connect(fd, (struct sockaddr *)a, sizeof(*a))) {
		close(fd);
		nanosleep(&moment, NULL);
	}
	return fd;
}

/* How often its kernel has sent something again. */
static unsigned repeats(int fd)
{
	struct tcp_info info = {0};
	socklen_t size = sizeof(info);

	(void)getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size);
	return info.tcpi_total_retrans;
}

/* Also of one that has ended. */
static bool is_heard(int fd)
{
	int unheard = 0;

	return ioctl(fd, SIOCOUTQ, &unheard) || !unheard;
}

static bool tell(int fd, bool more)
{
	unsigned before = repeats(fd);

	if (more && write(fd, "later", 5) != 5)
		return true;
	while (!is_heard(fd)) {
		if (more && repeats(fd) > before)
			return false;
		nanosleep(&moment, NULL);
	}
	return true;
}

static void tell_all(bool more)
{
	bool heard = true;

	asked = 0;
	for (int i = 0; i < CONNECTIONS; i++)
		if (fds[i].fd >= 0)
			heard &= tell(fds[i].fd, more);
	puts(heard ? "heard" : "unheard");
}

static void set_address(struct sockaddr_in6 *a6, bool v6, int port)
{
	struct sockaddr_in *a = (struct sockaddr_in *)a6;

	if (v6) {
		a6->sin6_family = AF_INET6;
		a6->sin6_addr = in6addr_loopback;
	} else {
		a->sin_family = AF_INET;
		a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	}
	a->sin_port = htons(port); /* at the same place in both */
}

static void echo(struct pollfd *p)
{
	char data[4096];
	ssize_t n = read(p->fd, data, sizeof(data));

	if (n > 0 && write(p->fd, data, n) == n)
		return;
	printf("%s\n", n == 0 ? "closed" : "reset");
	close(p->fd);
	p->fd = -1;
}

static void serve(const char *greeting)
{
	for (int i = 0; i < CONNECTIONS; i++)
		if (fds[i].fd >= 0 && fds[i].revents)
			echo(&fds[i]);
	for (int i = TCP; i <= LOCAL; i++)
		if (fds[i].revents)
			greet(accept(fds[i].fd, NULL, NULL), greeting);
	if (fds[UDP].revents)
		answer(fds[UDP].fd);
}

int main(int argc, char *argv[])
{
	const struct sigaction action = {.sa_handler = note_signal};
	struct sockaddr_in6 a = {0};
	const char *client = NULL;
	bool v6 = false;
	int c, n;

	while ((c = getopt(argc, argv, "6c:")) != -1) {
		if (c == '?')
			return 2;
		v6 |= c == '6';
		client = c == 'c' ? optarg : client;
	}
	argv += optind;
	argc -= optind;
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < ALL; i++)
		fds[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	set_address(&a, v6, client ? atoi(client) : 0);
	if (client) {
		greet(be_client(&a), argc ? argv[0] : "");
	} else {
		fds[TCP].fd = serve_at(&a);
		fds[UDP].fd = serve_datagrams(&a);
	}
	if (argc > 1)
		fds[LOCAL].fd = serve_locally(argv[1]);
	printf("%d\n", ntohs(a.sin6_port));
	while ((n = poll(fds, ALL, -1)) >= 0 || errno == EINTR) {
		if (n > 0)
			serve(argc ? argv[0] : "");
		if (asked)
			tell_all(asked == SIGUSR1);
	}
	return 1;
}
