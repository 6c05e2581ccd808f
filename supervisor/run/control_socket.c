#include "supervisor/run/control_socket.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "supervisor/run/control_protocol.h"
#include "supervisor/start/supervisor_options.h"

struct client {
	int fd; /* -1: free */
	size_t length;
	char line[CONTROL_REQUEST_MAX];
};

struct control {
	int fd;
	struct sockaddr_un address;
	struct client clients[CONTROL_CLIENTS]; /* in the order they came */
};

static int new_socket(struct err *e)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? err_set(e, errno, "cannot make a socket") : fd;
}

/* Whether nobody listens at @address. */
static bool is_deserted(const struct sockaddr_un *address)
{
	cleanup_fd int fd = new_socket(NULL);

	return fd >= 0 && connect(fd, (const void *)address, sizeof(*address)) < 0 &&
	       errno == ECONNREFUSED;
}

/* Remove what supervisors that were killed left behind. A name alone does not tell: the
 * supervisors of another pid namespace may use the same directory. Whatever fails here fails
 * for the next supervisor again, and harms nobody. */
static void sweep(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *entry;

	if (!d)
		return;
	while ((entry = readdir(d))) {
		struct sockaddr_un address;
		pid_t pid = atoi(entry->d_name);

		if (pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH)
			continue;
		control_address(&address, dir, pid);
		if (is_deserted(&address))
			(void)unlink(address.sun_path);
	}
	closedir(d);
}

static int listen_at(int fd, const struct sockaddr_un *address, struct err *e)
{
	/* An id is given out once at a time, so what has our name and does not answer is old.
	 */
	if (is_deserted(address))
		(void)unlink(address->sun_path);
	if (bind(fd, (const void *)address, sizeof(*address)) < 0)
		return err_set(e, errno, "cannot make the socket %s", address->sun_path);
	if (listen(fd, 64) < 0)
		return err_set(e, errno, "cannot listen at %s", address->sun_path);
	return 0;
}

/* A directory that is ours alone; NULL when there is none, and why the first is none. */
static char *own_dir(struct err *e)
{
	for (int i = 0; i < CONTROL_DIRS; i++) {
		cleanup_free char *dir = control_dir(geteuid(), i);
		struct err *wanted = i ? NULL : e;

		if (mkdir(dir, 0700) < 0 && errno != EEXIST)
			err_set(wanted, errno, "cannot make the directory %s", dir);
		else if (!control_check_dir(dir, geteuid(), wanted))
			return steal_ptr(dir);
	}
	return NULL;
}

struct control *control_open(struct err *e)
{
	cleanup_free char *dir = own_dir(e);
	cleanup_fd int fd = -1;
	struct control *c;
	struct sockaddr_un address;

	if (!dir) {
		err_prefix(e, "cannot listen for requests");
		return NULL;
	}
	fd = new_socket(e);
	if (fd < 0)
		return NULL;
	sweep(dir);
	control_address(&address, dir, getpid());
	if (listen_at(fd, &address, e) < 0)
		return NULL;
	c = xcalloc(1, sizeof(*c));
	c->address = address;
	c->fd = steal_fd(&fd);
	for (size_t i = 0; i < CONTROL_CLIENTS; i++)
		c->clients[i].fd = -1;
	return c;
}

static void drop(struct client *client)
{
	close(client->fd);
	client->fd = -1;
}

