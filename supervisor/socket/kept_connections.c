/*
 * kept_connections.c - handing them over from the new processes, taking them out of repair
 * mode in the end, and silencing them again after a failure.
 */
#include "supervisor/socket/kept_connections.h"

#include <errno.h>
#include <sys/socket.h>

#include "lib/passed_fds.h"
#include "supervisor/socket/connection_block.h"
#include "supervisor/socket/tcp_repair.h"

static size_t count_kept(const struct checkpoint *c)
{
	size_t count;

	image_note_array(c->job, IMAGE_NOTE_TCP, struct image_tcp, &count);
	return count;
}

int socket_kept_begin(struct socket_kept *k, const struct checkpoint *c, struct err *e)
{
	int ends[2];

	k->checkpoint = c;
	if (!count_kept(c))
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return err_set(e, errno, "cannot create a socket pair");
	k->ours = ends[0];
	k->theirs = ends[1];
	return 0;
}

/* ---- from the first process to us ---- */

static size_t at_most(size_t count)
{
	return count < PASSED_FDS_MOST ? count : PASSED_FDS_MOST;
}

int socket_kept_hand_over(int theirs, const int *fds, size_t count, struct err *e)
{
	/* Nobody reads yet. */
	for (size_t i = 0; i < count; i += PASSED_FDS_MOST)
		if (passed_fds_send(theirs, "", 1, fds + i, at_most(count - i), MSG_DONTWAIT) !=
			1)
			return err_set(e, errno, "cannot hand connections to the supervisor");
	return 0;
}

/* Returns 1, or 0 when there are no more. */
static int receive_some(struct socket_kept *k)
{
	int fds[PASSED_FDS_MOST];
	size_t count;
	char byte;
	ssize_t n = passed_fds_receive(k->ours, &byte, 1, fds, &count, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN ? 0 : -1;
	buf_add(&k->fds, fds, count * sizeof(int));
	return n > 0;
}

static int receive_all(struct socket_kept *k, struct err *e)
{
	int r;

	while ((r = receive_some(k)) > 0)
		;
	if (r < 0)
		return err_set(e, errno, "cannot get connections from the new process");
	if (buf_count(&k->fds, int) != count_kept(k->checkpoint))
		return err_set(e, EMFILE, "cannot get connections from the new process");
	return 0;
}

/* ---- in the end ---- */

static int leave_repair(struct socket_kept *k, bool probe, struct err *e)
{
	for (size_t i = 0; i < buf_count(&k->fds, int); i++)
		if (socket_repair_leave(*buf_at(&k->fds, int, i), probe, e))
			return -1;
	return 0;
}

int socket_kept_open(struct socket_kept *k, struct err *e)
{
	if (k->ours < 0)
		return 0;
	return receive_all(k, e) || leave_repair(k, false, e) ? -1 : 0;
}

int socket_kept_resume(struct socket_kept *k, struct err *e)
{
	cleanup_free char *name = NULL;
	int removed;

	if (k->ours < 0)
		return 0;
	name = connection_block_name(k->checkpoint->info->job_id);
	removed = connection_block_remove(name, e);
	k->unblocked = removed; /* of a failure nobody knows how far it had come */
	return removed < 0 || leave_repair(k, true, e) ? -1 : 0;
}

static int add_to_block(struct connection_block *block, int fd)
{
	struct sockaddr_storage name = {0}, peer = {0};
	socklen_t size = sizeof(name), peer_size = sizeof(peer);

	return getsockname(fd, (struct sockaddr *)&name, &size) ||
			       getpeername(fd, (struct sockaddr *)&peer, &peer_size) ||
			       connection_block_add(
				       block, (uint8_t *)&name, (uint8_t *)&peer, NULL)
		       ? -1
		       : 0;
}

static void lock_again(const struct socket_kept *k)
{
	cleanup_free char *name = connection_block_name(k->checkpoint->info->job_id);
	struct connection_block block;

	if (connection_block_begin(&block, name, NULL))
		return;
	/* A connection that has ended meanwhile needs none. */
	for (size_t i = 0; i < buf_count(&k->fds, int); i++)
		(void)add_to_block(&block, *buf_at(&k->fds, int, i));
	connection_block_end(&block);
}

void socket_kept_silence(struct socket_kept *k)
{
	for (size_t i = 0; i < buf_count(&k->fds, int); i++)
		socket_repair_enter(*buf_at(&k->fds, int, i));
	if (k->unblocked)
		lock_again(k);
}

void socket_kept_end(struct socket_kept *k)
{
	for (size_t i = 0; i < buf_count(&k->fds, int); i++)
		close(*buf_at(&k->fds, int, i));
	buf_free(&k->fds);
	util_close(&k->ours);
	util_close(&k->theirs);
	k->ours = k->theirs = -1;
}
