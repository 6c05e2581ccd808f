/*
 * bind_apart.c - a directory for a moment beside the file's place, as a file can be renamed within a file
 * system only.
 *
 * A helper process binds, with that directory as its root; this process never leaves its own root directory. All else
 * goes by descriptors of directories that have been made here, so that no ".." in the name leads out of them.
 */
#include "supervisor/socket/bind_apart.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/util.h"
#include "supervisor/fd/rename_noreplace.h"
#include "supervisor/socket/as_creator.h"

#define PLACE (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ---- the directories of a name, below a root of its own ---- */

/* A directory that was made; the first one is the root. */
struct place {
	size_t parent; /* its number in the array */
	int fd;
	const char *name; /* in its parent */
};

struct way {
	char *copy; /* the names */
	struct buf places;
	size_t last; /* what the file is in */
};

/* From @at. The names that lead to a socket may come by one directory several times. -1 and errno. */
static int enter_directory(struct way *w, const char *name)
{
	size_t count = buf_count(&w->places, struct place);
	struct place next = {.parent = w->last, .name = name};
	int in = buf_at(&w->places, struct place, w->last)->fd;
	cleanup_fd int fd = -1;

	for (size_t i = 1; i < count; i++) {
		const struct place *p = buf_at(&w->places, struct place, i);

		if (p->parent == w->last && !strcmp(p->name, name)) {
			w->last = i;
			return 0;
		}
	}
	if (mkdirat(in, name, 0700))
		return -1;
	fd = openat(in, name, PLACE);
	if (fd < 0)
		return -1;
	next.fd = steal_fd(&fd);
	buf_push(&w->places, struct place, &next);
	w->last = count;
	return 0;
}

/* Make what leads to @path from @root (consumed), whose ".." is the root itself. */
static int make_way(struct way *w, int root, const char *path)
{
	const struct place first = {.fd = root};
	char *end;

	buf_push(&w->places, struct place, &first);
	w->copy = xstrdup(path);
	for (char *name = w->copy; (end = strchr(name, '/')); name = end + 1) {
		*end = 0;
		if (!strcmp(name, ".."))
			w->last = buf_at(&w->places, struct place, w->last)->parent;
		else if (*name && strcmp(name, ".") && enter_directory(w, name))
			return -1;
	}
	return 0;
}

static int last_place(const struct way *w)
{
	return buf_at(&w->places, struct place, w->last)->fd;
}

/* With the file @base, if that has not been renamed. */
static void remove_way(struct way *w, const char *base)
{
	(void)unlinkat(last_place(w), base, 0);
	for (size_t i = buf_count(&w->places, struct place); i--;) {
		struct place *p = buf_at(&w->places, struct place, i);

		if (i)
			(void)unlinkat(buf_at(&w->places, struct place, p->parent)->fd, p->name,
				AT_REMOVEDIR);
		close(p->fd);
	}
	buf_free(&w->places);
	free(w->copy);
}

/* ---- binding ---- */

static int bind_it(void *arg, int unused[2])
{
	const struct bind_apart *b = arg;

	(void)unused;
	umask(~b->mode & 0777);
	return bind(b->fd, b->name, b->size);
}

static int bind_below(int root, const struct bind_apart *b)
{
	cleanup_free char *link = xasprintf("/proc/self/fd/%d", root);
	const struct socket_as_creator as = {.root = link};
	struct bind_apart copy = *b;
	struct err e = ERR_INIT;

	if (!socket_as_creator(&as, bind_it, &copy, NULL, "", &e))
		return 0;
	errno = e.code;
	return -1;
}

static int bind_and_rename(const struct way *w, int root, const struct bind_apart *b,
	int (*finish)(const void *arg, int file), const void *arg)
{
	const char *base = base_name(b->path);
	cleanup_fd int file = -1;

	if (bind_below(root, b))
		return -1;
	file = openat(last_place(w), base, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return file < 0 || finish(arg, file)
		       ? -1
		       : fd_rename_noreplace(last_place(w), base, b->in, base);
}

int socket_bind_apart(
	const struct bind_apart *b, int (*finish)(const void *arg, int file), const void *arg)
{
	char name[32];
	uint64_t number = 0;
	int root, failed, code;
	struct way w = {0};
	struct stat st;

	(void)!getrandom(&number, sizeof(number), 0); /* mkdir(2) tells */
	snprintf(name, sizeof(name), ".trecr-%016" PRIx64, number);
	if (mkdirat(b->in, name, 0700))
		return -1;
	root = openat(b->in, name, PLACE);
	/* The owner of the directory @b->in may rename the new one, and put another into its place. */
	if (root < 0 || fstat(root, &st) || st.st_uid != geteuid() || st.st_mode & 077) {
		if (root >= 0)
			close(root);
		errno = EEXIST;
		return -1;
	}
	failed = make_way(&w, root, b->path) || bind_and_rename(&w, root, b, finish, arg);
	code = errno;
	remove_way(&w, base_name(b->path));
	(void)unlinkat(b->in, name, AT_REMOVEDIR);
	errno = code;
	return failed ? -1 : 0;
}
