/*
 * control_socket.c - opening the socket, then its clients: accepted, heard, answered, or told
 * to wait.
 */
#include "supervisor/control/control_socket.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "supervisor/control/control_protocol.h"

/* It is held for as long as a few system calls take. */
#define LOCK_WAIT_NS (5ull * 1000 * 1000 * 1000)

enum client_state {
	CLIENT_TALKS,   /* its request is not complete yet */
	CLIENT_WAITS,   /* for the checkpoint that is being taken */
	CLIENT_HANDLED, /* its request is being dealt with */
	CLIENT_LEFT,    /* the same, but it does not listen any more */
};

/* Allocated for a client that is there: zeroing all of these at each start would take longer than the
 * rest of control_open(). */
struct client_words {
	size_t length;
	char line[CONTROL_REQUEST_MAX];
	struct control_request request; /* WAITS */
};

struct client {
	int fd; /* -1: free */
	enum client_state state;
	uint64_t number; /* in the order they came */
	struct client_words *words;
};

struct control {
	int fd;
	struct sockaddr_un address;
	struct client clients[CONTROL_CLIENTS];
	uint64_t last_number;
	uint64_t rounds; /* of control_serve() */
	bool taking;     /* a checkpoint is being taken: other requests for one wait */
};

static int new_socket(struct err *e)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? err_set(e, errno, "cannot create a socket") : fd;
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
static void remove_dead_sockets(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *entry;

	if (!d)
		return;
	while ((entry = readdir(d))) {
		struct sockaddr_un address;
		unsigned turn = 0;
		pid_t pid;

		if (sscanf(entry->d_name, "%d.%u", &pid, &turn) < 1 || pid <= 0 ||
			kill(pid, 0) == 0 || errno != ESRCH)
			continue;
		control_address(&address, dir, pid, turn);
		if (is_deserted(&address))
			(void)unlink(address.sun_path);
	}
	closedir(d);
}

/* What has our name and does not answer is old; what answers is of another pid namespace. */
static int listen_in(int fd, const char *dir, struct sockaddr_un *address, struct err *e)
{
	int failed = -1;

	for (unsigned turn = 0; failed && turn < CONTROL_TURNS; turn++) {
		control_address(address, dir, getpid(), turn);
		if (is_deserted(address))
			(void)unlink(address->sun_path);
		failed = bind(fd, (const void *)address, sizeof(*address));
		if (failed && errno != EADDRINUSE)
			break;
	}
	if (failed)
		return err_set(e, errno, "cannot create the socket %s", address->sun_path);
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
			err_set(wanted, errno, "cannot create the directory %s", dir);
		else if (!control_check_dir(dir, geteuid(), wanted))
			return steal_ptr(dir);
	}
	return NULL;
}

/* A lock, held until it is closed: between bind(2) and listen(2) another's socket looks as if nobody
 * listened at it, and would be removed. -1 where it cannot be had, or where a stopped process holds
 * it: then that is left to chance. */
static int lock_dir(const char *dir, uint64_t deadline_ns)
{
	cleanup_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || flock_until(fd, LOCK_EX, deadline_ns) ? -1 : steal_fd(&fd);
}

struct control *control_open(struct err *e)
{
	cleanup_free char *dir = own_dir(e);
	cleanup_fd int lock = -1;
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
	lock = lock_dir(dir, clock_ns(CLOCK_MONOTONIC) + LOCK_WAIT_NS);
	if (listen_in(fd, dir, &address, e) < 0)
		return NULL;
	c = xcalloc(1, sizeof(*c));
	c->address = address;
	c->fd = steal_fd(&fd);
	for (size_t i = 0; i < CONTROL_CLIENTS; i++)
		c->clients[i].fd = -1;
	return c;
}

void control_tidy(const struct control *c)
{
	cleanup_free char *dir = xstrdup(c->address.sun_path);
	cleanup_fd int lock = -1;

	*strrchr(dir, '/') = 0;
	lock = lock_dir(dir, 0);
	if (lock >= 0)
		remove_dead_sockets(dir);
}

static void drop_client(struct client *client)
{
	close(client->fd);
	client->fd = -1;
	free(client->words);
	client->words = NULL;
}

