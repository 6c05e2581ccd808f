#include "supervisor/socket/kept_connections.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "supervisor/socket/connection_block.h"
#include "supervisor/socket/tcp_repair.h"

/* In one message: SCM_MAX_FD, include/net/scm.h. */
#define FDS_MAX 253

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
};

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

static int send_some(int theirs, const int *fds, size_t count)
{
	union control control = {0};
	struct iovec iov = {"", 1};
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)),
	};

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(&control.head), fds, count * sizeof(int));
	/* Nobody reads yet. */
	return sendmsg(theirs, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 ? 0 : -1;
}

int socket_kept_hand_over(int theirs, const int *fds, size_t count, struct err *e)
{
	for (size_t i = 0; i < count; i += FDS_MAX)
		if (send_some(theirs, fds + i, count - i < FDS_MAX ? count - i : FDS_MAX))
			return err_set(e, errno, "cannot hand connections to the supervisor");
	return 0;
}

/* Returns 1, or 0 when there are no more. */
static int receive_some(struct socket_kept *k)
{
	union control control;
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(k->ours, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;

	if (n < 0)
		return errno == EAGAIN ? 0 : -1;
	if (c && c->cmsg_type == SCM_RIGHTS)
		buf_add(&k->fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
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
	k->unlocked = removed; /* of a failure nobody knows how far it had come */
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
	/* One that has ended meanwhile needs none. */
	for (size_t i = 0; i < buf_count(&k->fds, int); i++)
		(void)add_to_block(&block, *buf_at(&k->fds, int, i));
	connection_block_end(&block);
}

void socket_kept_silence(struct socket_kept *k)
{
	for (size_t i = 0; i < buf_count(&k->fds, int); i++)
		socket_repair_enter(*buf_at(&k->fds, int, i));
	if (k->unlocked)
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
