/* UNIX sockets with names: listening ones with connections that wait to be accepted, accepted
 * connections, datagrams with their senders' addresses; in the file system, abstract, chosen by
 * the kernel, unlinked, shut down. */
#include <stddef.h>

#include "sockets.h"

static int listening[3], client[3], server[3], waiting[2], sink, source, unnamed, connected,
	autobound, gone, gone_client, gone_server, bound, renamed, renamed_client, refusing,
	narrow;
static struct sockaddr_un name[3], sink_name, source_name, gone_name, auto_name, renamed_name;
static socklen_t auto_size;

void victim_hurt(void)
{
	char c;

	if (recv(sink, &c, 1, 0) < 0)
		victim_failures++;
}

static socklen_t set_name(struct sockaddr_un *a, const char *text, bool abstract)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	snprintf(a->sun_path + abstract, sizeof(a->sun_path) - 1, "%s", text);
	return offsetof(struct sockaddr_un, sun_path) + abstract + strlen(text) + !abstract;
}

static void bind_to(int fd, struct sockaddr_un *a, const char *text, bool abstract)
{
	MUST(!bind(fd, (struct sockaddr *)a, set_name(a, text, abstract)));
}

static socklen_t size_of(const struct sockaddr_un *a)
{
	size_t at = offsetof(struct sockaddr_un, sun_path);

	return a->sun_path[0] ? at + strlen(a->sun_path) + 1 : at + 1 + strlen(a->sun_path + 1);
}

static int connect_to(int type, const struct sockaddr_un *a)
{
	int fd = socket(AF_UNIX, type, 0);

	MUST(fd >= 0 && !connect(fd, (const struct sockaddr *)a, size_of(a)));
	return fd;
}

static void prepare_streams(void)
{
	char absolute[PATH_MAX + 16], cwd[PATH_MAX], abstract[64];
	const char *text[3] = {"relative", absolute, abstract};

	MUST(getcwd(cwd, sizeof(cwd)));
	snprintf(absolute, sizeof(absolute), "%s/absolute", cwd);
	snprintf(abstract, sizeof(abstract), "trecr-victim-%d", getpid());
	for (int i = 0; i < 3; i++) {
		int type = i == 1 ? SOCK_SEQPACKET : SOCK_STREAM;

		listening[i] = socket(AF_UNIX, type, 0);
		bind_to(listening[i], &name[i], text[i], i == 2);
		MUST(!listen(listening[i], 7));
		client[i] = connect_to(type, &name[i]);
		server[i] = accept(listening[i], NULL, NULL);
		MUST(server[i] >= 0 && write(client[i], "ask", 3) == 3 &&
			write(server[i], "answer", 6) == 6);
	}
	MUST(!chmod("relative", 0640));
	snprintf(absolute, sizeof(absolute), "%s/renamed.tmp", cwd);
	renamed = socket(AF_UNIX, SOCK_STREAM, 0);
	bind_to(renamed, &renamed_name, absolute, false);
	MUST(!listen(renamed, 3) && !chmod("renamed.tmp", 0606));
	renamed_client = connect_to(SOCK_STREAM, &renamed_name);
	MUST(!rename("renamed.tmp", "renamed"));
	waiting[0] = connect_to(SOCK_STREAM, &name[0]);
	waiting[1] = connect_to(SOCK_STREAM, &name[0]);
	gone = socket(AF_UNIX, SOCK_STREAM, 0);
	bind_to(gone, &gone_name, "gone", false);
	MUST(!listen(gone, 3));
	gone_client = connect_to(SOCK_STREAM, &gone_name);
	gone_server = accept(gone, NULL, NULL);
	MUST(gone_server >= 0 && write(gone_client, "bye", 3) == 3);
	MUST(!unlink("gone"));
	close(gone);
}

/* It listens, and nobody can connect. */
static void prepare_refusing(void)
{
	struct sockaddr_un a;

	refusing = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	bind_to(refusing, &a, "refusing", false);
	MUST(!listen(refusing, 3) && !shutdown(refusing, SHUT_RDWR));
	narrow = socket(AF_UNIX, SOCK_STREAM, 0);
	bind_to(narrow, &a, "narrow", false);
	MUST(!listen(narrow, 2));
}

