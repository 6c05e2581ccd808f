/*
 * saved_directories_restore.c - what the image does not know of is moved aside.
 */
#include "supervisor/fd_kinds/saved_directories_restore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/image_names.h"
#include "ckpt/image_read.h"
#include "lib/notices.h"
#include "lib/util.h"
#include "supervisor/fd/parent_directories.h"
#include "supervisor/fd/trusted_path.h"
#include "supervisor/fd_kinds/set_file_aside.h"
#include "supervisor/fd_kinds/saved_directories.h"

bool fd_saved_is_set(const struct image_object *o)
{
	return o->kind == IMAGE_OBJECT_FILE && o->flags & IMAGE_FILE_SET;
}

struct file_id {
	dev_t dev;
	ino_t ino;
};

struct clearing {
	const struct image *job;
	void (*notice)(const char *line);
	struct buf
		own; /* struct file_id: of what this process has open, or reaches by its name */
	/* Where checkpoints are going to be, and the files by which the ranks of a job find each other, of which some may not
	 * be written yet; 0: not there. */
	struct file_id destination, ranks;
};

static struct file_id id_of(const struct stat *st)
{
	return (struct file_id){st->st_dev, st->st_ino};
}

static bool is_same(const struct file_id *id, const struct stat *st)
{
	return id->dev == st->st_dev && id->ino == st->st_ino;
}

/* What the checkpoint knows of it; NULL: nothing. */
static const struct image_object *find_named(const struct image *job, const char *path)
{
	const struct image_object *o;
	size_t count;

	o = image_note_array(job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	for (uint32_t n = 0; (n = image_object_named(job, path, n));)
		if (o[n - 1].kind == IMAGE_OBJECT_FILE && !(o[n - 1].flags & IMAGE_FILE_ABSENT))
			return &o[n - 1];
	return NULL;
}

static void add_own(struct clearing *c, const struct stat *st)
{
	struct file_id id = id_of(st);

	buf_push(&c->own, struct file_id, &id);
}

/* As many as the kernel follows. */
#define LINKS_MAX 40

/* The directories and symbolic links that @path, as seen from the directory @from, leads over, as far as they are there. */
static void add_way(struct clearing *c, const char *from, const char *path, int *links)
{
	cleanup_free char *way = xstrdup(*path == '/' ? "" : from);
	cleanup_free char *rest = xstrdup(path);
	char *save = NULL;

	for (char *name = strtok_r(rest, "/", &save); name; name = strtok_r(NULL, "/", &save)) {
		cleanup_free char *above = way;
		char target[PATH_MAX] = "";
		struct stat st;

		way = xasprintf("%s/%s", above, name);
		if (lstat(way, &st))
			return;
		add_own(c, &st);
		if (S_ISLNK(st.st_mode) && ++*links <= LINKS_MAX &&
			readlink(way, target, sizeof(target) - 1) > 0)
			add_way(c, above, target, links);
	}
}

static void find_destination(struct clearing *c, const char *destination)
{
	cleanup_free char *ranks = xasprintf("%s/ranks", destination); /* job/member_files.h */
	struct stat st;

	if (!stat(destination, &st))
		c->destination = id_of(&st);
	if (!stat(ranks, &st))
		c->ranks = id_of(&st);
}

/* Our own are the descriptors that we have opened, and the standard streams; what else was open when we were started is
 * not. */
static int find_own(struct clearing *c, struct err *e)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	struct stat st;

	if (!dir)
		return err_set(e, errno, "cannot list /proc/self/fd");
	while ((entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && (fd <= 2 || fcntl(fd, F_GETFD) & FD_CLOEXEC) &&
			!fstat(fd, &st))
			add_own(c, &st);
	}
	closedir(dir);
	if (!stat(".", &st))
		add_own(c, &st);
	return 0;
}

/* What we have open, and the ways to what we are going to write. */
static int begin_clearing(
	struct clearing *c, const struct fd_restore_options *options, struct err *e)
{
	const char *const ways[] = {options->destination, options->pidfile};

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		int links = 0;

		if (ways[i])
			add_way(c, "", ways[i], &links);
	}
	if (options->destination)
		find_destination(c, options->destination);
	return find_own(c, e);
}

static bool is_own(const struct clearing *c, const struct stat *st)
{
	for (size_t i = 0; i < buf_count(&c->own, struct file_id); i++)
		if (is_same(buf_at(&c->own, struct file_id, i), st))
			return true;
	return false;
}

