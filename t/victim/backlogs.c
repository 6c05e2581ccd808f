/* More connections wait to be accepted than the backlog has room for, as it has been made
 * smaller since (listen(2) a second time): TCP, UNIX, and sockets that share a port. */
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "sockets.h"

enum { TCP, NAMED, PORT_A, PORT_B, LISTENING, WAITING = 12, ROOM = 2 };

static int listening[LISTENING], client[LISTENING][WAITING];
static bool hurt;

void victim_hurt(void)
{
	hurt = true;
}

static int listen_at(struct sockaddr *a, socklen_t *size, bool shared)
{
	int fd = socket(a->sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (shared)
		sock_set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	MUST(fd >= 0 && !bind(fd, a, *size) && !listen(fd, WAITING) &&
		!getsockname(fd, a, size));
	return fd;
}

static void fill(int i, const struct sockaddr *a, socklen_t size)
{
	for (int k = 0; k < WAITING; k++) {
		client[i][k] = socket(a->sa_family, SOCK_STREAM, 0);
		MUST(client[i][k] >= 0 && !connect(client[i][k], a, size));
	}
}

static void begin(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "lowered"};
	struct sockaddr_in port = in;
	socklen_t size = sizeof(in), un_size = sizeof(un);

	listening[TCP] = listen_at((struct sockaddr *)&in, &size, false);
	fill(TCP, (struct sockaddr *)&in, size);
	listening[NAMED] = listen_at((struct sockaddr *)&un, &un_size, false);
	fill(NAMED, (struct sockaddr *)&un, un_size);
	for (int i = PORT_A; i <= PORT_B; i++)
		listening[i] = listen_at((struct sockaddr *)&port, &size, true);
	fill(PORT_A, (struct sockaddr *)&port, size);
	for (int i = 0; i < LISTENING; i++)
		MUST(!listen(listening[i], ROOM));
}

/* In the order in which they came, but for a shared port's, which are two queues. */
static int accept_all(int i, bool ordered)
{
	int count = 0, fd;

	while ((fd = accept(listening[i], NULL, NULL)) >= 0) {
		int heard = -1;

		CHECK(write(fd, &count, sizeof(count)) == sizeof(count), "answering");
		if (ordered)
			CHECK(recv(client[i][count], &heard, sizeof(heard), MSG_WAITALL) ==
						sizeof(heard) &&
					heard == count,
				"connection %d of %d is not the next", count, i);
		count++;
		close(fd);
	}
	return count;
}

static void check_room(int i)
{
	struct tcp_info info;
	socklen_t size = sizeof(info);

	CHECK(!getsockopt(listening[i], IPPROTO_TCP, TCP_INFO, &info, &size) &&
			info.tcpi_sacked == ROOM,
		"socket %d has a backlog of %u", i, info.tcpi_sacked);
}

/* Only trying tells. */
static void check_unix_room(void)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "lowered"};
	int count = 0;

	while (count < WAITING) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

		if (connect(fd, (struct sockaddr *)&un, sizeof(un)))
			break;
		count++;
	}
	CHECK(count == ROOM + 1 && errno == EAGAIN, "%d connections have room", count);
}

int main(void)
{
	begin();
	victim_ready();
	victim_wait();
	if (hurt)
		listen(listening[TCP], WAITING);
	check_room(TCP);
	check_room(PORT_A);
	check_room(PORT_B);
	CHECK(accept_all(TCP, true) == WAITING, "TCP connections are lost");
	CHECK(accept_all(NAMED, true) == WAITING, "UNIX connections are lost");
	CHECK(accept_all(PORT_A, false) + accept_all(PORT_B, false) == WAITING,
		"connections to a shared port are lost");
	check_unix_room();
	unlink("lowered");
	return victim_done();
}