/* A client that asks too late is told so. */
static void tell_end(int fd)
{
	static const char text[] = "error the program has ended\n";

	/* It fits the socket's buffer; the client may have gone, which is its affair. */
	(void)send(fd, text, sizeof(text) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void control_close(struct control *c)
{
	int fd;

	if (!c)
		return;
	/* Removed by somebody else: all the same. */
	(void)unlink(c->address.sun_path);
	for (size_t i = 0; i < CONTROL_CLIENTS; i++) {
		if (c->clients[i].fd < 0)
			continue;
		tell_end(c->clients[i].fd);
		drop(&c->clients[i]);
	}
	while ((fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		tell_end(fd);
		close(fd);
	}
	close(c->fd);
	free(c);
}

size_t control_poll(const struct control *c, struct pollfd *fds)
{
	size_t n = 0;

	fds[n++] = (struct pollfd){.fd = c->fd, .events = POLLIN};
	for (size_t i = 0; i < CONTROL_CLIENTS; i++) {
		if (c->clients[i].fd >= 0)
			fds[n++] = (struct pollfd){.fd = c->clients[i].fd, .events = POLLIN};
	}
	return n;
}

/* A place for a new client, if need be that of the one that has said nothing for longest. */
static struct client *make_room(struct control *c)
{
	struct client *last = &c->clients[CONTROL_CLIENTS - 1];

	for (size_t i = 0; i < CONTROL_CLIENTS; i++) {
		if (c->clients[i].fd < 0)
			return &c->clients[i];
	}
	drop(&c->clients[0]);
	memmove(&c->clients[0], &c->clients[1], sizeof(*last) * (CONTROL_CLIENTS - 1));
	return last;
}

static void greet(struct control *c)
{
	int fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *client;
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (fd < 0)
		return; /* the client has left, or the next round of poll(2) tries again */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
		(peer.uid != 0 && peer.uid != geteuid())) {
		close(fd);
		return;
	}
	client = make_room(c);
	client->fd = fd;
	client->length = 0;
}

/* What differs from how the supervisor was started: " tcp=MODE", " compress=METHOD". */
static int parse_settings(const char *line, struct control_request *request)
{
	char tcp[16], compress[16];
	int more = 0;

	request->has_tcp = sscanf(line, " tcp=%15s%n", tcp, &more) == 1;
	if (request->has_tcp && opt_tcp(&request->tcp, tcp, NULL))
		return -1;
	line += more;
	more = 0;
	request->has_compress = sscanf(line, " compress=%15s%n", compress, &more) == 1;
	if (request->has_compress && opt_compress(&request->compress, compress, NULL))
		return -1;
	return line[more] ? -1 : 0;
}

static int parse(const char *line, struct control_request *request)
{
	uint64_t timeout_ms, drain_ms = 0;
	unsigned stop, try = 1;
	int end = 0, more = 0;

	memset(request, 0, sizeof(*request));
	if (sscanf(line, "part=%" SCNu64 " %n", &request->part, &more) == 1)
		line += more;
	if (!strcmp(line, "status")) {
		request->kind = CONTROL_STATUS;
		return 0;
	}
	sscanf(line, "checkpoint stop=%u timeout_ms=%" SCNu64 "%n", &stop, &timeout_ms, &end);
	if (!end || stop > 1 || timeout_ms > UINT32_MAX)
		return -1;
	if (sscanf(line + end, " drain_ms=%" SCNu64 "%n", &drain_ms, &more) == 1)
		end += more;
	if (drain_ms > UINT32_MAX)
		return -1;
	if (sscanf(line + end, " try=%u%n", &try, &more) == 1)
		end += more;
	if (try > 2)
		return -1;
	request->no_try = !try;
	request->verify = try == 2;
	request->drain_ns = drain_ms * 1000000;
	if (parse_settings(line + end, request))
		return -1;
	request->kind = CONTROL_CHECKPOINT;
	request->stop = stop;
	if (timeout_ms)
		request->deadline_ns = clock_ns(CLOCK_MONOTONIC) + timeout_ms * 1000000;
	return 0;
}

/* A client that gave up while others were served does not want its checkpoint any more. */
static bool has_left(const struct client *client)
{
	struct pollfd fd = {.fd = client->fd, .events = 0};

	return poll(&fd, 1, 0) > 0 && fd.revents & (POLLHUP | POLLERR);
}

static void answer(struct client *client, control_handler *handler, void *arg)
{
	cleanup_buf struct buf text = {0};
	struct control_request request;

	if (has_left(client))
		return;
	if (parse(client->line, &request) < 0) {
		buf_printf(&text, "error the request was not understood\n");
	} else {
		request.fd = client->fd;
		handler(arg, &request, &text);
	}
	/* An answer fits the socket's buffer; the client may have gone, which is its affair. */
	(void)send(client->fd, text.data, text.len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void hear(struct client *client, control_handler *handler, void *arg)
{
	ssize_t n = recv(client->fd, client->line + client->length,
		sizeof(client->line) - client->length, 0);
	char *end;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		drop(client);
		return;
	}
	client->length += n;
	end = memchr(client->line, '\n', client->length);
	if (!end && client->length < sizeof(client->line))
		return;
	if (end) {
		*end = 0;
		answer(client, handler, arg);
	}
	drop(client);
}

void control_serve(struct control *c, const struct pollfd *fds, size_t count,
	control_handler *handler, void *arg)
{
	/* Before a newcomer can take a client's place and its descriptor's number. */
	for (size_t i = 0; i < CONTROL_CLIENTS; i++) {
		for (size_t k = 1; k < count && c->clients[i].fd >= 0; k++) {
			if (fds[k].fd == c->clients[i].fd && fds[k].revents)
				hear(&c->clients[i], handler, arg);
		}
	}
	if (count && fds[0].revents)
		greet(c);
}
