/*
 * redis_client REPORT MIB - start redis-server with MIB of random values, ask it over and over, and tick with each
 * answer. The server is a child that listens on REPORT.sock. Runs until it is killed, and its server with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "bench/program.h"
#include "bench/report.h"

#define VALUE ((size_t)65536)

static void become_server(const char *path)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", path, "--save",
		"", "--set-proc-title", "no", (char *)NULL);
	must(0, "redis-server");
}

static int connect_to(const struct sockaddr_un *address)
{
	const struct timespec pause = {0, 10 * 1000 * 1000};

	for (int i = 0; i < 3000; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		must(fd >= 0, "socket");
		if (!connect(fd, (const struct sockaddr *)address, sizeof(*address)))
			return fd;
		close(fd);
		nanosleep(&pause, NULL);
	}
	must(0, address->sun_path);
	return -1;
}

static void write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		must(n > 0, "write to the server");
		data += n;
		size -= n;
	}
}

/* Reads an answer of one line. */
static void expect(int fd, const char *answer)
{
	char line[64];
	size_t n = 0;

	do {
		must(n < sizeof(line) - 1 && read(fd, line + n, 1) == 1, "the server's answer");
	} while (line[n++] != '\n');
	line[n] = 0;
	if (strcmp(line, answer)) {
		fprintf(stderr, "the server says %s", line);
		exit(1);
	}
}

static void fill(int fd, size_t mib)
{
	static char value[VALUE + 2];
	char head[128];

	for (size_t i = 0; i < (mib << 20) / VALUE; i++) {
		for (size_t at = 0; at < VALUE; at += 256)
			must(getrandom(value + at, 256, 0) == 256, "getrandom");
		memcpy(value + VALUE, "\r\n", 2);
		snprintf(head, sizeof(head), "*3\r\n$3\r\nSET\r\n$8\r\n%08zu\r\n$%zu\r\n", i,
			VALUE);
		write_all(fd, head, strlen(head));
		write_all(fd, value, sizeof(value));
		expect(fd, "+OK\r\n");
	}
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: redis_client REPORT MIB\n");
		return 2;
	}
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	pid_t server;

	must(fd >= 0 && ftruncate(fd, 4096) == 0, argv[1]);
	volatile struct report *report =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	must(report != MAP_FAILED, "mmap");
	close(fd);
	errno = ENAMETOOLONG;
	must(snprintf(address.sun_path, sizeof(address.sun_path), "%s.sock", argv[1]) <
			(int)sizeof(address.sun_path),
		argv[1]);
	unlink(address.sun_path);
	server = fork();
	must(server >= 0, "fork");
	if (!server)
		become_server(address.sun_path);
	fd = connect_to(&address);
	fill(fd, strtoull(argv[2], NULL, 10));

	for (uint64_t last = now();;) {
		write_all(fd, "PING\r\n", 6);
		expect(fd, "+PONG\r\n");
		last = report_tick(report, last);
		report->ready = 1;
	}
}
