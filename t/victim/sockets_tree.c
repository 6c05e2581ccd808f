/* Sockets between processes: a server and its children, each with a connection, over UNIX and
 * TCP, a pair between parent and child, an epoll set that watches them, calls that wait in them
 * (accept, recv, connect). */
#include <netinet/in.h>
#include <sys/epoll.h>

#include "sockets.h"

#define CHILDREN 4

static int listening[2], control[CHILDREN][2], accepted[CHILDREN], epoll;
static pid_t child[CHILDREN];
static struct sockaddr_storage name[2];
static socklen_t size[2];

void victim_hurt(void)
{
	kill(child[0], SIGKILL);
	waitpid(child[0], NULL, 0);
}

static void listen_at(int i, int family, const void *a, socklen_t n)
{
	listening[i] = socket(family, SOCK_STREAM, 0);
	MUST(listening[i] >= 0 && !bind(listening[i], a, n) && !listen(listening[i], 5));
	size[i] = sizeof(name[i]);
	MUST(!getsockname(listening[i], (struct sockaddr *)&name[i], &size[i]));
}

/* Asks for a number and adds to it, again and again, as the parent says. */
static void serve(int n)
{
	int fd = socket(name[n % 2].ss_family, SOCK_STREAM, 0), number;
	char go;

	MUST(!connect(fd, (struct sockaddr *)&name[n % 2], size[n % 2]));
	for (int i = 0; i <= n; i++)
		close(control[i][0]);
	MUST(write(fd, &n, sizeof(n)) == sizeof(n));
	while (read(control[n][1], &go, 1) == 1) {
		if (recv(fd, &number, sizeof(number), MSG_WAITALL) != sizeof(number))
			_exit(2);
		number += n;
		if (write(fd, &number, sizeof(number)) != sizeof(number))
			_exit(3);
	}
	_exit(n);
}

static void start(int n)
{
	struct epoll_event event = {.events = EPOLLIN, .data = {.u32 = n}};
	int number;

	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control[n]));
	child[n] = fork();
	if (!child[n])
		serve(n);
	close(control[n][1]);
	control[n][1] = -1;
	accepted[n] = accept(listening[n % 2], NULL, NULL);
	MUST(accepted[n] >= 0);
	MUST(recv(accepted[n], &number, sizeof(number), MSG_WAITALL) == sizeof(number));
	MUST(!epoll_ctl(epoll, EPOLL_CTL_ADD, accepted[n], &event));
}

static void check_cred(int n)
{
	struct ucred cred = {0};
	socklen_t length = sizeof(cred);

	if (n % 2)
		return;
	CHECK(!getsockopt(accepted[n], SOL_SOCKET, SO_PEERCRED, &cred, &length) &&
			cred.pid == child[n],
		"SO_PEERCRED of child %d (%d) is %d", n, child[n], cred.pid);
	length = sizeof(cred);
	CHECK(!getsockopt(control[n][0], SOL_SOCKET, SO_PEERCRED, &cred, &length) &&
			cred.pid == getpid(),
		"SO_PEERCRED of a pair is %d", cred.pid);
}

static void check_child(int n)
{
	struct epoll_event event;
	int number = 100 * n, status;

	CHECK(epoll_wait(epoll, &event, 1, 0) == 0, "something comes from %d", event.data.u32);
	CHECK(write(accepted[n], &number, sizeof(number)) == sizeof(number), "telling %d", n);
	CHECK(write(control[n][0], "", 1) == 1, "letting %d go", n);
	CHECK(epoll_wait(epoll, &event, 1, 10000) == 1 && event.data.u32 == (unsigned)n,
		"nothing comes from %d", n);
	CHECK(recv(accepted[n], &number, sizeof(number), MSG_DONTWAIT) == sizeof(number) &&
			number == 101 * n,
		"%d says %d", n, number);
	/* Younger children have it open, too. */
	CHECK(!epoll_ctl(epoll, EPOLL_CTL_DEL, accepted[n], NULL), "watched %d", n);
	close(control[n][0]);
	CHECK(waitpid(child[n], &status, 0) == child[n] && WIFEXITED(status) &&
			WEXITSTATUS(status) == n,
		"child %d ended with %#x", n, status);
}

int main(void)
{
	struct sockaddr_un local = {.sun_family = AF_UNIX, .sun_path = "server"};
	struct sockaddr_in inet = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};

	listen_at(0, AF_UNIX, &local, sizeof(local));
	listen_at(1, AF_INET, &inet, sizeof(inet));
	epoll = epoll_create1(EPOLL_CLOEXEC);
	for (int n = 0; n < CHILDREN; n++)
		start(n);
	victim_ready();
	victim_wait();
	for (int n = 0; n < CHILDREN; n++)
		check_cred(n);
	for (int n = 0; n < CHILDREN; n++)
		check_child(n);
	return victim_done();
}
