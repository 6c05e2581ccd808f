/*
 * The way of a checkpoint through the sockets: each is noted when its descriptor is looked at.
 * When all are known, they are looked at, and what waits in them is read; that may bring
 * descriptors that are open nowhere else, so on until there are no new ones. Then they are
 * related to each other. Connections are read when that is done: those inside the tree are made
 * to bring all that is under way, and those to the outside to stand still.
 */
#include "supervisor/socket/sockets_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>

#include "supervisor/fd/objects_dump.h"
#include "supervisor/socket/connection_block.h"
#include "supervisor/socket/messages_dump.h"
#include "supervisor/socket/socket_families.h"
#include "supervisor/socket/socket_options.h"
#include "supervisor/socket/tcp_repair.h"

struct socket_dump *socket_dump_at(const struct fd_dump *d, uint32_t number)
{
	BUG_ON(!number || number > socket_dump_count(d));
	return buf_at(&d->sockets, struct socket_dump, number - 1);
}

uint32_t socket_dump_count(const struct fd_dump *d)
{
	return buf_count(&d->sockets, struct socket_dump);
}

uint32_t socket_dump_find(const struct fd_dump *d, uint64_t inode)
{
	for (uint32_t n = 1; n <= socket_dump_count(d); n++)
		if (socket_dump_at(d, n)->inode == inode)
			return n;
	return 0;
}

/* What an error is about. */
static const char *socket_dump_text(const struct fd_dump *d, const struct socket_dump *k)
{
	return fd_object_at(d, k->object)->text;
}

/* ---- the row of fd_table/kind_table.c ---- */

static int ask_option(int fd, int name, int *value)
{
	socklen_t size = sizeof(*value);

	return getsockopt(fd, SOL_SOCKET, name, value, &size);
}

bool fd_socket_match(const struct fd_dump *d, const struct fd_source *s)
{
	int family, type, protocol;

	if (!S_ISSOCK(s->st.st_mode) || s->flags & O_PATH ||
		ask_option(s->dup, SO_DOMAIN, &family) || ask_option(s->dup, SO_TYPE, &type) ||
		ask_option(s->dup, SO_PROTOCOL, &protocol))
		return false;
	return socket_is_known(family, type, protocol);
}

int fd_socket_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	int family, type, protocol;
	struct socket_dump k = {.inode = s->st.st_ino, .pid = s->pid};
	cleanup_fd int fd = fcntl(s->dup, F_DUPFD_CLOEXEC, 0);

	/* A socket that came in a message. */
	if (k.pid == getpid())
		k.pid = *buf_at(&d->pids, pid_t, 0);
	if (fd < 0 || ask_option(s->dup, SO_DOMAIN, &family) ||
		ask_option(s->dup, SO_TYPE, &type) ||
		ask_option(s->dup, SO_PROTOCOL, &protocol))
		return err_set(e, errno, "cannot keep it open");
	k.fd = steal_fd(&fd);
	k.s.family = family;
	k.s.type = type;
	k.s.protocol = protocol;
	k.object = x->object = fd_object_of(d, s, IMAGE_OBJECT_SOCKET);
	buf_push(&d->sockets, struct socket_dump, &k);
	x->args[0] = socket_dump_count(d);
	x->args[1] = fd_source_owner(s);
	return 0;
}

/* ---- looking ---- */

/* With addresses and routes of its own. Before Linux 5.14 nothing shows that. */
static int refuse_namespace(const struct socket_dump *k, struct err *e)
{
	cleanup_fd int ours = -1;
	uint64_t here, there;
	socklen_t size = sizeof(here);

	if (socket_has_trait(&k->s, SOCKET_OF_MACHINE))
		return 0;
	if (getsockopt(k->fd, SOL_SOCKET, SO_NETNS_COOKIE, &there, &size))
		return errno == ENOPROTOOPT
			       ? 0
			       : err_set(e, errno, "cannot query its network namespace");
	ours = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (ours < 0 || getsockopt(ours, SOL_SOCKET, SO_NETNS_COOKIE, &here, &size))
		return err_set(e, errno, "cannot query the network namespace");
	return here == there ? 0 : err_set(e, 0, "it is of another network namespace");
}

static int look_at_socket(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	return refuse_namespace(k, e) || socket_family_of(&k->s)->look(d, k, e) ||
			       socket_options_save(k->fd, &k->s, &k->options, e)
		       ? -1
		       : 0;
}

static int look_at_all(struct fd_dump *d, struct err *e)
{
	for (uint32_t n = 1; n <= socket_dump_count(d); n++) {
		struct socket_dump *k = socket_dump_at(d, n);

		if (k->looked_at)
			continue;
		k->looked_at = true;
		if (look_at_socket(d, k, e) ||
			(!socket_is_tcp(&k->s) && socket_save_messages(d, n, e)))
			return err_prefix(e, "%s", socket_dump_text(d, socket_dump_at(d, n)));
	}
	return 0;
}

static int relate_all(struct fd_dump *d, struct err *e)
{
	for (uint32_t n = 1; n <= socket_dump_count(d); n++) {
		struct socket_dump *k = socket_dump_at(d, n);
		const struct socket_family *f = socket_family_of(&k->s);

		if (f->relate && f->relate(d, k, e))
			return err_prefix(e, "%s", socket_dump_text(d, k));
	}
	return 0;
}

