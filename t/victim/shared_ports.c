/* Sockets that came to one address by an option that they do not have any more. */
#include <netinet/in.h>

#include "sockets.h"

/* By what they shared, and which of them have it still. */
static const struct {
	int type, option;
	bool still[2];
} kinds[] = {
	{SOCK_STREAM, SO_REUSEPORT, {true, false}},
	{SOCK_STREAM, SO_REUSEPORT, {false, true}},
	{SOCK_STREAM, SO_REUSEPORT, {true, true}},
	{SOCK_DGRAM, SO_REUSEPORT, {true, false}},
	{SOCK_DGRAM, SO_REUSEADDR, {false, true}},
	{SOCK_DGRAM, SO_REUSEADDR, {false, false}},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int fds[KINDS][2];
static struct sockaddr_in names[KINDS];

void victim_hurt(void)
{
	sock_set(fds[0][1], SOL_SOCKET, SO_REUSEPORT, 1);
}

static void make_pair(size_t i)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(a);

	for (int n = 0; n < 2; n++) {
		fds[i][n] = socket(AF_INET, kinds[i].type, 0);
		sock_set(fds[i][n], SOL_SOCKET, kinds[i].option, 1);
		MUST(!bind(fds[i][n], (struct sockaddr *)&a, size));
		MUST(!getsockname(fds[i][n], (struct sockaddr *)&a, &size));
		MUST(kinds[i].type != SOCK_STREAM || !listen(fds[i][n], 5));
	}
	for (int n = 0; n < 2; n++)
		sock_set(fds[i][n], SOL_SOCKET, kinds[i].option, kinds[i].still[n]);
	names[i] = a;
}

static void check_pair(size_t i)
{
	struct sockaddr_in a;
	socklen_t size = sizeof(a);
	int client = socket(AF_INET, kinds[i].type, 0);

	for (int n = 0; n < 2; n++) {
		int port = sock_int(fds[i][n], SOL_SOCKET, SO_REUSEPORT);
		int address = sock_int(fds[i][n], SOL_SOCKET, SO_REUSEADDR);

		CHECK(port == (kinds[i].option == SO_REUSEPORT && kinds[i].still[n]),
			"%zu, %d: SO_REUSEPORT is %d", i, n, port);
		CHECK(address == (kinds[i].option == SO_REUSEADDR && kinds[i].still[n]),
			"%zu, %d: SO_REUSEADDR is %d", i, n, address);
		CHECK(!getsockname(fds[i][n], (struct sockaddr *)&a, &size) &&
				!memcmp(&a, &names[i], size),
			"%zu, %d: it has another name", i, n);
	}
	CHECK(!connect(client, (struct sockaddr *)&names[i], sizeof(names[i])),
		"%zu: nobody is there", i);
	close(client);
}

int main(void)
{
	for (size_t i = 0; i < KINDS; i++)
		make_pair(i);
	victim_ready();
	victim_wait();
	for (size_t i = 0; i < KINDS; i++)
		check_pair(i);
	return victim_done();
}
