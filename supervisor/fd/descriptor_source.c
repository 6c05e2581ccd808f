/*
 * descriptor_source.c - a duplicate of the descriptor is fetched, and its link, status and
 * fdinfo are read.
 */
#include "supervisor/fd/descriptor_source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "lib/procfs.h"
#include "lib/shown_path.h"
#include "lib/util.h"

#define DELETED " (deleted)"

static bool leads_to(const char *path, const struct stat *to)
{
	struct stat st;

	return !lstat(path, &st) && st.st_dev == to->st_dev && st.st_ino == to->st_ino &&
	       (st.st_mode & S_IFMT) == (to->st_mode & S_IFMT);
}

/* In a mount namespace of its own a process has another /proc than we. */
static bool is_named(const struct fd_source *s)
{
	cleanup_free char *inside = NULL;

	if (s->link[0] != '/')
		return false;
	if (leads_to(s->link, &s->st))
		return true;
	inside = xasprintf("/proc/%d/root%s", s->task, s->link);
	return leads_to(inside, &s->st);
}

/* The name by which it was opened is gone, but it has others: one in the same directory, as of
 * a file that was written under a temporary name and linked to its own, is found. */
static void take_other_name(struct fd_source *s)
{
	cleanup_free char *path = fd_source_path(s);
	char *base = strrchr(path, '/');
	struct dirent *entry;
	DIR *dir;

	*base = 0;
	dir = opendir(*path ? path : "/");
	while (dir && !s->named && (entry = readdir(dir))) {
		cleanup_free char *other = NULL;

		if (entry->d_ino != s->st.st_ino)
			continue;
		other = xasprintf("%s/%s", path, entry->d_name);
		if (!leads_to(other, &s->st))
			continue;
		free(s->link);
		s->link = xstrdup(other);
		s->named = true;
	}
	if (dir)
		closedir(dir);
}

/* The text is short, and there may be a thousand. */
static char *read_info(pid_t task, int fd, struct err *e)
{
	cleanup_free char *path = xasprintf("/proc/%d/fdinfo/%d", task, fd);
	cleanup_fd int file = open(path, O_RDONLY | O_CLOEXEC);
	char text[2048], *all = NULL;
	ssize_t n;
	size_t len;

	n = file < 0 ? -1 : read(file, text, sizeof(text) - 1);
	if (n < 0) {
		err_set(e, errno, "cannot read %s", path);
		return NULL;
	}
	/* A part of seq_file's text ends at a line; many locks make many lines. */
	if (n > 1024)
		return read_file(path, &all, &len, e) ? NULL : all;
	text[n] = 0;
	return xstrdup(text);
}

/* The directory of descriptors of a process that has ended has no attributes any more
 * (proc_fd_getattr() in the kernel). */
static int read_attributes(struct fd_source *s, struct err *e)
{
	struct statfs fs;
	int code;

	if (!fstat(s->dup, &s->st))
		return 0;
	code = errno;
	if (code == ENOENT && !fstatfs(s->dup, &fs) && fs.f_type == PROC_SUPER_MAGIC) {
		s->st = (struct stat){
			.st_mode = S_IFDIR | 0500, .st_ino = status_number(s->info, "ino", 10)};
		return 0;
	}
	return err_set(e, code, "cannot examine descriptor %d of process %d", s->fd, s->pid);
}

int fd_source_look(struct fd_source *s, pid_t pid, pid_t task, int pidfd, int fd, struct err *e)
{
	cleanup_free char *link = xasprintf("/proc/%d/fd/%d", task, fd);
	uint32_t flags;

	*s = (struct fd_source){.pid = pid, .task = task, .fd = fd, .dup = -1};
	s->link = read_shown_link(link, e);
	if (s->link)
		s->info = read_info(task, fd, e);
	if (!s->info)
		return -1;
	s->dup = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	if (s->dup < 0)
		return err_set(e, errno, "cannot get descriptor %d of process %d", fd, pid);
	if (read_attributes(s, e))
		return -1;
	flags = status_number(s->info, "flags", 8);
	s->flags = flags & ~O_CLOEXEC;
	s->cloexec = flags & O_CLOEXEC;
	s->position = status_number(s->info, "pos", 10);
	s->named = is_named(s);
	if (!s->named && s->link[0] == '/' && !S_ISDIR(s->st.st_mode) && s->st.st_nlink)
		take_other_name(s);
	return 0;
}

void fd_source_release(struct fd_source *s)
{
	if (s->dup >= 0)
		close(s->dup);
	free(s->link);
	free(s->info);
}

char *fd_source_text(const struct fd_source *s)
{
	cleanup_free char *path = xasprintf("/proc/%d/comm", s->pid);
	cleanup_free char *comm = NULL;
	size_t len;

	if (read_file(path, &comm, &len, NULL))
		comm = xstrdup("?");
	comm[strcspn(comm, "\n")] = 0;
	return xasprintf("descriptor %d (%s) of process %d (%s)", s->fd,
		s->link ? s->link : "?", s->pid, comm);
}

char *fd_source_path(const struct fd_source *s)
{
	char *path = xstrdup(s->link);
	size_t len = strlen(path), suffix = strlen(DELETED);

	if (!s->named && len > suffix && !strcmp(path + len - suffix, DELETED))
		path[len - suffix] = 0;
	return path;
}

uint64_t fd_source_owner(const struct fd_source *s)
{
	return s->st.st_uid | (uint64_t)s->st.st_gid << 32;
}

pid_t fd_inner_pid(pid_t pid)
{
	pid_t id = pid < 0 ? -pid : pid, inner;
	cleanup_free char *status = procfs_status(id, id, NULL);

	/* It has ended: nobody can tell any more, and nothing will ever be sent to it. */
	if (!status)
		return pid;
	inner = status_last_number(status, "NSpid");
	return pid < 0 ? -inner : inner;
}