/* Whether something is mounted there: also a directory or file of the same file system. */
static bool is_mounted(const struct fd_set_file *f)
{
	struct statx x;
	struct stat above;

	if (!statx(f->in, f->name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &x) &&
		x.stx_attributes & STATX_ATTR_MOUNT_ROOT)
		return true;
	return S_ISDIR(f->st.st_mode) && (fstat(f->in, &above) || above.st_dev != f->st.st_dev);
}

/* A file where there was a directory came later, too. FIFOs, sockets and devices are in nobody's way, and by them
 * running programs are found: they stay, and so do the directories in which they are. */
static int move_later_aside(void *arg, const struct fd_set_file *f, struct err *e)
{
	const struct clearing *c = arg;
	const struct image_object *o = find_named(c->job, f->path);
	bool directory = o && o->flags & IMAGE_FILE_DIRECTORY;
	cleanup_free char *aside = NULL;

	if (S_ISLNK(f->st.st_mode) ? is_own(c, &f->st) : !directory && is_mounted(f))
		return 0;
	if (!directory &&
		(o || is_own(c, &f->st) || !(S_ISREG(f->st.st_mode) || S_ISLNK(f->st.st_mode))))
		return 0;
	aside = fd_move_aside(f->in, f->name, f->path, e);
	if (!aside)
		return -1;
	if (directory)
		notice_printf(c->notice,
			"%s was a directory at the checkpoint; what had its name is now %s",
			f->path, aside);
	else
		fd_tell_moved_aside(c->notice, f->path, aside);
	return 0;
}

/* ---- directories ---- */

struct search {
	const struct clearing *c;
	bool keeps; /* what must stay under its name, or cannot be looked at */
};

static int see_file(void *arg, const struct fd_set_file *f, struct err *e)
{
	struct search *s = arg;

	s->keeps |= is_own(s->c, &f->st) || is_mounted(f) ||
		    !(S_ISREG(f->st.st_mode) || S_ISLNK(f->st.st_mode));
	return s->keeps ? -1 : 0;
}

static bool see_directory(void *arg, const struct fd_set_file *f)
{
	struct search *s = arg;

	s->keeps |= is_own(s->c, &f->st) || is_mounted(f);
	return !s->keeps;
}

static void see_skipped(void *arg, const char *path, const char *why)
{
	struct search *s = arg;

	s->keeps = true;
}

static void see_checkpoints(void *arg, const char *path)
{
	see_skipped(arg, path, NULL);
}

