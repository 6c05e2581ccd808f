/*
 * serve - a server of the outside world: prints its port, and sends back what it gets.
 *
 *	serve [GREETING [PATH]]
 *
 * Each connection is greeted. When one ends, "closed" is printed, or "reset". At the same port
 *it answers datagrams; at PATH it listens as a UNIX socket.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CONNECTIONS 16

enum { TCP = CONNECTIONS, LOCAL, UDP, ALL };

static struct pollfd fds[ALL];

static int serve_at(struct sockaddr_in *a)
{
	socklen_t size = sizeof(*a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	a->sin_family = AF_INET;
	a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)a, size) || listen(fd, 5) ||
		getsockname(fd, (struct sockaddr *)a, &size)) {
		perror("serve");
		exit(1);
	}
	return fd;
}

static int serve_datagrams(const struct sockaddr_in *a)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

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

static void welcome(int listening, const char *greeting)
{
	int fd = accept(listening, NULL, NULL);

	for (int i = 0; i < CONNECTIONS; i++)
		if (fds[i].fd < 0) {
			fds[i].fd = fd;
			(void)!write(fd, greeting, strlen(greeting));
			return;
		}
	close(fd);
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

int main(int argc, char *argv[])
{
	struct sockaddr_in a = {0};

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < ALL; i++)
		fds[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	fds[TCP].fd = serve_at(&a);
	fds[UDP].fd = serve_datagrams(&a);
	if (argc > 2)
		fds[LOCAL].fd = serve_locally(argv[2]);
	printf("%d\n", ntohs(a.sin_port));
	while (poll(fds, ALL, -1) >= 0 || errno == EINTR) {
		for (int i = 0; i < CONNECTIONS; i++)
			if (fds[i].fd >= 0 && fds[i].revents)
				echo(&fds[i]);
		for (int i = TCP; i <= LOCAL; i++)
			if (fds[i].revents)
				welcome(fds[i].fd, argc > 1 ? argv[1] : "");
		if (fds[UDP].revents)
			answer(fds[UDP].fd);
	}
	return 1;
}
