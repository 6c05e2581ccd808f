/* Pairs of UNIX sockets in one process: what is under way in both directions, boundaries of
 * messages, shut down and closed ends, options. */
#include <poll.h>

#include "sockets.h"

static int stream[2], packets[2], datagrams[2], half[2], ended[2], reset[2], lonely[2], full[2],
	large[2], taken[2], mute[2], deaf[2];
static int filled;

void victim_hurt(void)
{
	char c;

	if (read(stream[0], &c, 1) != 1)
		victim_failures++;
}

static void options(void)
{
	struct timeval t = {7, 240000};

	sock_set(stream[0], SOL_SOCKET, SO_SNDBUF, 30000);
	sock_set(stream[1], SOL_SOCKET, SO_RCVBUF, 50000);
	sock_set(stream[0], SOL_SOCKET, SO_PASSCRED, 1);
	MUST(!setsockopt(stream[1], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)));
	t.tv_sec = 9;
	MUST(!setsockopt(stream[1], SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)));
	sock_set(taken[0], SOL_SOCKET, SO_PEEK_OFF, 3);
	MUST(!fcntl(packets[1], F_SETFL, O_NONBLOCK));
	MUST(!fchmod(packets[1], 0640));
	MUST(!fcntl(packets[0], F_SETOWN, getpid()));
	MUST(!fcntl(packets[0], F_SETFL, O_ASYNC));
}

static void check_options(void)
{
	struct timeval t;
	socklen_t size = sizeof(t);
	char text[8];
	struct stat st;

	CHECK(sock_int(stream[0], SOL_SOCKET, SO_SNDBUF) == 60000, "SO_SNDBUF");
	CHECK(sock_int(stream[1], SOL_SOCKET, SO_RCVBUF) == 100000, "SO_RCVBUF");
	CHECK(sock_int(stream[0], SOL_SOCKET, SO_PASSCRED) == 1, "SO_PASSCRED");
	CHECK(sock_int(stream[1], SOL_SOCKET, SO_PASSCRED) == 0, "SO_PASSCRED of the other");
	CHECK(!getsockopt(stream[1], SOL_SOCKET, SO_RCVTIMEO, &t, &size) && t.tv_sec == 7 &&
			t.tv_usec == 240000,
		"SO_RCVTIMEO %ld.%06ld", t.tv_sec, t.tv_usec);
	CHECK(!getsockopt(stream[1], SOL_SOCKET, SO_SNDTIMEO, &t, &size) && t.tv_sec == 9,
		"SO_SNDTIMEO %ld", t.tv_sec);
	CHECK(sock_int(taken[0], SOL_SOCKET, SO_PEEK_OFF) == 3, "SO_PEEK_OFF %d",
		sock_int(taken[0], SOL_SOCKET, SO_PEEK_OFF));
	CHECK(recv(taken[0], text, sizeof(text), MSG_PEEK) == 3 && !memcmp(text, "def", 3),
		"looking from SO_PEEK_OFF on");
	CHECK(sock_int(stream[0], SOL_SOCKET, SO_PEEK_OFF) == -1, "SO_PEEK_OFF was not set");
	CHECK(!fstat(packets[1], &st) && (st.st_mode & 07777) == 0640, "mode %o", st.st_mode);
	CHECK(fcntl(packets[1], F_GETFL) & O_NONBLOCK, "O_NONBLOCK");
	CHECK(!(fcntl(packets[0], F_GETFL) & O_NONBLOCK), "O_NONBLOCK of the other");
	CHECK(fcntl(packets[0], F_GETOWN) == getpid() && fcntl(packets[0], F_GETFL) & O_ASYNC,
		"owner and O_ASYNC");
}

static void check_large(void)
{
	static char data[100000];
	size_t have = 0;
	ssize_t n;

	while (have < sizeof(data) &&
		(n = recv(large[1], data + have, sizeof(data) - have, MSG_DONTWAIT)) > 0)
		have += n;
	CHECK(have == sizeof(data), "%zu bytes", have);
	SAME(data, sizeof(data), 5, "a large queue");
}

static void check_full(void)
{
	static char data[1 << 20];
	int n, have = 0;

	while ((n = recv(full[1], data + have, sizeof(data) - have, MSG_DONTWAIT)) > 0)
		have += n;
	CHECK(have == filled, "%d bytes of %d", have, filled);
	SAME(data, filled & ~7, 6, "a full queue");
}

