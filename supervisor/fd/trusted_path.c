/*
 * trusted_path.c - openat2(2) finds most names free of links; else they are followed one by one.
 */
#include "supervisor/fd/trusted_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/util.h"

/* As the kernel does (MAXSYMLINKS). */
#define LINKS_MOST 40

#define PLACE (O_PATH | O_DIRECTORY | O_CLOEXEC)

struct walk {
	unsigned links;
	char *refused; /* where another user's link is; NULL: none was met */
	uid_t owner;
};

static int walk_from(int in, const char *path, int flags, struct walk *w);

/* In a user namespace without root, the owner of the root directory stands for root. */
static bool is_trusted(uid_t owner)
{
	struct stat root;

	return geteuid() || !owner || (!stat("/", &root) && root.st_uid == owner);
}

/* The link @name in @in, which is open as @link. */
static int follow_link(int in, int link, const char *name, int flags, struct walk *w)
{
	cleanup_free char *place = NULL, *path = xasprintf("/proc/self/fd/%d", in);
	char target[PATH_MAX] = "";
	struct stat st;

	if (fstat(link, &st))
		return -1;
	if (!is_trusted(st.st_uid)) {
		place = read_link(path, NULL);
		free(w->refused);
		w->refused = xasprintf("%s/%s", place && strcmp(place, "/") ? place : "", name);
		w->owner = st.st_uid;
	}
	if (w->refused || ++w->links > LINKS_MOST) {
		errno = ELOOP;
		return -1;
	}
	if (readlinkat(link, "", target, sizeof(target) - 1) < 0)
		return -1;
	return walk_from(in, target, flags, w);
}

/* One name, which is no path. */
static int open_name(int in, const char *name, int flags, struct walk *w)
{
	cleanup_fd int at = openat(in, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct open_how how = {.resolve = RESOLVE_NO_SYMLINKS, .flags = flags};
	cleanup_free char *path = NULL;
	struct stat st;
	int fd;

	if (at < 0 || fstat(at, &st))
		return -1;
	if (S_ISLNK(st.st_mode) && !(flags & O_NOFOLLOW))
		return follow_link(in, at, name, flags, w);
	if (flags & O_PATH)
		how.flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	fd = syscall(SYS_openat2, in, name, &how, sizeof(how));
	/* It may be forbidden (in containers), and knows fewer flags than open(2) lets pass. */
	if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EINVAL))
		return fd;
	if (flags & O_NOFOLLOW)
		return openat(in, name, flags);
	/* What has been looked at, whatever has the name by now. */
	path = xasprintf("/proc/self/fd/%d", at);
	return open(path, flags);
}

static int walk_from(int in, const char *path, int flags, struct walk *w)
{
	cleanup_free char *copy = xstrdup(path);
	cleanup_fd int at = *path == '/' ? open("/", PLACE) : openat(in, ".", PLACE);
	char *name = copy, *end;

	for (; at >= 0; name = end) {
		int next, code;

		name += strspn(name, "/");
		end = name + strcspn(name, "/");
		if (!name[0] || !end[strspn(end, "/")])
			break;
		*end++ = 0;
		next = open_name(at, name, PLACE, w);
		code = errno;
		close(at);
		at = next;
		errno = code;
	}
	if (at < 0)
		return -1;
	name[strcspn(name, "/")] = 0;
	return open_name(at, name[0] ? name : ".", flags, w);
}

static int open_path(const char *path, int flags, struct walk *w)
{
	struct open_how how = {.resolve = RESOLVE_NO_SYMLINKS, .flags = PLACE};
	const char *slash = strrchr(path, '/');
	cleanup_free char *above = NULL;
	cleanup_fd int at = -1;

	/* What /proc has for links only the kernel can follow. */
	if (geteuid() || path[0] != '/' || !strncmp(path, "/proc/", 6))
		return open(path, flags);
	above = xasprintf("%.*s", (int)(slash - path + 1), path);
	at = syscall(SYS_openat2, AT_FDCWD, above, &how, sizeof(how));
	return at >= 0 && slash[1] ? open_name(at, slash + 1, flags, w)
				   : walk_from(-1, path, flags, w);
}

int fd_open_trusted(const char *path, int flags)
{
	struct walk w = {0};
	int fd = open_path(path, flags, &w), code = errno;

	free(w.refused);
	errno = code;
	return fd;
}

int fd_open_trusted_in(int in, const char *path)
{
	struct walk w = {0};
	int fd = geteuid() ? openat(in, path, PLACE) : walk_from(in, path, PLACE, &w);
	int code = errno;

	free(w.refused);
	errno = code;
	return fd;
}

int fd_check_trusted(const char *path, int flags, struct err *e)
{
	struct walk w = {0};
	cleanup_fd int fd = open_path(path, O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW), &w);
	cleanup_free char *refused = w.refused;

	if (fd >= 0 || !refused)
		return 0;
	return err_set(e, 0,
		"cannot open %s: %s is a symbolic link, and one of user %u, which root does "
		"not follow: put the directory or file itself in its place, or have root own "
		"the link (chown -h)",
		path, refused, w.owner);
}

/* A link in its directory, or a directory: others cannot replace it, nor what is ours in it. */
static bool is_ours(const struct stat *st)
{
	return (is_trusted(st->st_uid) || st->st_uid == geteuid()) &&
	       (S_ISLNK(st->st_mode) || !(st->st_mode & 022) || st->st_mode & S_ISVTX);
}

bool fd_path_is_ours(const char *path)
{
	cleanup_free char *done = xstrdup(""), *todo = xstrdup(path);
	unsigned links = 0;

	for (;;) {
		size_t skip = strspn(todo, "/"), n = strcspn(todo + skip, "/");
		cleanup_free char *next = xasprintf("%s/%.*s", done, (int)n, todo + skip);
		cleanup_free char *rest = xstrdup(todo + skip + n), *target = NULL;
		struct stat st;

		if (lstat(n ? next : done[0] ? done : "/", &st) || !is_ours(&st))
			return false;
		if (!n)
			return true;
		free(todo);
		if (!S_ISLNK(st.st_mode)) {
			free(done);
			done = steal_ptr(next);
			todo = steal_ptr(rest);
			continue;
		}
		target = read_link(next, NULL);
		todo = xasprintf("%s/%s", target ? target : "", rest);
		if (!target || ++links > LINKS_MOST)
			return false;
		if (target[0] == '/')
			done[0] = 0;
	}
}