/* These bring no descriptors. */
static int read_connections(struct fd_dump *d, struct err *e)
{
	for (uint32_t n = 1; n <= socket_dump_count(d); n++) {
		struct socket_dump *k = socket_dump_at(d, n);

		if (!socket_is_tcp(&k->s))
			continue;
		if (socket_inet_await_arrival(d, k, e) || socket_save_messages(d, n, e) ||
			(k->kept && socket_inet_save_kept(d, k, e)))
			return err_prefix(e, "%s", socket_dump_text(d, k));
	}
	return 0;
}

static int check_backlogs(struct fd_dump *d, struct err *e)
{
	for (uint32_t n = 1; n <= socket_dump_count(d); n++) {
		struct socket_dump *k = socket_dump_at(d, n);

		if (socket_inet_check_backlog(d, k, e))
			return err_prefix(e, "%s", socket_dump_text(d, k));
	}
	return 0;
}

int socket_dump_all(struct fd_dump *d, struct err *e)
{
	if (look_at_all(d, e) || relate_all(d, e))
		return -1;
	if (socket_dump_keeps(d))
		connection_block_await_packets();
	return read_connections(d, e) || check_backlogs(d, e) ? -1 : 0;
}

/* ---- writing ---- */

struct counts {
	uint32_t options, messages, rights;
};

static void write_one(struct fd_dump *d, struct socket_dump *k, struct counts *c)
{
	k->s.first_option = c->options;
	k->s.option_count = buf_count(&k->options, struct image_socket_option);
	k->s.first_message = c->messages;
	k->s.message_count = buf_count(&k->messages, struct image_message);
	for (size_t i = 0; i < k->s.message_count; i++)
		buf_at(&k->messages, struct image_message, i)->first_right += c->rights;
	c->options += k->s.option_count;
	c->messages += k->s.message_count;
	c->rights += buf_count(&k->rights, uint32_t);
	image_writer_note(d->job, IMAGE_NOTE_SOCKETS, &k->s, sizeof(k->s));
	image_writer_note(d->job, IMAGE_NOTE_SOCKET_OPTIONS, k->options.data, k->options.len);
	image_writer_note(d->job, IMAGE_NOTE_MESSAGES, k->messages.data, k->messages.len);
	image_writer_note(d->job, IMAGE_NOTE_RIGHTS, k->rights.data, k->rights.len);
	if (k->kept)
		image_writer_note(d->job, IMAGE_NOTE_TCP, &k->tcp, sizeof(k->tcp));
}

void socket_dump_write(struct fd_dump *d)
{
	struct counts c = {0};

	for (size_t i = 0; i < buf_count(&d->descriptions, struct fd_described); i++) {
		const struct image_description *x =
			&buf_at(&d->descriptions, struct fd_described, i)->x;

		if (x->kind == IMAGE_FD_SOCKET)
			socket_dump_at(d, x->args[0])->s.description = i;
	}
	for (uint32_t n = 1; n <= socket_dump_count(d); n++)
		write_one(d, socket_dump_at(d, n), &c);
}

/* ---- the end ---- */

bool socket_dump_keeps(const struct fd_dump *d)
{
	for (uint32_t n = 1; n <= socket_dump_count(d); n++)
		if (socket_dump_at(d, n)->kept)
			return true;
	return false;
}

void socket_dump_resume(struct fd_dump *d)
{
	if (d->block)
		connection_block_end(d->block);
}

static int hold_all(struct fd_dump *d, struct connection_block *lasting, struct err *e)
{
	for (uint32_t n = 1; n <= socket_dump_count(d); n++) {
		const struct socket_dump *k = socket_dump_at(d, n);

		if (k->kept && connection_block_add(lasting, k->s.name, k->s.peer_name, e))
			return err_prefix(e, "%s", socket_dump_text(d, k));
	}
	return 0;
}

int socket_dump_hold(struct fd_dump *d, const uint8_t job_id[16], struct err *e)
{
	cleanup_free char *name = connection_block_name(job_id);
	struct connection_block lasting;
	int failed;

	if (connection_block_begin(&lasting, name, e))
		return -1;
	failed = hold_all(d, &lasting, e);
	connection_block_end(&lasting);
	if (failed)
		(void)connection_block_remove(name, NULL); /* what it was that failed is told */
	return failed;
}

/* An end that closes first would keep its port for a minute (TIME_WAIT). Nobody is told that is
 * not part of the program. */
void socket_dump_let_go(struct fd_dump *d)
{
	const struct linger now = {.l_onoff = 1};

	for (uint32_t n = 1; n <= socket_dump_count(d); n++) {
		const struct socket_dump *k = socket_dump_at(d, n);

		if (k->kept)
			socket_repair_enter(k->fd);
		if (socket_is_tcp(&k->s) && k->s.peer)
			(void)setsockopt(k->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	}
}

void socket_dump_free(struct fd_dump *d)
{
	for (uint32_t n = 1; n <= socket_dump_count(d); n++) {
		struct socket_dump *k = socket_dump_at(d, n);

		close(k->fd);
		buf_free(&k->options);
		buf_free(&k->messages);
		buf_free(&k->rights);
		buf_free(&k->waiting);
	}
	buf_free(&d->sockets);
	/* Behind the sockets, which say something as they close. */
	socket_dump_resume(d);
	free(d->block);
}