/* One more than it said can wait. */
static void check_narrow(void)
{
	struct sockaddr_un a;

	for (int i = 0; i < 4; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		int r = connect(fd, (struct sockaddr *)&a, set_name(&a, "narrow", false));

		CHECK(i < 3 ? !r : r < 0 && errno == EAGAIN, "connection %d: %d", i, r);
	}
}

static void check_refusing(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un a;

	CHECK(connect(fd, (struct sockaddr *)&a, set_name(&a, "refusing", false)) &&
			errno == ECONNREFUSED,
		"a shut down one takes connections");
	CHECK(sock_int(refusing, SOL_SOCKET, SO_ACCEPTCONN) == 1, "it listens no more");
	close(fd);
}

static void prepare_datagrams(void)
{
	char text[64];
	struct sockaddr_un a;
	int closed = socket(AF_UNIX, SOCK_DGRAM, 0);

	sink = socket(AF_UNIX, SOCK_DGRAM, 0);
	bind_to(sink, &sink_name, "sink", false);
	source = socket(AF_UNIX, SOCK_DGRAM, 0);
	snprintf(text, sizeof(text), "trecr-source-%d", getpid());
	bind_to(source, &source_name, text, true);
	unnamed = socket(AF_UNIX, SOCK_DGRAM, 0);
	MUST(sendto(source, "named", 5, 0, (struct sockaddr *)&sink_name,
		     size_of(&sink_name)) == 5);
	MUST(sendto(unnamed, "nobody", 6, 0, (struct sockaddr *)&sink_name,
		     size_of(&sink_name)) == 6);
	bind_to(closed, &a, "closed", false);
	MUST(sendto(closed, "closed", 6, 0, (struct sockaddr *)&sink_name,
		     size_of(&sink_name)) == 6);
	close(closed);
	unlink("closed");
	connected = connect_to(SOCK_DGRAM, &sink_name);
	autobound = socket(AF_UNIX, SOCK_DGRAM, 0);
	a.sun_family = AF_UNIX;
	MUST(!bind(autobound, (struct sockaddr *)&a, sizeof(sa_family_t)));
	auto_size = sizeof(auto_name);
	MUST(!getsockname(autobound, (struct sockaddr *)&auto_name, &auto_size));
	bound = socket(AF_UNIX, SOCK_STREAM, 0);
	bind_to(bound, &a, "bound", false);
}

#define FROM(fd, text, a) from(fd, text, a, __LINE__)
static void from(int fd, const char *text, const char *path, int line)
{
	struct sockaddr_un a = {0};
	socklen_t size = sizeof(a);
	char data[100];
	ssize_t n =
		recvfrom(fd, data, sizeof(data), MSG_DONTWAIT, (struct sockaddr *)&a, &size);
	const char *have = a.sun_path + !a.sun_path[0];

	CHECK(n == (ssize_t)strlen(text) && !memcmp(data, text, n), "line %d: %zd bytes", line,
		n);
	CHECK(path ? !strcmp(have, path) : size <= sizeof(sa_family_t),
		"line %d: from '%s', not '%s'", line, have, path);
}

static void check_renamed(void)
{
	struct sockaddr_un a = {0};
	socklen_t size = sizeof(a);
	int fd = accept(renamed, NULL, NULL);
	struct stat st;

	CHECK(fd >= 0 && write(fd, "old", 3) == 3, "a client that waits");
	COMES(renamed_client, "old");
	CHECK(!getpeername(renamed_client, (struct sockaddr *)&a, &size) &&
			!strcmp(a.sun_path, renamed_name.sun_path),
		"the peer's name is %s", a.sun_path);
	CHECK(access("renamed.tmp", F_OK) && !stat("renamed", &st) &&
			(st.st_mode & 0777) == 0606,
		"mode %o", st.st_mode);
	set_name(&a, "renamed", false);
	fd = connect_to(SOCK_STREAM, &a);
	CHECK(write(accept(renamed, NULL, NULL), "new", 3) == 3, "%s", strerror(errno));
	COMES(fd, "new");
}

