/* Descriptors and credentials in messages that wait in UNIX sockets: of files that are open
 * nowhere else, of sockets with messages of their own, of a socket in its own queue, in the
 * middle of a stream. */
#include "sockets.h"

static int stream[2], packets[2], ring[2], creds[2], shared;
static pid_t child;

void victim_hurt(void)
{
	char text[100];
	struct ucred cred;
	int fds[4];

	sock_receive(packets[1], text, sizeof(text), fds, &cred);
}

/* A pipe with bytes in it, and both ends in the message only. */
static void send_pipe(void)
{
	int ends[2];

	MUST(!pipe(ends) && write(ends[1], "in the pipe", 11) == 11);
	sock_send_fds(packets[0], "a pipe", 6, ends, 2);
	close(ends[0]);
	close(ends[1]);
}

/* A pair whose one end is in a message, with a message of its own, and a descriptor in that. */
static void send_socket(void)
{
	int pair[2], memory = memfd_create("inner", 0);

	MUST(memory >= 0 && write(memory, "memory", 6) == 6);
	MUST(!socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	sock_send_fds(pair[0], "inner", 5, &memory, 1);
	sock_send_fds(packets[0], "a socket", 8, &pair[1], 1);
	sock_send_fds(packets[0], "the other", 9, &pair[0], 1);
	close(memory);
	close(pair[0]);
	close(pair[1]);
}

static void check_pipe(void)
{
	char text[100];
	struct ucred cred;
	int fds[4];
	ssize_t n = sock_receive(packets[1], text, sizeof(text), fds, &cred);

	CHECK(n == 6 && !memcmp(text, "a pipe", 6), "%zd bytes", n);
	n = read(fds[0], text, sizeof(text));
	CHECK(n == 11 && !memcmp(text, "in the pipe", 11), "%zd bytes in a pipe", n);
	CHECK(write(fds[1], "x", 1) == 1 && read(fds[0], text, 1) == 1, "its ends");
	CHECK(fds[2] == -1, "two descriptors came");
}

static void check_socket(void)
{
	char text[100];
	struct ucred cred;
	int fds[4], end, other;
	ssize_t n = sock_receive(packets[1], text, sizeof(text), fds, &cred);

	CHECK(n == 8 && fds[0] >= 0 && fds[1] < 0, "a socket came");
	end = fds[0];
	n = sock_receive(packets[1], text, sizeof(text), fds, &cred);
	CHECK(n == 9 && fds[0] >= 0, "the other came");
	other = fds[0];
	n = sock_receive(end, text, sizeof(text), fds, &cred);
	CHECK(n == 5 && !memcmp(text, "inner", 5) && fds[0] >= 0, "%zd bytes in it", n);
	n = pread(fds[0], text, sizeof(text), 0);
	CHECK(n == 6 && !memcmp(text, "memory", 6), "%zd bytes of memory", n);
	CHECK(write(other, "on", 2) == 2, "sending on");
	COMES(end, "on");
}

static void check_stream(void)
{
	char text[100];
	struct ucred cred;
	int fds[4];
	ssize_t n = sock_receive(stream[1], text, 4, fds, &cred);

	CHECK(n == 4 && !memcmp(text, "befo", 4) && fds[0] < 0, "%zd bytes, descriptor %d", n,
		fds[0]);
	n = sock_receive(stream[1], text, 2, fds, &cred);
	CHECK(n == 2 && !memcmp(text, "re", 2) && fds[0] < 0, "%zd bytes, descriptor %d", n,
		fds[0]);
	n = sock_receive(stream[1], text, sizeof(text), fds, &cred);
	CHECK(n == 4 && !memcmp(text, "with", 4) && fds[0] >= 0, "%zd bytes, descriptor %d", n,
		fds[0]);
	CHECK(lseek(fds[0], 3, SEEK_SET) == 3 && lseek(shared, 0, SEEK_CUR) == 3,
		"it is no longer the same open file");
	n = sock_receive(stream[1], text, sizeof(text), fds, &cred);
	CHECK(n == 5 && !memcmp(text, "after", 5) && fds[0] < 0, "%zd bytes at last", n);
}

static void check_ring(void)
{
	char text[10];
	struct ucred cred;
	int fds[4];
	ssize_t n = sock_receive(ring[1], text, sizeof(text), fds, &cred);

	int own = fds[0];

	CHECK(n == 4 && own >= 0, "the socket came out of itself: %zd", n);
	n = sock_receive(own, text, sizeof(text), fds, &cred);
	CHECK(n == 2 && fds[0] >= 0, "the other end came out of it: %zd", n);
	CHECK(write(fds[0], "ok", 2) == 2, "sending on");
	COMES(ring[1], "ok");
}

static void check_creds(void)
{
	char text[10];
	struct ucred cred;
	int fds[4];
	ssize_t n = sock_receive(creds[1], text, sizeof(text), fds, &cred);

	CHECK(n == 4 && !memcmp(text, "mine", 4) && cred.pid == getpid() &&
			cred.uid == getuid(),
		"%zd bytes '%.*s' from process %d", n, (int)n, text, cred.pid);
	n = sock_receive(creds[1], text, sizeof(text), fds, &cred);
	CHECK(n == 6 && !memcmp(text, "child's", 6) && cred.pid == child &&
			cred.gid == getgid(),
		"%zd bytes from process %d, not %d", n, cred.pid, child);
}

int main(void)
{
	int told[2];
	char c;

	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, stream));
	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, packets));
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, ring));
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, creds));
	shared = victim_file("file", 4096, 1);
	MUST(lseek(shared, 0, SEEK_SET) == 0);
	send_pipe();
	send_socket();
	MUST(write(stream[0], "before", 6) == 6);
	sock_send_fds(stream[0], "with", 4, &shared, 1);
	MUST(write(stream[0], "after", 5) == 5);
	sock_send_fds(ring[0], "self", 4, &ring[1], 1);
	sock_send_fds(ring[0], "it", 2, &ring[0], 1);
	sock_set(creds[1], SOL_SOCKET, SO_PASSCRED, 1);
	MUST(write(creds[0], "mine", 4) == 4);
	MUST(!pipe(told));
	child = fork();
	if (!child) {
		MUST(write(creds[0], "child's", 6) == 6 && write(told[1], "", 1) == 1);
		for (;;)
			pause();
	}
	MUST(read(told[0], &c, 1) == 1);
	victim_ready();
	victim_wait();
	CHECK(sock_int(stream[1], SOL_SOCKET, SO_PEEK_OFF) == -1 &&
			sock_int(packets[1], SOL_SOCKET, SO_PEEK_OFF) == -1 &&
			sock_int(creds[1], SOL_SOCKET, SO_PEEK_OFF) == -1,
		"SO_PEEK_OFF was not set");
	check_pipe();
	check_socket();
	check_stream();
	check_creds();
	check_ring();
	kill(child, SIGKILL);
	CHECK(waitpid(child, NULL, 0) == child, "the child is lost");
	return victim_done();
}