static void send_text(int fd, const char *text)
{
	/* It fits the socket's buffer; the client may have gone, which is its affair. */
	(void)send(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* A client that asks too late is told so. */
static void tell_end(int fd)
{
	send_text(fd, "error the program has ended\n");
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
		drop_client(&c->clients[i]);
	}
	while ((fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		tell_end(fd);
		close(fd);
	}
	close(c->fd);
	free(c);
}

const char *control_name(const struct control *c)
{
	return c->address.sun_path;
}

size_t control_poll(const struct control *c, struct pollfd *fds)
{
	size_t n = 0;

	fds[n++] = (struct pollfd){.fd = c->fd, .events = POLLIN};
	for (size_t i = 0; i < CONTROL_CLIENTS; i++) {
		const struct client *client = &c->clients[i];

		if (client->fd >= 0 && client->state != CLIENT_LEFT)
			fds[n++] = (struct pollfd){.fd = client->fd,
				.events = client->state == CLIENT_TALKS ? POLLIN : 0};
	}
	return n;
}

/* The client in @state that has been there for longest; NULL: there is none. */
static struct client *oldest_client(struct control *c, enum client_state state)
{
	struct client *found = NULL;

	for (size_t i = 0; i < CONTROL_CLIENTS; i++) {
		struct client *client = &c->clients[i];

		if (client->fd >= 0 && client->state == state &&
			(!found || client->number < found->number))
			found = client;
	}
	return found;
}

/* A place for a new client, if need be the place of the client that has said nothing for longest;
 * NULL: all wait for answers. */
static struct client *make_room(struct control *c)
{
	struct client *silent;

	for (size_t i = 0; i < CONTROL_CLIENTS; i++) {
		if (c->clients[i].fd < 0)
			return &c->clients[i];
	}
	silent = oldest_client(c, CLIENT_TALKS);
	if (silent)
		drop_client(silent);
	return silent;
}

static void accept_client(struct control *c)
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
	if (!client) {
		send_text(fd, "error too many others are waiting for a checkpoint\n");
		close(fd);
		return;
	}
	client->fd = fd;
	client->state = CLIENT_TALKS;
	client->number = ++c->last_number;
	client->words = xcalloc(1, sizeof(*client->words));
}

/* ---- answers ---- */

/* A client that gave up while it waited does not want its checkpoint any more. */
static bool has_left(const struct client *client)
{
	struct pollfd fd = {.fd = client->fd, .events = 0};

	return poll(&fd, 1, 0) > 0 && fd.revents & (POLLHUP | POLLERR);
}

static void answer_client(
	struct control *c, struct client *client, control_handler *handler, void *arg)
{
	cleanup_buf struct buf text = {0};
	bool taking = c->taking;

	if (!has_left(client)) {
		client->state = CLIENT_HANDLED;
		client->words->request.fd = client->fd;
		c->taking |= client->words->request.kind == CONTROL_CHECKPOINT;
		handler(arg, &client->words->request, &text);
		c->taking = taking;
		/* An answer fits the socket's buffer; the client may have gone, which is its
		 * affair. */
		(void)send(client->fd, text.data, text.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	drop_client(client);
}

/* Its line is complete. */
static void take_request(
	struct control *c, struct client *client, control_handler *handler, void *arg)
{
	struct client_words *words = client->words;

	if (control_request_parse(&words->request, words->line)) {
		send_text(client->fd, "error the request was not understood\n");
		drop_client(client);
	} else if (c->taking && words->request.kind == CONTROL_CHECKPOINT) {
		client->state = CLIENT_WAITS;
	} else {
		answer_client(c, client, handler, arg);
	}
}

static void hear_client(
	struct control *c, struct client *client, control_handler *handler, void *arg)
{
	struct client_words *words = client->words;
	ssize_t n = recv(client->fd, words->line + words->length,
		sizeof(words->line) - words->length, 0);
	char *end;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		drop_client(client);
		return;
	}
	words->length += n;
	end = memchr(words->line, '\n', words->length);
	if (!end && words->length < sizeof(words->line))
		return;
	if (end) {
		*end = 0;
		take_request(c, client, handler, arg);
	} else {
		drop_client(client);
	}
}

static void serve_client(
	struct control *c, struct client *client, control_handler *handler, void *arg)
{
	if (client->state == CLIENT_TALKS)
		hear_client(c, client, handler, arg);
	else if (client->state == CLIENT_WAITS)
		drop_client(client);
	else
		client->state = CLIENT_LEFT;
}

void control_serve(struct control *c, const struct pollfd *fds, size_t count,
	control_handler *handler, void *arg)
{
	uint64_t round = ++c->rounds;

	for (size_t i = 0; i < CONTROL_CLIENTS; i++) {
		for (size_t k = 1; k < count && c->clients[i].fd >= 0; k++) {
			if (fds[k].fd != c->clients[i].fd || !fds[k].revents)
				continue;
			serve_client(c, &c->clients[i], handler, arg);
			/* The handler has served others: what was found is out of date. */
			if (c->rounds != round)
				return;
			break;
		}
	}
	/* The last, as a newcomer can take a client's place and its descriptor's number. */
	if (count && fds[0].revents)
		accept_client(c);
}

bool control_hold_checkpoints(struct control *c, bool hold)
{
	bool before = c->taking;

	c->taking = hold;
	return before;
}

uint64_t control_rounds(const struct control *c)
{
	return c->rounds;
}

bool control_serve_waiting(struct control *c, control_handler *handler, void *arg)
{
	struct client *client = oldest_client(c, CLIENT_WAITS);

	if (client)
		answer_client(c, client, handler, arg);
	return client;
}

unsigned control_waiting(const struct control *c)
{
	unsigned n = 0;

	for (size_t i = 0; i < CONTROL_CLIENTS; i++)
		n += c->clients[i].fd >= 0 && c->clients[i].state == CLIENT_WAITS;
	return n;
}

bool control_has_left(const struct control *c, int fd)
{
	for (size_t i = 0; i < CONTROL_CLIENTS; i++)
		if (c->clients[i].fd == fd && c->clients[i].state == CLIENT_LEFT)
			return true;
	return false;
}
