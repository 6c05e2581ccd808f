/*
 * inherited_check.c - looks at each descriptor of this process before the program gets them.
 */
#include "supervisor/start/inherited_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/util.h"

/* A standard stream by another number is one all the same (file_kinds/inherited_stream.c). */
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

static bool is_obstacle(int fd, const char *link, const struct buf *fds)
{
	int flags = fcntl(fd, F_GETFD);
	struct stat st;

	if (fd < 3 || flags < 0 || flags & FD_CLOEXEC || fstat(fd, &st) || is_stream(fd, &st))
		return false;
	if (S_ISSOCK(st.st_mode))
		return is_only_connected(fd, fds) && is_held(fd);
	/* A FIFO with a name is opened anew. */
	if (strncmp(link, "pipe:", 5) != 0)
		return false;
	for (size_t i = 0; i < buf_count(fds, int); i++)
		if (is_other_end(fd, &st, *buf_at(fds, int, i)))
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

char *inherited_check(int but)
{
	cleanup_buf struct buf fds = {0}, found = {0};

	list_own(&fds);
	for (size_t i = 0; i < buf_count(&fds, int); i++) {
		int fd = *buf_at(&fds, int, i);
		char path[64], link[PATH_MAX];
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, link, sizeof(link) - 1);
		if (n < 0)
			continue;
		link[n] = 0;
		if (fd != but && is_obstacle(fd, link, &fds))
			buf_printf(&found, "%s%d (%s)", found.len ? ", " : "", fd, link);
	}
	if (found.len)
		buf_grow(&found, 1); /* the end of a string */
	return steal_ptr(found.data);
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
