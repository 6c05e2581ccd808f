/*
 * serve - a server of the outside world: prints its port, and sends back what it gets.
 *
 *	serve [GREETING]
 *
 * Each connection is greeted. When one ends, "closed" is printed, or "reset".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS 16

static struct pollfd fds[1 + CONNECTIONS];

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

static void welcome(const char *greeting)
{
	int fd = accept(fds[0].fd, NULL, NULL);

	for (int i = 1; i <= CONNECTIONS; i++)
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
	for (int i = 1; i <= CONNECTIONS; i++)
		fds[i].fd = -1;
	for (int i = 0; i <= CONNECTIONS; i++)
		fds[i].events = POLLIN;
	fds[0].fd = serve_at(&a);
	printf("%d\n", ntohs(a.sin_port));
	while (poll(fds, 1 + CONNECTIONS, -1) >= 0 || errno == EINTR) {
		for (int i = 1; i <= CONNECTIONS; i++)
			if (fds[i].fd >= 0 && fds[i].revents)
				echo(&fds[i]);
		if (fds[0].revents)
			welcome(argc > 1 ? argv[1] : "");
	}
	return 1;
}
