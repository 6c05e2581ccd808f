/*
 * socket/unix_restore.c - UNIX sockets at a restart.
 *
 * Connections without names come from socketpair(2). Where an end has a name, it was accepted
 * from a socket that listened there: from that one if it is still there, else from one made for
 * the moment. A file that the name led to and that is gone stays gone: such a name is bound in
 * a root directory of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stddef.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "lib/procfs.h"
#include "supervisor/fd/parent_directories.h"
#include "supervisor/fd/temporary_directories.h"
#include "supervisor/fd/trusted_path.h"
#include "supervisor/socket/bind_apart.h"
#include "supervisor/socket/socket_families.h"
#include "supervisor/socket/socket_options.h"
#include "supervisor/socket/sockets_restore.h"

/* They double: 2.5 s in all. */
#define PAUSES         8
#define FIRST_PAUSE_NS 10000000

/* ---- names ---- */

struct bind {
	int fd;
	const uint8_t *name;
	uint32_t size;
	const char *path; /* of the file, from @in; NULL: none */
	int in;
	const char *whole; /* @path with the directory that it is from */
	bool hidden;       /* below a root of its own */
	int probe;         /* a socket of the same type */
	const struct image_socket *s;
};

/* A new directory in @temporary (consumed) that can be a root. */
static char *new_root(struct socket_restore *q, char *temporary, struct err *e)
{
	cleanup_free char *in = temporary;
	char *path = in ? xasprintf("%s/%u", in, q->roots++) : NULL;

	if (!path)
		return NULL;
	if (!mkdir(path, 0700)) {
		cleanup_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (fd >= 0 && !fchmod(fd, 0777))
			return path;
	}
	err_set(e, errno, "cannot create %s", path);
	free(path);
	return NULL;
}

/* All that lead to @path and are not there. -1 and errno, like the functions that follow. */
static int make_directories(const char *path, mode_t mode)
{
	char copy[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
	mode_t mask = umask(0);
	bool failed = false;

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *p = strchr(copy + 1, '/'); p && !failed; p = strchr(p + 1, '/')) {
		*p = 0;
		failed = mkdir(copy, mode) && errno != EEXIST;
		*p = '/';
	}
	umask(mask);
	return failed ? -1 : 0;
}

