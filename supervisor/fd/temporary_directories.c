/*
 * temporary_directories.c - names, makes, and removes them.
 */
#include "supervisor/fd/temporary_directories.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/util.h"
#include "supervisor/fd/fd_options.h"
#include "supervisor/fd/trusted_path.h"

void fd_name_temporary_directories(struct fd_restore_options *o)
{
	uint64_t number = 0;

	/* Without random numbers the process id has to do. */
	(void)!getrandom(&number, sizeof(number), 0);
	snprintf(o->temporary_name, sizeof(o->temporary_name), ".trecr-%d-%08x", getpid(),
		(unsigned)number);
}

static char *path_of(const char *name)
{
	return xasprintf("%s/%s", temporary_directory(), name);
}

static char *path_beside(const char *file, const char *name)
{
	return xasprintf("%.*s%s", (int)(strrchr(file, '/') + 1 - file), file, name);
}

/* Open, when it is a directory of ours that nobody else can write to; others may have taken the
 * name meanwhile, where they can write to the directory that it is in. */
static int open_own(int in, const char *path)
{
	cleanup_fd int fd = openat(in, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -1;
	if (st.st_uid == geteuid() && !(st.st_mode & 022))
		return steal_fd(&fd);
	errno = EEXIST;
	return -1;
}

/* For other users' sockets, whose trouble it is, too. */
static char *make_directory(char *path, struct err *e)
{
	const char *name = strrchr(path, '/') + 1;
	cleanup_free char *above = xasprintf("%.*s", (int)(name - path), path);
	cleanup_fd int fd = -1, in = -1;
	bool new;

	if (fd_check_trusted(above, 0, e)) {
		free(path);
		return NULL;
	}
	in = fd_open_trusted(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
	new = in >= 0 && !mkdirat(in, name, 0700);
	if (in >= 0 && (new || errno == EEXIST))
		fd = open_own(in, name);
	if (fd >= 0 && (!new || !fchmod(fd, 0711)))
		return path;
	err_set(e, errno, "cannot create directory %s", path);
	free(path);
	return NULL;
}

char *fd_temporary_directory(const char *name, struct err *e)
{
	return make_directory(path_of(name), e);
}

char *fd_temporary_directory_beside(const char *file, const char *name, struct err *e)
{
	return make_directory(path_beside(file, name), e);
}

/* What is not removed now stays for ever: one failure is no reason. */
static int open_below(int directory, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(directory, name, flags);

	return fd < 0 ? openat(directory, name, flags) : fd;
}

static bool is_socket(int directory, const char *name)
{
	struct stat st;

	return !fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISSOCK(st.st_mode);
}

/* All in the directory that is open as @fd (consumed), or the sockets. Never by a path, in which others might
 * put a link to somewhere else; what cannot be removed is empty directories of ours. */
static void remove_contents(int fd, bool sockets_only)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		close(fd);
		return;
	}
	while ((entry = readdir(dir))) {
		int below;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if ((!sockets_only || is_socket(dirfd(dir), entry->d_name)) &&
			!unlinkat(dirfd(dir), entry->d_name, 0))
			continue;
		below = open_below(dirfd(dir), entry->d_name);
		if (below >= 0)
			remove_contents(below, sockets_only);
		(void)unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
	}
	closedir(dir);
}

/* As above. */
static int open_above(const char *path)
{
	const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
	int fd = fd_open_trusted(path, flags);

	return fd < 0 ? fd_open_trusted(path, flags) : fd;
}

/* @sockets_only: it is in a directory where another user can give it another name, and its name to another
 * directory of ours: we put nothing but sockets there. */
static void remove_all(char *path, bool sockets_only)
{
	const char *name = strrchr(path, '/') + 1;
	cleanup_free char *above = xasprintf("%.*s", (int)(name - path), path);
	cleanup_fd int in = open_above(above);
	int fd = in < 0 ? -1 : open_own(in, name);

	if (in >= 0 && fd < 0 && errno != EEXIST)
		fd = open_own(in, name);
	if (fd >= 0) {
		remove_contents(fd, sockets_only);
		(void)unlinkat(in, name, AT_REMOVEDIR);
	}
	free(path);
}

void fd_remove_temporary_directories(
	const struct checkpoint *c, const struct fd_restore_options *o)
{
	const struct image_socket *s;
	const struct image *job = c->job;
	const char *name = o->temporary_name;
	size_t count;

	s = image_note_array(job, IMAGE_NOTE_SOCKETS, struct image_socket, &count);
	for (size_t i = 0; i < count; i++) {
		const char *file = image_string(job, s[i].directory);

		if (s[i].flags & IMAGE_SOCKET_MOVED && strchr(file, '/'))
			remove_all(path_beside(file, name), true);
	}
	remove_all(path_of(name), false);
}
