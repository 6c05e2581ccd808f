/*
 * socket/unix_dump.c - UNIX sockets at a checkpoint.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "lib/shown_path.h"
#include "supervisor/fd/trusted_path.h"
#include "supervisor/socket/in_pid_namespace.h"
#include "supervisor/socket/sock_diag.h"
#include "supervisor/socket/socket_families.h"
#include "supervisor/socket/sockets_dump.h"

/* <linux/un.h>, which cannot be included beside <sys/un.h> */
#ifndef SIOCUNIXFILE
#define SIOCUNIXFILE (SIOCPROTOPRIVATE + 0)
#endif

#define OTHER_PROGRAM "it is connected to a socket of another program"

static int get_names(struct socket_dump *k, struct err *e)
{
	socklen_t size = sizeof(k->s.name), none = sizeof(sa_family_t);

	if (getsockname(k->fd, (struct sockaddr *)k->s.name, &size))
		return err_set(e, errno, "cannot query its name");
	k->s.name_size = size > none ? size : 0;
	size = sizeof(k->s.peer_name);
	if (!getpeername(k->fd, (struct sockaddr *)k->s.peer_name, &size))
		k->s.peer_name_size = size > none ? size : 0;
	return 0;
}

static int ask_pid(void *arg)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);

	return getsockopt(*(int *)arg, SOL_SOCKET, SO_PEERCRED, &cred, &size) ? -1 : cred.pid;
}

static void get_cred(struct socket_dump *k)
{
	pid_t pid;
	struct ucred cred;
	socklen_t size = sizeof(cred);

	/* (uid_t)-1: nobody yet. */
	if (getsockopt(k->fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) || cred.uid == (uid_t)-1)
		return;
	pid = socket_ask_in_pid_namespace(k->pid, ask_pid, &k->fd);
	k->s.flags |= IMAGE_SOCKET_CRED;
	k->s.cred_pid = pid > 0 ? pid : 0;
	k->s.cred_uid = cred.uid;
	k->s.cred_gid = cred.gid;
}

/* ---- the file behind a name ---- */

static bool is_file(struct socket_dump *k, const char *path, uint32_t inode)
{
	struct stat st;

	if (stat(path, &st) || !S_ISSOCK(st.st_mode) || (uint32_t)st.st_ino != inode)
		return false;
	k->s.flags |= IMAGE_SOCKET_FILE;
	k->s.file_mode = st.st_mode & 07777;
	k->s.file_uid = st.st_uid;
	k->s.file_gid = st.st_gid;
	return true;
}

/* Whether the owner of the file, as whom root binds at a restart, can make files in the directory @above. The
 * system call itself: the C library's faccessat() asks about other ids than those of setfsuid(2). */
static bool owner_makes_files(const struct socket_dump *k, const char *above)
{
	bool can;

	setfsgid(k->s.file_gid);
	setfsuid(k->s.file_uid);
	can = !syscall(SYS_faccessat2, AT_FDCWD, above, W_OK | X_OK, AT_EACCESS);
	setfsuid(geteuid());
	setfsgid(getegid());
	return can;
}

/* The file was found as @path. A restart binds there, and neither replaces a link nor has root follow another user's.
 * @any_owner: it is put there by root whoever owns it. */
static int check_place(
	const struct socket_dump *k, const char *path, bool any_owner, struct err *e)
{
	cleanup_free char *above =
		xasprintf("%.*s", (int)(strrchr(path, '/') + 1 - path), path);
	struct stat st;

	if (!lstat(path, &st) && S_ISLNK(st.st_mode))
		return err_set(e, 0,
			"its name %s is now a symbolic link to its file: give the file its "
			"name back",
			path);
	if (geteuid() || (!any_owner && k->s.file_uid && owner_makes_files(k, above)))
		return 0;
	return fd_check_trusted(above, 0, e)
		       ? err_prefix(e, "a restart could not bind it to %s again", path)
		       : 0;
}

/* Whether the file is at @name in the directory that the link @link leads to. */
static bool find_in(struct fd_dump *d, struct socket_dump *k, const char *link,
	const char *name, uint32_t inode, char **whole)
{
	cleanup_free char *path = xasprintf("%s/%s", link, name), *directory = NULL;

	if (!is_file(k, path, inode))
		return false;
	directory = read_shown_link(link, NULL);
	if (!directory)
		return false;
	k->s.directory = image_writer_string(d->job, directory);
	*whole = xasprintf("%s/%s", directory, name);
	return true;
}

/* In a directory that the process has open: one that goes from directory to directory returns by such a
 * descriptor (wineserver). */