/* The file of a socket that nobody has any more may go. */
static int make_way(const struct bind *b)
{
	struct stat st;

	if (fstatat(b->in, b->path, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -1;
	if (!S_ISSOCK(st.st_mode)) {
		errno = EEXIST;
		return -1;
	}
	if (connect(b->probe, (const struct sockaddr *)b->name, b->size)) {
		if (errno == ECONNREFUSED)
			return unlinkat(b->in, b->path, 0);
		if (errno != EPROTOTYPE)
			return -1;
	}
	errno = EADDRINUSE;
	return -1;
}

/* A program that ran on after the checkpoint may have removed the directory with the socket,
 * as Python's multiprocessing does: it is for the program alone, then. */
static int bind_in_removed(const struct bind *b)
{
	if (errno != ENOENT || !b->path || b->hidden)
		return -1;
	return make_directories(b->path, 0700)
		       ? -1
		       : bind(b->fd, (const struct sockaddr *)b->name, b->size);
}

/* Bind, so that the file has @mode: changing it afterwards would go by a name, behind which others
 * may have put another file. */
static int bind_with_mode(const struct bind *b, mode_t mode)
{
	mode_t mask = umask(~mode & 0777);
	int failed =
		bind(b->fd, (const struct sockaddr *)b->name, b->size) && bind_in_removed(b);

	umask(mask);
	return failed ? -1 : 0;
}

/* The owner of a socket's file, and its mode, by which others may connect. @maker made it just now: anything
 * else has taken its place. */
static int set_attributes(int fd, uid_t maker, const struct image_socket *s)
{
	cleanup_free char *link = xasprintf("/proc/self/fd/%d", fd);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -1;
	if (!S_ISSOCK(st.st_mode) || st.st_uid != maker) {
		errno = EEXIST;
		return -1;
	}
	/* Another's file can stay ours. */
	if (st.st_uid != s->file_uid || st.st_gid != s->file_gid)
		(void)!fchownat(fd, "", s->file_uid, s->file_gid, AT_EMPTY_PATH);
	return (st.st_mode & 07777) != s->file_mode ? chmod(link, s->file_mode) : 0;
}

static int bind_file(const struct bind *b, uid_t maker)
{
	cleanup_fd int fd = -1;

	if (make_way(b) || bind_with_mode(b, b->s->file_mode))
		return -1;
	fd = open(b->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return set_attributes(fd, maker, b->s);
}

/* As the owner of the file, who may have put links to other places into the directory: they lead
 * root no further than that user. Setting an id that is none tells the present one. */
static int bind_as_owner(const struct bind *b)
{
	const uid_t nobody = -1;
	int failed = -1;

	errno = EPERM;
	setfsgid(b->s->file_gid);
	setfsuid(b->s->file_uid);
	if ((uid_t)setfsuid(nobody) == b->s->file_uid &&
		(gid_t)setfsgid(nobody) == b->s->file_gid)
		failed = bind_file(b, b->s->file_uid);
	setfsuid(geteuid());
	setfsgid(getegid());
	return failed;
}

static int finish_apart(const void *arg, int file)
{
	return set_attributes(file, geteuid(), arg);
}

/* In the directory that is there, whatever another user puts in its place meanwhile. */
static int bind_apart(const struct bind *b)
{
	/* As bind_in_removed(). */
	cleanup_fd int in = fd_parents_open(
		NULL, b->whole, b->s->file_uid | (uint64_t)b->s->file_gid << 32, true);
	struct bind there = *b;
	const struct bind_apart apart = {.fd = b->fd,
		.name = b->name,
		.size = b->size,
		.path = b->path,
		.in = in,
		.mode = b->s->file_mode};

	there.in = in;
	there.path = strrchr(b->whole, '/') + 1;
	if (in < 0 || make_way(&there))
		return -1;
	return socket_bind_apart(&apart, finish_apart, b->s);
}

/* Whether another user can put links on the way to the file, which root is not to follow then. */
static bool is_led_by_others(const struct bind *b)
{
	cleanup_free char *above =
		xasprintf("%.*s", (int)(strrchr(b->whole, '/') + 1 - b->whole), b->whole);

	return !geteuid() && !fd_path_is_ours(above);
}

static int bind_by_root(const struct bind *b)
{
	return is_led_by_others(b) ? bind_apart(b) : bind_file(b, geteuid());
}

static int bind_it(void *arg, int unused[2])
{
	const struct bind *b = arg;

	if (!b->path)
		return bind(b->fd, (const struct sockaddr *)b->name, b->size);
	if (b->hidden)
		/* Others of the program's users are to connect. */
		return make_directories(b->path, 0777) ? -1 : bind_with_mode(b, 0777);
	/* The owner of the file need not be allowed to make files there now, but can have put links on the way. */
	if (b->s->file_uid == geteuid())
		return bind_by_root(b);
	if (!bind_as_owner(b))
		return 0;
	return errno == EACCES || errno == EPERM ? bind_by_root(b) : -1;
}

/* Where its file was, if not under its name; else NULL. */
static const char *moved_to(const struct socket_restore *q, const struct image_socket *s)
{
	return s->flags & IMAGE_SOCKET_MOVED ? image_string(q->r->job, s->directory) : NULL;
}

/* The kernel frees the name of a socket late that was on its way in a message when its program
 * ended: it looks for such when others are closed (net/unix/garbage.c). */
static int bind_as(
	const struct socket_as_creator *as, struct bind *b, const char *what, struct err *e)
{
	uint64_t pause_ns = FIRST_PAUSE_NS;

	for (int i = 0; socket_as_creator(as, bind_it, b, NULL, what, e); i++) {
		cleanup_fd int other = -1;

		if (e->code != EADDRINUSE || i == PAUSES)
			return -1;
		other = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		sleep_ns(pause_ns);
		pause_ns *= 2;
	}
	return 0;
}

/* Bind @fd to @name. Not to be found by it in the file system: *root is where it is (the
 * caller's to free), else @root is NULL. */
static int bind_name(struct socket_restore *q, int fd, const struct image_socket *s,
	const uint8_t *name, uint32_t size, char **root, struct err *e)
{
	struct bind b = {
		.fd = fd, .name = name, .size = size, .in = AT_FDCWD, .hidden = root, .s = s};
	cleanup_free char *path = NULL, *what = NULL, *whole = NULL;
	cleanup_buf struct buf shown = {0};
	cleanup_fd int probe = -1;
	const char *moved = moved_to(q, s);
	struct socket_as_creator as = {0};

	if (socket_name_is_file(name, size)) {
		b.path = path = socket_name_path(name, size);
		b.probe = probe = socket(AF_UNIX, s->type | SOCK_CLOEXEC, 0);
		if (root)
			as.root = *root = new_root(q,
				moved ? fd_temporary_directory_beside(
						moved, q->r->options->temporary_name, e)
				      : fd_temporary_directory(
						q->r->options->temporary_name, e),
				e);
		else if (path[0] != '/')
			as.directory = image_string(q->r->job, s->directory);
		if (root && !*root)
			return -1;
		b.whole = whole =
			as.directory ? xasprintf("%s/%s", as.directory, path) : xstrdup(path);
	}
	socket_name_show(name, size, &shown);
	what = xasprintf("bind a socket to %.*s", (int)shown.len, (const char *)shown.data);
	if (!bind_as(&as, &b, what, e))
		return 0;
	if ((e->code == ELOOP || e->code == ENOTDIR) && whole && !b.hidden)
		(void)fd_check_trusted(whole, O_NOFOLLOW, e); /* names the link */
	if (e->code == EPERM && whole && !geteuid() && (b.hidden || is_led_by_others(&b)) &&
		!procfs_has_capability(CAP_SYS_CHROOT))
		(void)err_append(e,
			" (root binds it below a root directory of its own, which needs "
			"CAP_SYS_CHROOT)");
	return -1;
}

static int bind_own(struct socket_restore *q, size_t number, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];
	struct socket_made *made = &q->made[number - 1];

	if (!s->name_size)
		return 0;
	return bind_name(q, made->fd, s, s->name, s->name_size,
		s->flags & IMAGE_SOCKET_FILE && !moved_to(q, s) ? NULL : &made->root, e);
}

static const char *base_name(const char *path)
{
	return strrchr(path, '/') + 1;
}

/* The directory that @path is in, which another user must not lead us to. */
static int open_above(const char *path)
{
	cleanup_free char *above = xasprintf("%.*s", (int)(base_name(path) - path), path);

	return fd_open_trusted(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* It stays below its own root as long as others are to be connected to its name. */
int socket_unix_reveal(struct socket_restore *q, size_t number, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	const char *to = moved_to(q, s), *root = q->made[number - 1].root;
	cleanup_free char *path = NULL, *from = NULL;
	cleanup_fd int probe = -1, in = -1, below = -1, file = -1;
	struct bind b;

	if (!to || !root || !socket_name_is_file(s->name, s->name_size))
		return 0;
	snprintf(name.sun_path, sizeof(name.sun_path), "%s", to);
	probe = socket(AF_UNIX, s->type | SOCK_CLOEXEC, 0);
	in = open_above(to);
	b = (struct bind){.name = (uint8_t *)&name,
		.size = sizeof(name),
		.in = in,
		.path = base_name(to),
		.probe = probe};
	if (in < 0 || make_way(&b))
		return err_set(e, errno, "cannot bind a socket to %s", to);
	path = socket_name_path(s->name, s->name_size);
	from = xasprintf("%s/%s", root, path); /* which may be relative */
	below = open_above(from);
	file = below < 0 ? -1 : openat(below, base_name(from), O_PATH | O_NOFOLLOW | O_CLOEXEC);
	/* While nobody finds it there who could have put another file in its place. */
	if (set_attributes(file, geteuid(), s))
		return err_set(e, errno, "cannot set the mode of %s", to);
	if (renameat(below, base_name(from), in, base_name(to)))
		return err_set(e, errno, "cannot rename %s to %s", from, to);
	return 0;
}

/* ---- connecting ---- */

struct call {
	int fd, backlog;
	const uint8_t *name;
	uint32_t size;
	int type;
};

static int connect_it(void *arg, int unused[2])
{
	const struct call *c = arg;

	return connect(c->fd, (const struct sockaddr *)c->name, c->size);
}

static int listen_it(void *arg, int unused[2])
{
	const struct call *c = arg;

	return listen(c->fd, c->backlog);
}

static int pair_it(void *arg, int fds[2])
{
	const struct call *c = arg;

	return socketpair(AF_UNIX, c->type | SOCK_CLOEXEC, 0, fds);
}

/* As the process whose credentials @s shows. */
static struct socket_as_creator as_seen_by(const struct image_socket *s)
{
	return (struct socket_as_creator){
		.pid = s->cred_pid,
		.has_user = s->flags & IMAGE_SOCKET_CRED,
		.uid = s->cred_uid,
		.gid = s->cred_gid,
	};
}

/* Connect @fd to the name of socket @number. */
static int connect_to(struct socket_restore *q, int fd, size_t number,
	const struct socket_as_creator *as, struct err *e)
{
	const struct image_socket *to = &q->s[number - 1];
	struct call c = {.fd = fd, .name = to->name, .size = to->name_size};
	struct socket_as_creator here = as ? *as : (struct socket_as_creator){0};

	if (socket_make(q, number, e))
		return -1;
	here.root = q->made[number - 1].root;
	if (!here.root && to->directory)
		here.directory = image_string(q->r->job, to->directory);
	return socket_as_creator(&here, connect_it, &c, NULL, "connect a socket", e);
}

static size_t find_listening(
	const struct socket_restore *q, int type, const struct image_socket *s)
{
	for (size_t n = 1; n <= q->count; n++) {
		const struct image_socket *l = &q->s[n - 1];

		if (l->state == IMAGE_SOCKET_LISTENING && l->family == AF_UNIX &&
			l->type == type && l->name_size == s->name_size &&
			!memcmp(l->name, s->name, s->name_size))
			return n;
	}
	return 0;
}

static int make_pair(struct socket_restore *q, const struct image_socket *a,
	const struct image_socket *b, int *fd_a, int *fd_b, struct err *e)
{
	struct socket_as_creator as = as_seen_by(a);
	struct call c = {.type = a->type};
	int fds[2];

	if (socket_as_creator(&as, pair_it, &c, fds, "create a pair of sockets", e))
		return -1;
	*fd_a = fd_lift_into(q->r, a->description, fds[0], e);
	*fd_b = fd_lift_into(q->r, b->description, fds[1], e);
	return *fd_a < 0 || *fd_b < 0 ? -1 : 0;
}

/* Connect @client to a socket that listens, for the moment, where the end @server was accepted. */
static int meet_at_name(struct socket_restore *q, const struct image_socket *server,
	const struct image_socket *client, int client_fd, int *listening, struct err *e)
{
	struct socket_as_creator as = as_seen_by(client);
	struct call c = {.backlog = 1, .name = server->name, .size = server->name_size};
	cleanup_free char *root = NULL;

	*listening = c.fd = socket(AF_UNIX, server->type | SOCK_CLOEXEC, 0);
	if (c.fd < 0)
		return err_set(e, errno, "cannot create a socket");
	if (bind_name(q, c.fd, server, server->name, server->name_size, &root, e) ||
		socket_as_creator(&as, listen_it, &c, NULL, "listen at a socket", e))
		return -1;
	as = as_seen_by(server);
	as.root = root;
	c.fd = client_fd;
	return socket_as_creator(&as, connect_it, &c, NULL, "connect a socket", e);
}

/* A connection from @client to @server, an end that has a name. */
static int make_connection(struct socket_restore *q, const struct image_socket *server,
	const struct image_socket *client, int *server_fd, int *client_fd, struct err *e)
{
	struct socket_as_creator as = as_seen_by(server);
	cleanup_fd int temporary = -1;
	size_t listener = find_listening(q, server->type, server);
	int fd, accepted;

	fd = socket(AF_UNIX, client->type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(e, errno, "cannot create a socket");
	*client_fd = fd = fd_lift_into(q->r, client->description, fd, e);
	if (fd < 0)
		return -1;
	if (client->name_size) {
		cleanup_free char *root = NULL;

		if (bind_name(q, fd, client, client->name, client->name_size, &root, e))
			return -1;
	}
	if (listener ? connect_to(q, fd, listener, &as, e)
		     : meet_at_name(q, server, client, fd, &temporary, e))
		return -1;
	accepted = accept4(
		listener ? q->made[listener - 1].fd : temporary, NULL, NULL, SOCK_CLOEXEC);
	if (accepted < 0)
		return err_set(e, errno, "cannot accept a connection");
	*server_fd = fd_lift_into(q->r, server->description, accepted, e);
	return *server_fd < 0 ? -1 : 0;
}

static int make_ends(struct socket_restore *q, const struct image_socket *a,
	const struct image_socket *b, int *fd_a, int *fd_b, struct err *e)
{
	if (!a->name_size && !b->name_size)
		return make_pair(q, a, b, fd_a, fd_b, e);
	if (!b->name_size || find_listening(q, a->type, a))
		return make_connection(q, a, b, fd_a, fd_b, e);
	return make_connection(q, b, a, fd_b, fd_a, e);
}

/* The other end of @s, which no longer exists, as far as it shows. */
static struct image_socket ghost_of(const struct image_socket *s)
{
	struct image_socket ghost = {.family = s->family,
		.type = s->type,
		.description = FD_NO_DESCRIPTION,
		.name_size = s->peer_name_size};

	memcpy(ghost.name, s->peer_name, s->peer_name_size);
	return ghost;
}

/* ---- by kind ---- */

static int make_connected(struct socket_restore *q, size_t number, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];
	struct socket_made *made = &q->made[number - 1];
	struct socket_made *peer = s->peer ? &q->made[s->peer - 1] : NULL;
	struct image_socket ghost;

	if (s->state == IMAGE_SOCKET_ENDED) {
		ghost = ghost_of(s);
		if (make_ends(q, s, &ghost, &made->fd, &made->other, e))
			return -1;
		made->sender = made->other;
		return 0;
	}
	if (!peer || q->s[s->peer - 1].peer != number || peer->fd >= 0)
		return err_set(e, 0, "the image is damaged: ends of a connection");
	if (make_ends(q, s, &q->s[s->peer - 1], &made->fd, &peer->fd, e))
		return -1;
	made->sender = peer->fd;
	peer->sender = made->fd;
	return 0;
}

/* A datagram socket without a name can be sent to by the one only that it was made with. */
static size_t find_partner(const struct socket_restore *q, size_t number)
{
	const struct image_socket *s = &q->s[number - 1];

	if (s->peer && !q->s[s->peer - 1].name_size)
		return s->peer;
	for (size_t n = 1; n <= q->count && !s->name_size; n++)
		if (q->s[n - 1].peer == number && q->s[n - 1].type == SOCK_DGRAM)
			return n;
	return 0;
}

static int make_datagram(struct socket_restore *q, size_t number, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];
	const struct image_socket nobody = {.description = FD_NO_DESCRIPTION};
	struct socket_made *made = &q->made[number - 1], *other;
	size_t partner = find_partner(q, number);

	if (s->state == IMAGE_SOCKET_ENDED) {
		if (make_pair(q, s, &nobody, &made->fd, &made->other, e))
			return -1;
		made->sender = made->other;
		return bind_own(q, number, e);
	}
	if (!partner) {
		made->fd = socket_new(q, s, e);
		return made->fd < 0 ? -1 : bind_own(q, number, e);
	}
	other = &q->made[partner - 1];
	if (partner == number || other->fd >= 0)
		return err_set(e, 0,
			"datagram sockets are connected in a way that cannot be restored");
	if (make_pair(q, s, &q->s[partner - 1], &made->fd, &other->fd, e))
		return -1;
	made->sender = other->fd;
	other->sender = made->fd;
	made->pair = partner;
	other->pair = number;
	return bind_own(q, number, e) || bind_own(q, partner, e) ? -1 : 0;
}

int socket_unix_listen(struct socket_restore *q, size_t number, uint32_t backlog, struct err *e)
{
	struct socket_as_creator as = as_seen_by(&q->s[number - 1]);
	struct call c = {.fd = q->made[number - 1].fd, .backlog = backlog};

	return socket_as_creator(&as, listen_it, &c, NULL, "listen at a socket", e);
}

int socket_unix_make(struct socket_restore *q, size_t number, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];
	struct socket_made *made = &q->made[number - 1];

	if (s->type == SOCK_DGRAM)
		return make_datagram(q, number, e);
	if (s->state == IMAGE_SOCKET_CONNECTED || s->state == IMAGE_SOCKET_ENDED)
		return make_connected(q, number, e);
	made->fd = socket_new(q, s, e);
	if (made->fd < 0 || bind_own(q, number, e) || socket_is_new(q, number, e))
		return -1;
	return s->state == IMAGE_SOCKET_LISTENING
		       ? socket_unix_listen(q, number, socket_backlog_needed(q, number), e)
		       : 0;
}

/* ---- when all are there ---- */

int socket_unix_connect_waiting(struct socket_restore *q, size_t number,
	const struct socket_as_creator *as, struct err *e)
{
	return connect_to(q, q->made[number - 1].fd, q->s[number - 1].listener, as, e);
}

int socket_unix_connect_peer(struct socket_restore *q, size_t number, struct err *e)
{
	const struct socket_made *made = &q->made[number - 1];
	uint32_t peer = q->s[number - 1].peer;

	return peer == made->pair ? 0 : connect_to(q, made->fd, peer, NULL, e);
}

/* With something unread it leaves an error behind. */
int socket_unix_reset(struct socket_restore *q, size_t number, struct err *e)
{
	return q->s[number - 1].type != SOCK_DGRAM && send(q->made[number - 1].fd, "", 1,
							      MSG_DONTWAIT | MSG_NOSIGNAL) != 1
		       ? err_set(e, errno, "cannot send to a closing end")
		       : 0;
}

/* Pairs had no time before their names. */
int socket_unix_set_early(struct socket_restore *q, size_t number, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];

	return socket_options_set(
		q->made[number - 1].fd, &q->options[s->first_option], s->option_count, true, e);
}

/* ---- what waits in one ---- */

bool socket_unix_is_sender(const struct socket_restore *q, size_t from,
	const struct image_socket *to, const struct image_message *m)
{
	const struct image_socket *s = &q->s[from - 1];

	return s->family == AF_UNIX && s->name_size == m->name_size &&
	       !memcmp(s->name, m->name, m->name_size);
}

int socket_unix_sender(struct socket_restore *q, const struct image_socket *to,
	const struct image_message *m, struct err *e)
{
	struct image_socket like = {.family = AF_UNIX, .type = SOCK_DGRAM};
	cleanup_fd int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cleanup_free char *root = NULL;

	if (fd < 0)
		return err_set(e, errno, "cannot create a socket");
	if (m->name_size > offsetof(struct sockaddr_un, sun_path) &&
		bind_name(q, fd, &like, m->name, m->name_size, &root, e))
		return -1;
	return steal_fd(&fd);
}

int socket_unix_destination(struct socket_restore *q, size_t number,
	const struct image_message *m, struct sockaddr_storage *address, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];

	if (!s->name_size)
		return err_set(e, 0, "nothing can be sent to a socket without a name");
	memcpy(address, s->name, s->name_size);
	return s->name_size;
}
