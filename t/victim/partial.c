/*
 * Writes and reads that were done in part when they were stopped: what they return is what they
 * have done, so that a program that continues with the rest loses nothing and has nothing twice.
 * A call that was done in no part is done as a whole.
 */
#include <netinet/in.h>

#include "sockets.h"

#define TOTAL (6u << 20) /* less than net.core.rmem_max lets an ordinary user gather */
#define SEED  7

enum { PIPE, UNIX, TCP, KINDS };

static struct channel {
	int in, out;
	_Atomic pid_t tid;
	pthread_t thread;
	size_t written;
} channels[KINDS];

static int full[2], wanted[2];
static _Atomic pid_t small_tid, reader_tid;
static ssize_t small_result;
static char received[1000];
static char *data;

static void *write_all(void *arg)
{
	struct channel *c = arg;

	c->tid = victim_tid();
	while (c->written < TOTAL) {
		ssize_t n = write(c->out, data + c->written, TOTAL - c->written);

		CHECK(n > 0, "write after %zu bytes: %s", c->written, strerror(errno));
		if (n <= 0)
			break;
		c->written += n;
	}
	close(c->out);
	return NULL;
}

static void *write_small(void *arg)
{
	small_tid = victim_tid();
	small_result = write(full[1], data, 1000);
	return NULL;
}

static void *read_all(void *arg)
{
	size_t at = 0;

	reader_tid = victim_tid();
	while (at < sizeof(received)) {
		ssize_t n = recv(wanted[0], received + at, sizeof(received) - at, MSG_WAITALL);

		CHECK(n > 0, "recv after %zu bytes: %s", at, strerror(errno));
		if (n <= 0)
			break;
		at += n;
	}
	return NULL;
}

static void connect_tcp(struct channel *c)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	MUST(!bind(fd, (struct sockaddr *)&a, size) && !listen(fd, 1) &&
		!getsockname(fd, (struct sockaddr *)&a, &size));
	c->out = socket(AF_INET, SOCK_STREAM, 0);
	MUST(!connect(c->out, (struct sockaddr *)&a, size));
	c->in = accept(fd, NULL, NULL);
	MUST(c->in >= 0);
	close(fd);
}

static pthread_t start(void *(*f)(void *), void *arg, _Atomic pid_t *tid, long nr)
{
	pthread_t t = victim_thread(f, arg);

	while (!*tid)
		sched_yield();
	victim_until_blocked(*tid, nr);
	return t;
}

static void drain(struct channel *c)
{
	char *got = victim_anon(TOTAL + 1);
	size_t at = 0;
	ssize_t n;

	while ((n = read(c->in, got + at, TOTAL + 1 - at)) > 0)
		at += n;
	pthread_join(c->thread, NULL);
	CHECK(at == TOTAL && c->written == TOTAL, "channel %d: %zu written, %zu came",
		(int)(c - channels), c->written, at);
	SAME(got, TOTAL, SEED, "what came through a channel");
	munmap(got, TOTAL + 1);
}

static void drain_full(void)
{
	char got[4096];
	size_t sum = 0;
	ssize_t n = 0;

	while (sum < 65536 + 1000 && (n = read(full[0], got, sizeof(got))) > 0)
		sum += n;
	CHECK(sum == 65536 + 1000 && n > 0, "a full pipe: %zu bytes", sum);
}

void victim_hurt(void)
{
	char c;

	MUST(read(channels[UNIX].in, &c, 1) == 1);
}

int main(void)
{
	int ends[2];
	pthread_t small, reader;

	data = victim_anon(TOTAL);
	victim_fill(data, TOTAL, SEED);
	MUST(!pipe(ends));
	channels[PIPE].in = ends[0];
	channels[PIPE].out = ends[1];
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	channels[UNIX].in = ends[0];
	channels[UNIX].out = ends[1];
	connect_tcp(&channels[TCP]);
	for (int i = 0; i < KINDS; i++)
		channels[i].thread =
			start(write_all, &channels[i], &channels[i].tid, SYS_write);
	MUST(!pipe(full) && write(full[1], data, 65536) == 65536);
	small = start(write_small, NULL, &small_tid, SYS_write);
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, wanted) &&
		write(wanted[1], data, 400) == 400);
	reader = start(read_all, NULL, &reader_tid, SYS_recvfrom);
	victim_ready();
	victim_wait();
	for (int i = 0; i < KINDS; i++)
		drain(&channels[i]);
	drain_full();
	pthread_join(small, NULL);
	CHECK(small_result == 1000, "a write that was done in no part: %zd", small_result);
	MUST(write(wanted[1], data + 400, 600) == 600);
	pthread_join(reader, NULL);
	SAME(received, sizeof(received), SEED, "what was received");
	return victim_done();
}
