/*
 * inherited_check.c - looks at each descriptor of this process before the program gets them.
 */
#include "supervisor/start/inherited_check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/util.h"

/* A standard stream by another number is one all the same (fd_kinds/inherited_stream.c). */
static bool is_stream(int fd, const struct stat *st)
{
	int access = fcntl(fd, F_GETFL) & O_ACCMODE;

	for (int i = 0; i < 3; i++) {
		struct stat stream;

		if (!fstat(i, &stream) && stream.st_dev == st->st_dev &&
			stream.st_ino == st->st_ino &&
			(fcntl(i, F_GETFL) & O_ACCMODE) == access)
			return true;
	}
	return false;
}

static bool is_connected(int fd)
{
	struct sockaddr_storage name;
	socklen_t size = sizeof(name);

	return !getpeername(fd, (struct sockaddr *)&name, &size) && name.ss_family == AF_UNIX;
}

/* Of several, two may be each other's ends. */
static bool is_only_connected(int fd, const struct buf *fds)
{
	for (size_t i = 0; i < buf_count(fds, int); i++) {
		int other = *buf_at(fds, int, i);

		if (is_connected(other) != (other == fd))
			return false;
	}
	return true;
}

/* Whether the other end of a pipe or connection is open. */
static bool is_held(int fd)
{
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, 0) >= 0 && !(p.revents & (POLLHUP | POLLERR));
}

/* @other is the other end, which comes with it: then nobody else need have it. */
static bool is_other_end(int fd, const struct stat *st, int other)
{
	struct stat its;
	int flags = fcntl(other, F_GETFL);

	if (other == fd || flags < 0 || fstat(other, &its) || its.st_dev != st->st_dev ||
		its.st_ino != st->st_ino)
		return false;
	return (flags & O_ACCMODE) != (fcntl(fd, F_GETFL) & O_ACCMODE);
}

static bool is_obstacle(int fd, const struct stat *st, const char *link, const struct buf *fds)
{
	if (is_stream(fd, st))
		return false;
	if (S_ISSOCK(st->st_mode))
		return is_only_connected(fd, fds) && is_held(fd);
	/* A FIFO with a name is opened anew. */
	if (strncmp(link, "pipe:", 5) != 0)
		return false;
	for (size_t i = 0; i < buf_count(fds, int); i++)
		if (is_other_end(fd, st, *buf_at(fds, int, i)))
			return false;
	return is_held(fd);
}

static void list_own(struct buf *fds)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && fd != dirfd(dir))
			buf_push(fds, int, &fd);
	}
	if (dir)
		closedir(dir);
}

/* Mostly so. From Linux 6.2 on the directory's size is the number of open descriptors. */
static bool has_streams_only(void)
{
	struct stat st;

	return !stat("/proc/self/fd", &st) && st.st_size == 3 && fcntl(0, F_GETFD) >= 0 &&
	       fcntl(1, F_GETFD) >= 0 && fcntl(2, F_GETFD) >= 0;
}

static bool is_written_file(int fd, const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_nlink &&
	       (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
}

/* In a directory that we may not enter: a restart could not open it (fd_kinds/regular_file.c). */
static bool is_out_of_reach(const char *link)
{
	struct stat st;

	return lstat(link, &st) && errno == EACCES;
}

static void add_found(struct buf *found, int fd, const char *link)
{
	buf_printf(found, "%s%d (%s)", found->len ? ", " : "", fd, link);
}

struct found {
	struct buf held, out_of_reach;
};

/* By few system calls, as each program waits for them at its start. */
static void look_at(int fd, int but, const struct buf *fds, struct found *found)
{
	bool may_be_held, is_written;
	char path[64], link[PATH_MAX];
	struct stat st;
	ssize_t n;
	int flags;

	if (fstat(fd, &st))
		return;
	may_be_held = fd > 2 && fd != but && (S_ISSOCK(st.st_mode) || S_ISFIFO(st.st_mode));
	is_written = is_written_file(fd, &st);
	if (!may_be_held && !is_written)
		return;
	flags = fcntl(fd, F_GETFD);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0 || flags < 0 || flags & FD_CLOEXEC)
		return;
	link[n] = 0;
	if (may_be_held && is_obstacle(fd, &st, link, fds))
		add_found(&found->held, fd, link);
	if (is_written && is_out_of_reach(link))
		add_found(&found->out_of_reach, fd, link);
}

static char *take_text(struct buf *found)
{
	if (found->len)
		buf_grow(found, 1); /* the end of a string */
	return found->data;
}

struct inherited inherited_check(int but)
{
	static const int streams[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
	cleanup_buf struct buf fds = {0};
	struct found found = {0};

	if (has_streams_only())
		buf_add(&fds, streams, sizeof(streams));
	else
		list_own(&fds);
	for (size_t i = 0; i < buf_count(&fds, int); i++)
		look_at(*buf_at(&fds, int, i), but, &fds, &found);
	return (struct inherited){
		.held = take_text(&found.held),
		.out_of_reach = take_text(&found.out_of_reach),
	};
}

/* ---- what a launcher has left open by mistake ---- */

/* Whether @pid has a descriptor of the pipe or socket; not if it is not ours to look at. */
static bool has_open(pid_t pid, const char *link)
{
	cleanup_free char *path = xasprintf("/proc/%d/fd", pid);
	DIR *dir = opendir(path);
	struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir))) {
		char its[PATH_MAX];
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, its, sizeof(its) - 1);

		its[n < 0 ? 0 : n] = 0;
		found = !strcmp(its, link);
	}
	if (dir)
		closedir(dir);
	return found;
}

static bool is_launchers(const pid_t *launcher, size_t count, pid_t above, int fd)
{
	cleanup_free char *path = xasprintf("/proc/self/fd/%d", fd);
	cleanup_free char *link = read_link(path, NULL);

	if (!link || (strncmp(link, "pipe:", 5) && strncmp(link, "socket:", 7)) ||
		(above && has_open(above, link)))
		return false;
	for (size_t i = 0; i < count; i++)
		if (has_open(launcher[i], link))
			return true;
	return false;
}

void inherited_close_launchers(const pid_t *launcher, size_t count, pid_t above, int but)
{
	cleanup_buf struct buf fds = {0};

	if (count)
		list_own(&fds);
	for (size_t i = 0; i < buf_count(&fds, int); i++) {
		int fd = *buf_at(&fds, int, i);

		/* What fails to go is warned of. */
		if (fd > 2 && fd != but && is_launchers(launcher, count, above, fd))
			(void)close(fd);
	}
}