static bool find_in_open(struct fd_dump *d, struct socket_dump *k, pid_t pid, const char *name,
	uint32_t inode, char **whole)
{
	cleanup_free char *fds = xasprintf("/proc/%d/fd", pid);
	DIR *dir = opendir(fds);
	const struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir))) {
		cleanup_free char *link = xasprintf("%s/%s", fds, entry->d_name);

		found = entry->d_name[0] != '.' && find_in(d, k, link, name, inode, whole);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* A relative name was so from the working directory of the process that bound it. */
static bool find_in_directories(struct fd_dump *d, struct socket_dump *k, const char *name,
	uint32_t inode, char **whole)
{
	const pid_t *pids = d->pids.data;
	size_t count = buf_count(&d->pids, pid_t);

	for (size_t i = 0; i < count; i++) {
		cleanup_free char *link = xasprintf("/proc/%d/cwd", pids[i]);

		if (find_in(d, k, link, name, inode, whole))
			return true;
	}
	for (size_t i = 0; i < count; i++)
		if (find_in_open(d, k, pids[i], name, inode, whole))
			return true;
	return false;
}

/* Under which other name the file is in the directory of @path: NULL: under none. */
static char *find_renamed(const char *path, uint32_t inode)
{
	cleanup_free char *directory =
		xasprintf("%.*s", (int)(strrchr(path, '/') + 1 - path), path);
	DIR *dir = opendir(directory);
	struct dirent *entry;
	char *found = NULL;

	while (dir && !found && (entry = readdir(dir)))
		if (entry->d_type == DT_SOCK && (uint32_t)entry->d_ino == inode &&
			strlen(directory) + strlen(entry->d_name) <
				sizeof(((struct sockaddr_un *)0)->sun_path))
			found = xasprintf("%s%s", directory, entry->d_name);
	if (dir)
		closedir(dir);
	return found;
}

/* Not there under its name. Some servers rename it, or link it and remove the first name. */
static int find_moved(struct fd_dump *d, struct socket_dump *k, const char *path,
	uint32_t inode, struct err *e)
{
	cleanup_free char *found = find_renamed(path, inode);

	/* Unlinked, as far as it can be told. */
	if (!found || !is_file(k, found, inode))
		return 0;
	k->s.flags |= IMAGE_SOCKET_MOVED;
	k->s.directory = image_writer_string(d->job, found);
	return check_place(k, found, true, e);
}

static bool has_parent_in(const char *name)
{
	for (const char *p = name; (p = strstr(p, "..")); p += 2)
		if ((p == name || p[-1] == '/') && (!p[2] || p[2] == '/'))
			return true;
	return false;
}

/* @path, which is not under the name @name in a directory that a process works in or has open. */
static int set_place(struct fd_dump *d, struct socket_dump *k, char *path, const char *name,
	uint32_t inode, struct err *e)
{
	size_t length = strlen(path), tail = strlen(name) + 1;

	if (!is_file(k, path, inode))
		return err_set(e, 0, "its name %s is not found in any directory", name);
	if (length > tail && path[length - tail] == '/' &&
		!strcmp(path + length - tail + 1, name)) {
		path[length - tail] = 0;
	} else if (length >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
		return err_set(e, 0,
			"its file %s is %s by now, which is too long for an address: give it "
			"its name back, or a shorter one",
			name, path);
	} else if (has_parent_in(name)) {
		/* In a root directory of its own, ".." would lead elsewhere. */
		return err_set(
			e, 0, "its file %s is %s by now: give it its name back", name, path);
	} else {
		k->s.flags |= IMAGE_SOCKET_MOVED;
	}
	k->s.directory = image_writer_string(d->job, path);
	return 0;
}

/* The kernel tells which file it is, wherever that is by now, but not everybody. */
static int ask_for_file(struct fd_dump *d, struct socket_dump *k, const char *name,
	uint32_t inode, struct err *e)
{
	cleanup_fd int file = ioctl(k->fd, SIOCUNIXFILE);
	cleanup_free char *link = xasprintf("/proc/self/fd/%d", file), *path = NULL;
	struct stat st;

	if (file < 0 && errno == EPERM)
		return err_set(e, 0,
			"its name %s is not found in any directory that one of the processes "
			"works in or has open (the kernel tells where it is only with "
			"CAP_NET_ADMIN): have the program bind it to an absolute name, or run "
			"trecr "
			"as root",
			name);
	if (file < 0 || fstat(file, &st))
		return err_set(e, errno, "cannot find the file of its name %s", name);
	/* It was unlinked. */
	if (!st.st_nlink)
		return 0;
	path = read_shown_link(link, e);
	if (!path)
		return -1;
	return set_place(d, k, path, name, inode, e);
}

/* The file of a socket that can be found by its name. */
static int find_file(
	struct fd_dump *d, struct socket_dump *k, const struct unix_facts *f, struct err *e)
{
	cleanup_free char *name = NULL, *whole = NULL;

	if (!f->has_file || !socket_name_is_file(k->s.name, k->s.name_size))
		return 0;
	name = socket_name_path(k->s.name, k->s.name_size);
	if (name[0] == '/') {
		return is_file(k, name, f->file_inode)
			       ? check_place(k, name, false, e)
			       : find_moved(d, k, name, f->file_inode, e);
	}
	if (find_in_directories(d, k, name, f->file_inode, &whole))
		return check_place(k, whole, false, e);
	return ask_for_file(d, k, name, f->file_inode, e);
}

/* ---- look ---- */

static bool has_error(int fd)
{
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, 0) == 1 && p.revents & POLLERR;
}

