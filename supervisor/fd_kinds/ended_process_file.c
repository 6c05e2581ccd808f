/*
 * fd_kinds/ended_process_file.c - files and directories of /proc of processes and threads that have
 * ended.
 *
 * They say so (ESRCH, or ENOENT in a directory), whatever has their number by now. A restart
 * opens the files of a process that it makes for this, and ends that process.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "supervisor/fd_kinds/fd_kinds.h"

/* More than a file of our own process has. */
#define TEXT_MAX (1u << 20)

/* What follows "/proc/PID" or "/proc/PID/task/TID"; NULL: it is no such path. */
static const char *rest_of(const char *path)
{
	int n = 0, deeper = 0;

	if (sscanf(path, "/proc/%*u%n", &n) < 0 || !n)
		return NULL;
	(void)sscanf(path + n, "/task/%*u%n", &deeper);
	return path + n + deeper;
}

/* Files of the network belong to the namespace, and to any process that is in it. */
static bool is_network(const char *rest)
{
	return !strncmp(rest, "/net/", 5);
}

bool fd_ended_file_match(const struct fd_dump *d, const struct fd_source *s)
{
	struct statfs fs;

	return (S_ISREG(s->st.st_mode) || S_ISDIR(s->st.st_mode)) && !s->named &&
	       rest_of(s->link) && !fstatfs(s->dup, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

int fd_ended_file_dump(struct fd_dump *d, const struct fd_source *s,
	struct image_description *x, struct err *e)
{
	cleanup_free char *path = fd_source_path(s);
	const char *rest = rest_of(path);

	/* A file of one of its descriptors, say, which the process made at a restart may not have. A program
	 * that lists descriptors, as lsof, has such a file open for a moment only. */
	if (!is_network(rest) && *rest && strchr(rest + 1, '/'))
		return err_with(e, ERR_TRY_AGAIN, "what it belonged to has ended");
	x->path = image_writer_string(d->job, path);
	return 0;
}

/* ---- restart ---- */

/* @path as of process @pid, the caller's to free. */
static char *path_of(const char *path, pid_t pid)
{
	const char *rest = rest_of(path);
	bool thread =
		!strncmp(path + strcspn(path + 1, "/") + 1, "/", 1) && strstr(path, "/task/");

	return thread ? xasprintf("/proc/%d/task/%d%s", pid, pid, rest)
		      : xasprintf("/proc/%d%s", pid, rest);
}

int fd_ended_file_check(
	const struct fd_check *c, const struct image_description *x, struct err *e)
{
	const char *path = image_string(c->job, x->path), *rest = rest_of(path);
	cleanup_free char *ours = rest ? path_of(path, getpid()) : NULL;

	if (!rest)
		return err_set(e, 0, "the image is damaged: a file of a process");
	return access(ours, F_OK)
		       ? err_set(e, errno, "cannot open %s (descriptor %d)", ours, c->fd)
		       : 0;
}

/* The restart does not count it among its processes (CLONE_UNTRACED). */
static pid_t make_process(struct err *e)
{
	pid_t pid = syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, 0, 0, 0);

	while (!pid)
		pause();
	return pid < 0 ? err_set(e, errno, "cannot create a process that is to end") : pid;
}

static void end_process(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* A file that was read has been read to its end, mostly: then there is nothing more to come. */
static int set_position(
	int fd, const struct image_description *x, const char *path, struct err *e)
{
	char text[4096];
	size_t all = 0;
	ssize_t n;

	if (!x->position || x->flags & O_PATH)
		return 0;
	while (all < TEXT_MAX && (n = read(fd, text, sizeof(text))) > 0)
		all += n;
	if ((uint64_t)lseek(fd, 0, SEEK_CUR) >= x->position ||
		lseek(fd, x->position, SEEK_SET) >= 0)
		return 0;
	return err_set(e, errno, "cannot set the position in %s", path);
}

static int open_of(
	struct fd_restore *r, pid_t pid, const struct image_description *x, struct err *e)
{
	cleanup_free char *path = path_of(image_string(r->job, x->path), pid);
	int fd = fd_open_again(r, path, x, e);

	if (fd >= 0 && set_position(fd, x, path, e)) {
		close(fd);
		return -1;
	}
	return fd;
}

int fd_ended_file_restore(
	struct fd_restore *r, const struct image_description *x, struct err *e)
{
	const char *rest = rest_of(image_string(r->job, x->path));
	pid_t pid;
	int fd;

	if (!rest)
		return err_set(e, 0, "the image is damaged: a file of a process");
	if (is_network(rest))
		return fd_at_position(r, open_of(r, getpid(), x, e), x, e);
	pid = make_process(e);
	if (pid < 0)
		return -1;
	fd = open_of(r, pid, x, e);
	end_process(pid);
	return fd;
}

void fd_ended_file_show(
	const struct image *job, const struct image_description *x, struct buf *out)
{
	buf_printf(out, "%s, of a process that has ended", image_string(job, x->path));
}
