/*
 * A question to the supervisor of this process, by its control socket: from here, as the program does not
 * see the descriptor.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lower/runtime.h"
#include "shared/launcher_variables.h"

static int connect_to(const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd, r;

	if (!name || strlen(name) >= sizeof(a.sun_path))
		return -ENOENT;
	memcpy(a.sun_path, name, strlen(name)); /* the rest is zero */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&a, sizeof(a)))
		return fd;
	r = -errno;
	close(fd);
	return r;
}

/* The supervisor closes the connection behind it. */
static int hear_answer(int fd)
{
	char answer[64];
	size_t used = 0;
	ssize_t n;

	do {
		n = recv(fd, answer + used, sizeof(answer) - used, 0);
		if (n > 0)
			used += n;
	} while (used < sizeof(answer) && (n > 0 || (n < 0 && errno == EINTR)));
	if (used >= 3 && !memcmp(answer, "ok ", 3))
		return 0;
	if (used >= 3 && !memcmp(answer, "no ", 3))
		return -EPERM;
	return used >= 6 && !memcmp(answer, "later ", 6) ? -EAGAIN : -EIO;
}

int supervisor_ask(const char *question)
{
	int fd = connect_to(getenv(SUPERVISOR_VARIABLE)), r;

	if (fd < 0)
		return fd;
	r = send(fd, question, strlen(question), MSG_NOSIGNAL) < 0 ? -errno : hear_answer(fd);
	close(fd);
	return r;
}
