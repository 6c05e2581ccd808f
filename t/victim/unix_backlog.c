/* A queue at a listening UNIX socket that is too long for one of the kernel's answers about it.
 */
#include <sys/resource.h>
#include <sys/un.h>

#include "sockets.h"

enum { WAITING = 1000 };

static int listening, client[WAITING];

void victim_hurt(void)
{
	close(accept(listening, NULL, NULL));
}

static void accept_one(int number)
{
	int fd = accept(listening, NULL, NULL), heard = -1;

	MUST(fd >= 0);
	CHECK(write(fd, &number, sizeof(number)) == sizeof(number) &&
			read(client[number], &heard, sizeof(heard)) == sizeof(heard) &&
			heard == number,
		"connection %d is not the next to be accepted", number);
	close(fd);
	close(client[number]);
}

int main(void)
{
	struct rlimit files;
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "long-queue"};

	MUST(!getrlimit(RLIMIT_NOFILE, &files));
	files.rlim_cur = files.rlim_max < 4096 ? files.rlim_max : 4096;
	if (files.rlim_cur < 2 * WAITING || setrlimit(RLIMIT_NOFILE, &files))
		victim_skip("too few files can be open");
	listening = socket(AF_UNIX, SOCK_STREAM, 0);
	MUST(!bind(listening, (struct sockaddr *)&a, sizeof(a)) && !listen(listening, WAITING));
	for (int i = 0; i < WAITING; i++) {
		client[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		if (connect(client[i], (struct sockaddr *)&a, sizeof(a)))
			victim_skip("the queue is too short here (net.core.somaxconn)");
	}
	victim_ready();
	victim_wait();
	for (int i = 0; i < WAITING && !victim_failures; i++)
		accept_one(i);
	unlink(a.sun_path);
	return victim_done();
}
