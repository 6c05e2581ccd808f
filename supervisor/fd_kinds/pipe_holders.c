/*
 * pipe_holders.c - compares the pipes of all processes that may be read with the pipes that are
 * saved, and refuses where one is held outside.
 */
#include "supervisor/fd_kinds/pipe_holders.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/procfs.h"
#include "supervisor/fd/object_kinds.h"
#include "supervisor/fd/objects_dump.h"

/* A terminal's name says little: other mounts of /dev/pts have other terminals of the same numbers.
 * And the name of an io_uring says nothing. */
static bool is_another(const struct fd_object *o, int dirfd, const char *name)
{
	struct stat its;

	if (o->o.kind == IMAGE_OBJECT_URING)
		return fstatat(dirfd, name, &its, 0) || its.st_ino != o->o.inode ||
		       its.st_dev != o->o.dev;
	return o->o.kind == IMAGE_OBJECT_PTY && o->devpts && !fstatat(dirfd, name, &its, 0) &&
	       its.st_dev != o->devpts;
}

/* A pipe whose bytes somebody else could take or add to: @name in @dirfd leads to @link. */
static const struct fd_object *find_pipe(
	const struct fd_dump *d, const char *link, int dirfd, const char *name)
{
	for (uint32_t n = 1; n <= buf_count(&d->objects, struct fd_object); n++) {
		const struct fd_object *o = fd_object_at(d, n);

		if (object_kind_of(o->o.kind)->is_bytes && !strcmp(o->link, link) &&
			!is_another(o, dirfd, name))
			return o;
	}
	return NULL;
}

static bool is_saved(const struct fd_dump *d, pid_t pid)
{
	for (size_t i = 0; i < buf_count(&d->pids, pid_t); i++)
		if (*buf_at(&d->pids, pid_t, i) == pid)
			return true;
	return false;
}

/* The first of our pipes and sockets that @pid holds. Processes that end or may not be looked
 * at have no descriptors that we can see. */
static const struct fd_object *held_pipe(const struct fd_dump *d, pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/fd", pid);
	const struct fd_object *o = NULL;
	struct dirent *entry;
	DIR *dir = opendir(path);
	char link[PATH_MAX];

	if (!dir)
		return NULL;
	while (!o && (entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);

		if (n <= 0)
			continue;
		link[n] = 0;
		o = find_pipe(d, link, dirfd(dir), entry->d_name);
	}
	closedir(dir);
	return o;
}

/* Whether we descend from @pid. */
static bool is_ancestor(pid_t pid)
{
	pid_t parent = getppid();
	struct proc_stat st;

	while (parent && parent != pid)
		parent =
			procfs_stat(parent, parent, &st, NULL) ? 0 : (pid_t)st.field[STAT_PPID];
	return parent == pid;
}

/* What we had from our start our ancestors may have, too, and what they have started. */
static bool is_relative(pid_t pid)
{
	struct proc_stat st;

	if (is_ancestor(pid) || getsid(pid) == getsid(0))
		return true;
	return !procfs_stat(pid, pid, &st, NULL) && st.field[STAT_PPID] > 1 &&
	       is_ancestor(st.field[STAT_PPID]);
}

static int check_process(const struct fd_dump *d, pid_t pid, struct err *e)
{
	const struct fd_object *o;
	struct proc_stat st;

	if (pid == getpid() || is_saved(d, pid))
		return 0;
	o = held_pipe(d, pid);
	if (!o)
		return 0;
	if (procfs_stat(pid, pid, &st, NULL))
		snprintf(st.comm, sizeof(st.comm), "?");
	return err_set(e, 0, "%s: it leads to process %d (%s), which is not being saved%s",
		o->text, pid, st.comm,
		is_relative(pid) ? " (start the program with trecr-run --close-fds, or without "
				   "that descriptor)"
				 : "");
}

static bool has_pipes(const struct fd_dump *d)
{
	for (uint32_t n = 1; n <= buf_count(&d->objects, struct fd_object); n++)
		if (object_kind_of(fd_object_at(d, n)->o.kind)->is_bytes)
			return true;
	return false;
}

int fd_holders_check(const struct fd_dump *d, struct err *e)
{
	struct dirent *entry;
	int r = 0;
	DIR *dir;

	if (!has_pipes(d))
		return 0;
	dir = opendir("/proc");
	if (!dir)
		return err_set(e, errno, "cannot list /proc");
	while (!r && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			r = check_process(d, atoi(entry->d_name), e);
	closedir(dir);
	return r;
}
