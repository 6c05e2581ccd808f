/* Pipes inside the program: bytes in them, packets, capacity, O_NONBLOCK, full ones, one
 * whose writing end is closed, one whose reading end is. */
#include <sys/ioctl.h>

#include "victim.h"

static int plain[2], packet[2], big[2], full[2], ended[2], broken[2], empty[2], single[2],
	bare[2], again;

/* As another open file, with flags of its own. */
static int open_again(int fd)
{
	char path[32];
	int other;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	other = open(path, O_RDONLY | O_NONBLOCK);
	MUST(other >= 0);
	return other;
}

void victim_hurt(void)
{
	char c;

	if (read(plain[0], &c, 1) != 1)
		victim_failures++;
}

int main(void)
{
	static char data[1024 * 1024];
	int waiting, n, filled = 0, capacity;
	struct stat st;

	signal(SIGPIPE, SIG_IGN);
	MUST(!pipe(plain) && !pipe2(packet, O_DIRECT) && !pipe2(big, O_CLOEXEC));
	MUST(!pipe2(full, O_NONBLOCK) && !pipe(ended) && !pipe(broken) && !pipe(empty));
	MUST(write(plain[1], "some bytes", 10) == 10);
	MUST(write(packet[1], "one", 3) == 3 && write(packet[1], "second", 6) == 6);
	capacity = fcntl(big[0], F_SETPIPE_SZ, 1 << 18);
	MUST(capacity >= 1 << 18);
	victim_fill(data, 200000, 1);
	MUST(write(big[1], data, 200000) == 200000);
	victim_fill(data, sizeof(data), 2);
	while ((n = write(full[1], data + filled, 1000)) > 0)
		filled += n;
	MUST(errno == EAGAIN && filled > 0);
	MUST(write(ended[1], "last", 4) == 4 && !close(ended[1]));
	close(broken[0]);
	MUST(!fchmod(plain[0], 0640));
	MUST(!pipe2(single, O_DIRECT) && write(single[1], "alone", 5) == 5);
	MUST(!pipe2(bare, O_DIRECT));
	again = open_again(plain[0]);
	victim_ready();
	victim_wait();
	memset(data, 0, sizeof(data));
	CHECK(!fstat(plain[1], &st) && (st.st_mode & 07777) == 0640 && st.st_uid == getuid(),
		"mode %o", st.st_mode);
	CHECK(fcntl(again, F_GETFL) & O_NONBLOCK && !(fcntl(plain[0], F_GETFL) & O_NONBLOCK) &&
			!(fcntl(plain[1], F_GETFL) & O_NONBLOCK),
		"O_NONBLOCK of one that was opened again");
	CHECK(!ioctl(again, FIONREAD, &waiting) && waiting == 10, "it is another pipe");
	CHECK(!ioctl(plain[0], FIONREAD, &waiting) && waiting == 10, "%d bytes wait", waiting);
	n = read(plain[0], data, 100);
	CHECK(n == 10 && !memcmp(data, "some bytes", 10), "%d bytes: '%.*s'", n, n, data);
	CHECK(write(plain[1], "abc", 3) == 3 && read(plain[0], data, 9) == 3, "using it on");
	CHECK(fcntl(packet[1], F_GETFL) & O_DIRECT && fcntl(bare[1], F_GETFL) & O_DIRECT,
		"O_DIRECT is lost");
	CHECK(write(single[1], "another", 7) == 7 && read(single[0], data, 100) == 5,
		"a single packet has no end");
	n = read(packet[0], data, 100);
	CHECK(n == 3 && !memcmp(data, "one", 3), "first packet has %d bytes: '%.*s'", n, n,
		data);
	n = read(packet[0], data, 100);
	CHECK(n == 6 && !memcmp(data, "second", 6), "second packet has %d bytes", n);
	CHECK(fcntl(big[1], F_GETPIPE_SZ) == capacity, "capacity is %d, was %d",
		fcntl(big[1], F_GETPIPE_SZ), capacity);
	for (n = 0; n < 200000;) {
		int r = read(big[0], data + n, 200000 - n);

		CHECK(r > 0, "the pipe ends after %d bytes", n);
		if (r <= 0)
			break;
		n += r;
	}
	SAME(data, 200000, 1, "contents of a large pipe");
	CHECK(fcntl(big[0], F_GETFD) == FD_CLOEXEC && fcntl(big[1], F_GETFD) == FD_CLOEXEC,
		"close-on-exec");
	CHECK(fcntl(full[0], F_GETFL) & O_NONBLOCK && fcntl(full[1], F_GETFL) & O_NONBLOCK,
		"O_NONBLOCK is lost");
	if (fcntl(full[1], F_GETFL) & O_NONBLOCK)
		CHECK(write(full[1], data, 4096) < 0 && errno == EAGAIN,
			"it is no longer full");
	for (n = 0; n < filled;) {
		int r = read(full[0], data + n, sizeof(data) - n);

		if (r <= 0)
			break;
		n += r;
	}
	CHECK(n == filled, "%d bytes of %d", n, filled);
	SAME(data, filled & ~7, 2, "contents of a full pipe");
	CHECK(read(ended[0], data, 10) == 4 && !memcmp(data, "last", 4),
		"bytes before the end");
	CHECK(read(ended[0], data, 10) == 0, "no end of file");
	CHECK(write(broken[1], "x", 1) < 0 && errno == EPIPE, "no EPIPE");
	CHECK(!ioctl(empty[0], FIONREAD, &waiting) && waiting == 0, "%d bytes wait", waiting);
	CHECK(write(empty[1], "x", 1) == 1 && read(empty[0], data, 1) == 1, "empty pipe");
	return victim_done();
}
