/*
 * reopen_despite_mode.c - opened in a user namespace of another process, where modes do not count
 * for our own files; where that is not available, with a mode that is changed for a moment.
 */
#include "supervisor/fd/reopen_despite_mode.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/passed_fds.h"
#include "lib/util.h"
#include "supervisor/fd/group_opener.h"
#include "supervisor/fd/surviving_helper.h"
#include "supervisor/fd/trusted_path.h"

struct reopening {
	const char *path; /* by /proc/self/fd */
	int flags;
	mode_t mode;
	int sender;                 /* of the descriptor, to ourselves */
	char users[40], groups[40]; /* maps of the user namespace: ourselves */
	int code;                   /* errno */
};

static int send_descriptor(int to, int fd)
{
	return passed_fds_send(to, "", 1, &fd, 1, MSG_DONTWAIT) == 1 ? 0 : -1;
}

static int receive_descriptor(int from)
{
	int fds[PASSED_FDS_MOST];
	size_t count;
	char byte;

	if (passed_fds_receive(from, &byte, 1, fds, &count, MSG_DONTWAIT) != 1)
		return -1;
	if (count == 1)
		return fds[0];
	errno = EMFILE;
	return -1;
}

static int write_map(const char *path, const char *text)
{
	cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 || write(fd, text, strlen(text)) < 0 ? -1 : 0;
}

/* In a user namespace of its own, where modes do not count for files of ours and of our group
 * (capable_wrt_inode_uidgid(), kernel/capability.c). */
static int open_in_namespace(void *arg)
{
	struct reopening *o = arg;
	cleanup_fd int fd = -1;

	if (write_map("/proc/self/setgroups", "deny") ||
		write_map("/proc/self/uid_map", o->users) ||
		write_map("/proc/self/gid_map", o->groups) ||
		(fd = open(o->path, o->flags)) < 0 || send_descriptor(o->sender, fd)) {
		o->code = errno;
		return -1;
	}
	return 0;
}

/* In a process of its own, whose descriptors are not ours. Where there are no user namespaces, or a set-group-ID
 * program cannot be executed (group_opener.h). */
static int open_with_mode(void *arg)
{
	struct reopening *o = arg;
	int fd;

	if (chmod(o->path, o->mode | S_IRUSR | S_IWUSR)) {
		o->code = errno;
		return -1;
	}
	fd = open(o->path, o->flags);
	o->code = errno;
	/* It has just been allowed to us. */
	(void)chmod(o->path, o->mode);
	if (fd < 0)
		return -1;
	if (send_descriptor(o->sender, fd)) {
		o->code = errno;
		return -1;
	}
	return 0;
}

bool fd_reopens(const struct stat *st)
{
	return (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISFIFO(st->st_mode)) &&
	       st->st_uid == geteuid();
}

void fd_reopen_prepare(const char *path, int flags)
{
	static const int wanted[] = {R_OK, W_OK, R_OK | W_OK, 0};
	struct stat st;

	if (flags & O_PATH || !faccessat(AT_FDCWD, path, wanted[flags & O_ACCMODE], AT_EACCESS))
		return;
	/* Without it there is still another way. */
	if (!stat(path, &st) && fd_reopens(&st) && st.st_gid != getegid())
		(void)group_opener_start(st.st_gid);
}

void fd_reopen_avoid_ids(bool (*needs)(const void *arg, pid_t id), const void *arg)
{
	group_openers_avoid(needs, arg);
}

void fd_reopen_end(void)
{
	group_openers_end();
}

/* In a user namespace. -1 and errno, EACCES: there is none that would do. In one that we are in already, a group that is not
 * mapped looks like any other such, perhaps like ours. */
static int open_whatever_mode(int at, const struct stat *st, struct reopening *o, int from)
{
	snprintf(o->users, sizeof(o->users), "%u %u 1", geteuid(), geteuid());
	snprintf(o->groups, sizeof(o->groups), "%u %u 1", getegid(), getegid());
	if (st->st_gid == getegid()) {
		if (!run_in_surviving_namespace(open_in_namespace, o, NULL))
			return receive_descriptor(from);
		if (o->code == EMFILE || o->code == ENFILE) {
			errno = o->code;
			return -1;
		}
	}
	return group_opener_open(at, o->flags);
}

int fd_reopen(const char *path, int flags)
{
	cleanup_fd int at = -1, from = -1, to = -1;
	cleanup_free char *link = NULL;
	struct reopening o = {.flags = flags & ~O_NOFOLLOW};
	struct stat st;
	int fd = fd_open_trusted(path, flags), pair[2];

	if (fd >= 0 || errno != EACCES)
		return fd;
	at = fd_open_trusted(path, O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW));
	if (at < 0 || fstat(at, &st))
		return -1;
	if (!fd_reopens(&st)) {
		errno = EACCES;
		return -1;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -1;
	from = pair[0];
	to = o.sender = pair[1];
	o.path = link = xasprintf("/proc/self/fd/%d", at);
	o.mode = st.st_mode & 07777;
	fd = open_whatever_mode(at, &st, &o, from);
	if (fd >= 0 || errno != EACCES)
		return fd;
	o.code = 0;
	if (run_in_surviving_helper(open_with_mode, &o, NULL)) {
		errno = o.code ? o.code : EACCES;
		return -1;
	}
	return receive_descriptor(from);
}