static bool has_urgent(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLPRI};

	return poll(&p, 1, 0) == 1 && p.revents & POLLPRI;
}

static int set_state(
	struct fd_dump *d, struct socket_dump *k, struct unix_facts *f, struct err *e)
{
	k->s.state = IMAGE_SOCKET_OPEN;
	if (f->state == TCP_LISTEN) {
		k->s.state = IMAGE_SOCKET_LISTENING;
		k->s.backlog = f->backlog;
		k->waiting = f->waiting;
		f->waiting = (struct buf){0};
	} else if (f->has_peer) {
		k->s.state = IMAGE_SOCKET_CONNECTED;
		k->peer_inode = f->peer;
		k->closed_end = !f->peer;
	}
	if (k->s.state != IMAGE_SOCKET_CONNECTED || k->s.type == SOCK_DGRAM)
		return find_file(d, k, f, e);
	return 0;
}

int socket_unix_look(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	struct unix_facts f;
	int r = -1;

	if (socket_diag_unix(k->inode, &f, e))
		return -1;
	k->s.shutdown = f.shutdown & 3;
	get_cred(k);
	if (has_urgent(k->fd))
		err_set(e, 0, "urgent data (MSG_OOB) waits in it, which is not supported");
	else if (!get_names(k, e))
		r = set_state(d, k, &f, e);
	if (!r && has_error(k->fd))
		k->s.flags |= IMAGE_SOCKET_RESET;
	buf_free(&f.waiting);
	return r;
}

/* ---- relate ---- */

/* In whose backlog @k waits: true when there is one. */
static bool find_listener(struct fd_dump *d, struct socket_dump *k)
{
	for (uint32_t n = 1; n <= socket_dump_count(d); n++) {
		const struct socket_dump *l = socket_dump_at(d, n);

		for (size_t i = 0; i < buf_count(&l->waiting, uint32_t); i++) {
			if (*buf_at(&l->waiting, uint32_t, i) != k->inode)
				continue;
			k->s.listener = n;
			k->s.backlog = i;
			return true;
		}
	}
	return false;
}

/* Who accepts it will see the process that has connected it: most likely its holder.
 */
static void set_connecting(struct socket_dump *k)
{
	cleanup_free char *status = procfs_status(k->pid, k->pid, NULL);

	k->s.flags &= ~IMAGE_SOCKET_CRED;
	if (!status ||
		sscanf(status_value(status, "Uid"), "%*u %" SCNu32, &k->s.cred_uid) != 1 ||
		sscanf(status_value(status, "Gid"), "%*u %" SCNu32, &k->s.cred_gid) != 1)
		return;
	k->s.flags |= IMAGE_SOCKET_CRED;
	k->s.cred_pid = fd_inner_pid(k->pid);
}

static int relate_waiting(struct socket_dump *k, struct err *e)
{
	int sent;

	set_connecting(k);
	if (ioctl(k->fd, SIOCOUTQ, &sent))
		return err_set(e, errno, "cannot query how much it has sent");
	k->s.state = IMAGE_SOCKET_WAITING;
	/* What waits in a connection that is not accepted yet cannot be looked at. */
	return sent ? err_with(
			      e, ERR_TRY_AGAIN, "it waits to be accepted, and has sent already")
		    : 0;
}

static int relate_ended(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	if (k->s.type != SOCK_DGRAM && find_listener(d, k))
		return relate_waiting(k, e);
	if (k->s.type != SOCK_DGRAM && k->s.shutdown != 3)
		return err_set(e, 0, OTHER_PROGRAM);
	k->s.state = IMAGE_SOCKET_ENDED;
	return 0;
}

static int relate_backlog(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	for (size_t i = 0; i < buf_count(&k->waiting, uint32_t); i++)
		if (!socket_dump_find(d, *buf_at(&k->waiting, uint32_t, i)))
			return err_with(e, ERR_TRY_AGAIN,
				"a connection waits to be accepted whose other end is of "
				"another program, or closed already");
	return 0;
}

int socket_unix_relate(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	if (k->s.state == IMAGE_SOCKET_LISTENING)
		return relate_backlog(d, k, e);
	if (k->s.state != IMAGE_SOCKET_CONNECTED)
		return 0;
	if (k->closed_end)
		return relate_ended(d, k, e);
	k->s.peer = socket_dump_find(d, k->peer_inode);
	/* A datagram socket sends to a name, such as the system log's. */
	if (!k->s.peer && (k->s.type != SOCK_DGRAM || !k->s.peer_name_size))
		return err_set(e, 0, OTHER_PROGRAM);
	return 0;
}