static void prepare(void)
{
	static char data[1 << 20];
	int n;

	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, stream));
	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, packets));
	MUST(!socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams));
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, half));
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, ended));
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, reset));
	MUST(!socketpair(AF_UNIX, SOCK_DGRAM, 0, lonely));
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, full));
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, large));
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, taken));
	MUST(!socketpair(AF_UNIX, SOCK_DGRAM, 0, mute) && !shutdown(mute[0], SHUT_WR));
	MUST(!socketpair(AF_UNIX, SOCK_DGRAM, 0, deaf) && !shutdown(deaf[0], SHUT_RD));
	options();
	MUST(write(stream[0], "to one", 6) == 6 && write(stream[0], " end", 4) == 4);
	MUST(write(stream[1], "and back", 8) == 8);
	MUST(write(packets[0], "first", 5) == 5 && write(packets[0], "", 0) == 0 &&
		write(packets[0], "third", 5) == 5 && write(packets[1], "back", 4) == 4);
	MUST(write(datagrams[0], "one", 3) == 3 && write(datagrams[0], "two", 3) == 3 &&
		write(datagrams[0], "three", 5) == 5 && write(datagrams[1], "b", 1) == 1);
	MUST(write(half[0], "rest", 4) == 4 && !shutdown(half[0], SHUT_WR));
	MUST(write(half[1], "still", 5) == 5);
	MUST(write(ended[0], "last", 4) == 4 && !close(ended[0]));
	MUST(write(reset[1], "unread", 6) == 6 && !close(reset[0]));
	MUST(write(lonely[0], "from the past", 13) == 13 && !close(lonely[0]));
	victim_fill(data, sizeof(data), 6);
	MUST(!fcntl(full[0], F_SETFL, O_NONBLOCK));
	while ((n = write(full[0], data + filled, 1000)) > 0)
		filled += n;
	MUST(filled > 0);
	victim_fill(data, 100000, 5);
	MUST(write(large[0], data, 100000) == 100000);
	MUST(write(taken[1], "abcdef", 6) == 6);
}

int main(void)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);
	struct pollfd p = {.events = POLLIN};
	int error;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGIO, SIG_IGN);
	prepare();
	victim_ready();
	victim_wait();
	check_options();
	CHECK(!ioctl(stream[1], FIONREAD, &error) && error == 10, "%d bytes wait", error);
	COMES(stream[1], "to one end");
	COMES(stream[0], "and back");
	EMPTY(stream[0]);
	EMPTY(stream[1]);
	CHECK(!getsockopt(stream[0], SOL_SOCKET, SO_PEERCRED, &cred, &size) &&
			cred.pid == getpid() && cred.uid == getuid() && cred.gid == getgid(),
		"SO_PEERCRED is process %d, user %d", cred.pid, cred.uid);
	COMES(packets[1], "first");
	COMES(packets[1], "");
	COMES(packets[1], "third");
	EMPTY(packets[1]);
	COMES(packets[0], "back");
	CHECK(fcntl(packets[0], F_GETFD) == FD_CLOEXEC, "close-on-exec");
	COMES(datagrams[1], "one");
	COMES(datagrams[1], "two");
	COMES(datagrams[1], "three");
	EMPTY(datagrams[1]);
	COMES(datagrams[0], "b");
	COMES(half[1], "rest");
	ENDS(half[1]);
	CHECK(write(half[0], "x", 1) < 0 && errno == EPIPE, "a shut down end can send");
	CHECK(write(half[1], "on", 2) == 2, "the open half is closed");
	COMES(half[0], "stillon");
	EMPTY(half[0]);
	COMES(ended[1], "last");
	p.fd = ended[1];
	CHECK(poll(&p, 1, 0) == 1 && p.revents == (POLLIN | POLLHUP), "poll says %#x",
		p.revents);
	ENDS(ended[1]);
	CHECK(write(ended[1], "x", 1) < 0 && errno == EPIPE, "no EPIPE");
	p.fd = reset[1];
	CHECK(poll(&p, 1, 0) == 1 && p.revents & POLLERR, "poll says %#x", p.revents);
	error = sock_int(reset[1], SOL_SOCKET, SO_ERROR);
	CHECK(error == ECONNRESET, "error is %d", error);
	COMES(lonely[1], "from the past");
	CHECK(write(lonely[1], "x", 1) < 0 && errno == ECONNREFUSED, "no ECONNREFUSED");
	CHECK(write(mute[0], "x", 1) < 0 && errno == EPIPE, "a mute one can send");
	CHECK(write(mute[1], "x", 1) == 1, "nothing can be sent to a mute one");
	COMES(mute[0], "x");
	CHECK(write(deaf[1], "x", 1) < 0 && errno == EPIPE,
		"something can be sent to a deaf one");
	CHECK(write(deaf[0], "x", 1) == 1, "a deaf one cannot send");
	COMES(deaf[1], "x");
	check_full();
	check_large();
	CHECK(write(stream[0], "x", 1) == 1 && write(datagrams[1], "y", 1) == 1 &&
			write(packets[0], "z", 1) == 1,
		"using them on");
	COMES(stream[1], "x");
	COMES(datagrams[0], "y");
	COMES(packets[1], "z");
	return victim_done();
}
