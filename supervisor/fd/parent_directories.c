/*
 * parent_directories.c - a restart goes from one directory to the next by descriptors, so that
 * nobody who can make names there can lead it elsewhere.
 */
#include "supervisor/fd/parent_directories.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/image_names.h"
#include "supervisor/fd/objects_dump.h"
#include "supervisor/fd/trusted_path.h"

/* ---- checkpoint ---- */

static void add_directory(struct fd_dump *d, const char *path)
{
	struct fd_object o = {
		.o = {.kind = IMAGE_OBJECT_FILE,
			.flags = IMAGE_FILE_DIRECTORY,
			.name = image_writer_string(d->job, path)},
		.fd = -1,
	};
	struct stat st;

	if (fd_object_named(d, o.o.name) || stat(path, &st) || !S_ISDIR(st.st_mode))
		return;
	o.o.mode = st.st_mode & 07777;
	o.o.args[1] = st.st_uid | (uint64_t)st.st_gid << 32;
	o.text = xstrdup(path);
	o.link = xstrdup(path);
	fd_object_add(d, &o);
}

void fd_parents_dump(struct fd_dump *d, const char *path)
{
	cleanup_free char *directory = xstrdup(path);

	for (char *p = directory; (p = strchr(p + 1, '/')); *p = '/') {
		*p = 0;
		add_directory(d, directory);
	}
}

/* ---- restart ---- */

static const struct image_object *find_directory(const struct image *job, const char *path)
{
	const struct image_object *o;
	size_t count;

	if (!job)
		return NULL;
	o = image_note_array(job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	for (uint32_t n = 0; (n = image_object_named(job, path, n));)
		if (o[n - 1].kind == IMAGE_OBJECT_FILE && o[n - 1].flags & IMAGE_FILE_DIRECTORY)
			return &o[n - 1];
	return NULL;
}

/* @follow: also a symbolic link, unless another user has made it. */
static int open_in(int in, const char *name, bool follow)
{
	int fd = openat(in, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	cleanup_fd int link = -1;
	char target[PATH_MAX] = "";
	struct stat st;

	if (fd >= 0 || errno != ENOTDIR || !follow)
		return fd;
	link = openat(in, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (link < 0 || fstat(link, &st) || !S_ISLNK(st.st_mode) ||
		(st.st_uid && st.st_uid != geteuid()) ||
		readlinkat(link, "", target, sizeof(target) - 1) < 0) {
		errno = ENOTDIR;
		return -1;
	}
	return fd_open_trusted_in(in, target);
}

struct made {
	int fd;
	mode_t mode;
};

/* @path in @in. */
static int make_in(const struct image *job, int in, const char *path, uint64_t owner,
	bool follow, struct buf *all)
{
	const char *name = strrchr(path, '/') + 1;
	const struct image_object *o = find_directory(job, path);
	cleanup_fd int fd = -1;
	struct stat st;

	if (mkdirat(in, name, 0700)) /* somebody may have been faster */
		return errno == EEXIST ? open_in(in, name, follow) : -1;
	fd = openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return -1;
	if (o)
		owner = o->args[1];
	if (st.st_uid != geteuid())
		return steal_fd(&fd);
	/* Only root could give it away; nothing depends on that. */
	(void)!fchown(fd, (uid_t)owner, (gid_t)(owner >> 32));
	if (o) {
		struct made made = {fcntl(fd, F_DUPFD_CLOEXEC, 0), o->mode & 07777};

		buf_push(all, struct made, &made);
	}
	return steal_fd(&fd);
}

/* The modes of directories, which may forbid to make more in them. */
static int set_modes(struct buf *all)
{
	int failed = 0;

	for (size_t i = buf_count(all, struct made); i--;) {
		struct made *made = buf_at(all, struct made, i);

		failed |= fchmod(made->fd, made->mode);
		util_close(&made->fd);
	}
	return failed;
}

int fd_parents_open(const struct image *job, const char *file, uint64_t owner, bool follow)
{
	cleanup_free char *path = xstrdup(file);
	cleanup_buf struct buf all = {0};
	int in = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), next, code = errno;

	for (char *name = path + 1, *end; in >= 0 && (end = strchr(name, '/'));
		name = end + 1) {
		*end = 0;
		next = open_in(in, name, follow);
		if (next < 0 && errno == ENOENT)
			next = make_in(job, in, path, owner, follow, &all);
		code = errno;
		close(in);
		in = next;
		*end = '/';
	}
	if (set_modes(&all) && in >= 0) {
		code = errno;
		util_close(&in);
	}
	errno = code;
	return in;
}