static void check_streams(void)
{
	struct sockaddr_un a = {0};
	socklen_t size;
	struct stat st;

	for (int i = 0; i < 3; i++) {
		int fd;

		COMES(server[i], "ask");
		COMES(client[i], "answer");
		CHECK(write(server[i], "more", 4) == 4, "writing on");
		COMES(client[i], "more");
		size = sizeof(a);
		CHECK(!getpeername(client[i], (struct sockaddr *)&a, &size) &&
				!memcmp(&a, &name[i], size_of(&name[i])),
			"the client's peer is '%s'", a.sun_path + !a.sun_path[0]);
		size = sizeof(a);
		CHECK(!getsockname(server[i], (struct sockaddr *)&a, &size) &&
				!memcmp(&a, &name[i], size_of(&name[i])),
			"the server's name is '%s'", a.sun_path + !a.sun_path[0]);
		CHECK(sock_int(listening[i], SOL_SOCKET, SO_ACCEPTCONN) == 1, "listening");
		if (!i)
			continue;
		fd = connect_to(i == 1 ? SOCK_SEQPACKET : SOCK_STREAM, &name[i]);
		CHECK(accept(listening[i], NULL, NULL) >= 0, "a new connection");
		close(fd);
	}
	CHECK(!stat("relative", &st) && S_ISSOCK(st.st_mode) && (st.st_mode & 07777) == 0640,
		"mode of the file is %o", st.st_mode);
}

static void check_backlog(void)
{
	for (int i = 0; i < 2; i++) {
		char text[] = {'n', '0' + i};
		struct ucred cred;
		socklen_t size = sizeof(cred);
		int fd;

		MUST(!fcntl(listening[0], F_SETFL, O_NONBLOCK));
		fd = accept(listening[0], NULL, NULL);
		CHECK(fd >= 0, "nobody waits to be accepted: %d", i);
		CHECK(write(waiting[i], text, 2) == 2, "sending to it");
		if (fd < 0)
			continue;
		sock_comes(fd, text, 2, __LINE__);
		CHECK(!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) &&
				cred.pid == getpid(),
			"SO_PEERCRED is %d", cred.pid);
	}
}

static void check_gone(void)
{
	struct sockaddr_un a = {0};
	socklen_t size = sizeof(a);

	COMES(gone_server, "bye");
	CHECK(access("gone", F_OK), "a file is back that was removed");
	CHECK(!getpeername(gone_client, (struct sockaddr *)&a, &size) &&
			!strcmp(a.sun_path, "gone"),
		"its peer is '%s'", a.sun_path);
}

static void check_datagrams(void)
{
	struct sockaddr_un a = {0};
	socklen_t size = sizeof(a);

	FROM(sink, "named", source_name.sun_path + 1);
	FROM(sink, "nobody", NULL);
	FROM(sink, "closed", "closed");
	EMPTY(sink);
	CHECK(write(connected, "still", 5) == 5, "a connected one cannot send");
	FROM(sink, "still", NULL);
	CHECK(!getsockname(autobound, (struct sockaddr *)&a, &size) && size == auto_size &&
			!memcmp(&a, &auto_name, size),
		"name chosen by the kernel is '%s'", a.sun_path + 1);
	CHECK(sendto(sink, "x", 1, 0, (struct sockaddr *)&auto_name, auto_size) == 1,
		"it cannot be sent to");
	FROM(autobound, "x", "sink");
	size = sizeof(a);
	CHECK(!getsockname(bound, (struct sockaddr *)&a, &size) && !strcmp(a.sun_path, "bound"),
		"bound to '%s'", a.sun_path);
}

int main(void)
{
	prepare_streams();
	prepare_refusing();
	prepare_datagrams();
	victim_ready();
	victim_wait();
	check_renamed();
	check_streams();
	check_refusing();
	check_narrow();
	check_backlog();
	check_gone();
	check_datagrams();
	return victim_done();
}
