/* A datagram socket that sends to a name outside the program ($LOG_SOCKET), as syslog(3) does.
 */
#include "sockets.h"

static int fd;

void victim_hurt(void)
{
	shutdown(fd, SHUT_WR);
}

int main(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX}, b = {0};
	socklen_t size = sizeof(b);
	const char *path = getenv("LOG_SOCKET");

	signal(SIGPIPE, SIG_IGN);
	if (!path)
		victim_skip("there is no log");
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	MUST(!connect(fd, (struct sockaddr *)&a, sizeof(a)));
	MUST(write(fd, "before\n", 7) == 7);
	victim_ready();
	victim_wait();
	CHECK(!getpeername(fd, (struct sockaddr *)&b, &size) && !strcmp(a.sun_path, b.sun_path),
		"it is connected to '%s'", b.sun_path);
	CHECK(write(fd, "after\n", 6) == 6, "sending: %s", strerror(errno));
	return victim_done();
}
