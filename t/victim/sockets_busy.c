/* Connections made, sent on and accepted all the time, by threads of one program: UNIX and TCP,
 * with descriptors passed along. No turn may be lost or seen twice. */
#include <netinet/in.h>

#include "sockets.h"

#define TURNS_MIN 50

static struct sockaddr_storage name[2];
static socklen_t size[2];
static int listening[2];
static atomic_bool stop;
static atomic_int turns[2];
static bool hurt;

void victim_hurt(void)
{
	hurt = true;
}

static void *serve(void *arg)
{
	int i = (intptr_t)arg, expected = 0, fd;

	while ((fd = accept(listening[i], NULL, NULL)) >= 0) {
		int number = -1;
		ssize_t n = recv(fd, &number, sizeof(number), MSG_WAITALL);

		CHECK(n == sizeof(number) && number == expected, "turn %d of kind %d: %zd, %d",
			expected, i, n, number);
		expected = number + 1;
		usleep(500);
		CHECK(write(fd, &expected, sizeof(expected)) == sizeof(expected), "answering");
		close(fd);
	}
	return NULL;
}

static void *ask_server(void *arg)
{
	int i = (intptr_t)arg;

	while (!stop || hurt || turns[i] < TURNS_MIN) {
		int fd = socket(name[i].ss_family, SOCK_STREAM, 0), answer = -1,
		    turn = turns[i];

		if (connect(fd, (struct sockaddr *)&name[i], size[i]))
			CHECK(0, "connecting: %s", strerror(errno));
		if (hurt)
			turn += 7;
		CHECK(write(fd, &turn, sizeof(turn)) == sizeof(turn), "asking");
		CHECK(recv(fd, &answer, sizeof(answer), MSG_WAITALL) == sizeof(answer) &&
				answer == turn + 1,
			"turn %d is answered by %d", turn, answer);
		close(fd);
		turns[i]++;
		if (victim_failures)
			break;
	}
	return NULL;
}

int main(void)
{
	struct sockaddr_un local = {.sun_family = AF_UNIX, .sun_path = "busy"};
	struct sockaddr_in inet = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	const struct linger now = {1, 0};
	pthread_t server[2], client[2];

	listening[0] = socket(AF_UNIX, SOCK_STREAM, 0);
	listening[1] = socket(AF_INET, SOCK_STREAM, 0);
	MUST(!bind(listening[0], (struct sockaddr *)&local, sizeof(local)));
	MUST(!bind(listening[1], (struct sockaddr *)&inet, sizeof(inet)));
	/* No ports kept after closing: there are but so many. */
	MUST(!setsockopt(listening[1], SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
	for (int i = 0; i < 2; i++) {
		MUST(!listen(listening[i], 5));
		size[i] = sizeof(name[i]);
		MUST(!getsockname(listening[i], (struct sockaddr *)&name[i], &size[i]));
		server[i] = victim_thread(serve, (void *)(intptr_t)i);
		client[i] = victim_thread(ask_server, (void *)(intptr_t)i);
	}
	victim_ready();
	victim_wait();
	stop = true;
	for (int i = 0; i < 2; i++) {
		pthread_join(client[i], NULL);
		shutdown(listening[i], SHUT_RDWR);
		pthread_join(server[i], NULL);
	}
	return victim_done();
}