/* A directory is not renamed unless it is certain that nobody uses it. */
static bool must_stay(const struct clearing *c, const struct fd_set_file *f)
{
	struct search search = {.c = c};
	const struct fd_set_walk walk = {.found = see_file,
		.enters = see_directory,
		.skipped = see_skipped,
		.left_out = see_checkpoints,
		.with_asides = true,
		.arg = &search};
	int fd;

	if (!see_directory(&search, f))
		return true;
	fd = openat(f->in, f->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 || fd_set_walk(&walk, fd, f->path, NULL) || search.keeps;
}

/* A program that makes up names, as for temporary files, makes up the same ones again. */
static bool moved_later_directory(const struct clearing *c, const struct fd_set_file *f)
{
	cleanup_free char *aside = NULL;

	aside = must_stay(c, f) ? NULL : fd_move_aside(f->in, f->name, f->path, NULL);
	if (aside)
		fd_tell_moved_aside(c->notice, f->path, aside);
	return aside;
}

static bool has_below(const struct image *job, const char *path)
{
	cleanup_free char *begin = xasprintf("%s/", path);
	const struct image_object *o;
	size_t count, length = strlen(begin);

	o = image_note_array(job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	for (size_t i = 0; i < count; i++)
		if (o[i].kind == IMAGE_OBJECT_FILE && !(o[i].flags & IMAGE_FILE_ABSENT) &&
			!strncmp(image_string(job, o[i].name), begin, length))
			return true;
	return false;
}

/* Files in there are nobody's whom the program knows: what is mounted on a directory of which nothing was saved has come since,
 * and what is where checkpoints are going to be is for them. */
static bool is_apart(const struct clearing *c, const struct fd_set_file *f)
{
	return is_same(&c->ranks, &f->st) ||
	       ((is_same(&c->destination, &f->st) || is_mounted(f)) &&
		       !has_below(c->job, f->path));
}

/* Of what was skipped nothing is known. A directory that is where a file or a link is to be put back is moved aside with
 * all that is in it. */
static bool was_looked_into(void *arg, const struct fd_set_file *f)
{
	const struct clearing *c = arg;
	const struct image_object *o = find_named(c->job, f->path);
	bool saved = o && !(o->flags & IMAGE_FILE_NOT_SAVED);

	if (is_apart(c, f))
		return false;
	if (!o)
		return !moved_later_directory(c, f);
	if (o->flags & IMAGE_FILE_DIRECTORY)
		return saved;
	return !saved && o->args[0]; /* it was a file then, which is not put back */
}

/* Also those in which there was nothing. */
static void make_directories(const struct clearing *c, const struct image_object *set)
{
	cleanup_free char *begin = xasprintf("%s/", image_string(c->job, set->name));
	const struct image_object *o;
	size_t count;

	o = image_note_array(c->job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	for (size_t i = 0; i < count; i++) {
		const char *path = image_string(c->job, o[i].name);
		cleanup_free char *inside = xasprintf("%s/", path);
		cleanup_fd int fd = -1;

		if (o[i].kind != IMAGE_OBJECT_FILE || !(o[i].flags & IMAGE_FILE_DIRECTORY) ||
			strncmp(path, begin, strlen(begin)))
			continue;
		fd = fd_parents_open(c->job, inside, o[i].args[1], true);
		if (fd < 0)
			notice_printf(c->notice, "cannot make the directory %s again: %s", path,
				strerror(errno));
	}
}

/* Others' symbolic links are not followed: they could lead to any files. */
static int open_set(const struct clearing *c, const struct image_object *o, struct err *e)
{
	const char *path = image_string(c->job, o->name);
	cleanup_free char *inside = xasprintf("%s/", path);
	cleanup_fd int found = -1;
	int fd;

	if (fd_check_trusted(inside, 0, e)) /* names the link */
		return -1;
	found = fd_parents_open(c->job, inside, o->args[1], true);
	fd = found < 0 ? -1 : openat(found, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOTDIR)
		return err_set(e, 0,
			"cannot put the files in %s back: it, or a directory above it, is no "
			"longer a directory (move away what has its name)",
			path);
	return fd < 0 ? err_set(e, errno, "cannot put the files in %s back", path) : fd;
}

/* Files that were made there since the checkpoint are moved aside. */
static int clear_set(struct clearing *c, const struct image_object *o, struct err *e)
{
	const struct fd_set_walk walk = {
		.found = move_later_aside, .enters = was_looked_into, .arg = c};
	int fd = open_set(c, o, e);

	if (fd < 0 || fd_set_walk(&walk, fd, image_string(c->job, o->name), e))
		return -1;
	make_directories(c, o);
	return 0;
}

static int clear_sets(struct clearing *c, struct err *e)
{
	const struct image_object *o;
	size_t count;

	o = image_note_array(c->job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	/* Nothing is moved before all of them can be opened. */
	for (size_t i = 0; i < count; i++) {
		cleanup_fd int fd = -1;

		if (fd_saved_is_set(&o[i]) && (fd = open_set(c, &o[i], e)) < 0)
			return -1;
	}
	for (size_t i = 0; i < count; i++)
		if (fd_saved_is_set(&o[i]) && clear_set(c, &o[i], e))
			return -1;
	return 0;
}

int fd_saved_clear_sets(const struct image *job, const struct fd_restore_options *options,
	void (*notice)(const char *line), struct err *e)
{
	struct clearing c = {.job = job, .notice = notice};
	int failed = begin_clearing(&c, options, e) || clear_sets(&c, e) ? -1 : 0;

	buf_free(&c.own);
	return failed;
}

bool fd_saved_directory_stays(const struct fd_restore_options *options, const char *path)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *above =
		slash ? xasprintf("%.*s", (int)(slash - path + 1), path) : NULL;
	cleanup_fd int in =
		above ? fd_open_trusted(above, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	struct fd_set_file f = {.in = in, .name = slash ? slash + 1 : path, .path = path};
	struct clearing c = {0};
	bool stays;

	if (in < 0 || fstatat(in, f.name, &f.st, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(f.st.st_mode))
		return false;
	stays = begin_clearing(&c, options, NULL) || must_stay(&c, &f);
	buf_free(&c.own);
	return stays;
}
