/*
 * saved_files.c - which files are saved: those open for writing, what SQLite keeps beside them, and small
 * mapped ones in directories for temporary files.
 */
#include "supervisor/fd_kinds/saved_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/notices.h"
#include "lib/procfs.h"
#include "supervisor/fd/objects_dump.h"
#include "supervisor/fd/parent_directories.h"
#include "supervisor/fd_kinds/saved_directories.h"
#include "supervisor/fd_kinds/saved_directories_dump.h"

/* What SQLite keeps beside a database (https://www.sqlite.org/fileformat.html), and what such a
 * file begins with. A file that is made after the checkpoint would be taken for
 * that of a crash.
 */
static const char *const beside[] = {"-journal", "-wal", "-shm"};
static const char database[16] = "SQLite format 3";

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n >= k && !strcmp(s + n - k, end);
}

static bool is_journal(const char *path)
{
	return ends_with(path, beside[0]) || ends_with(path, beside[1]);
}

static bool is_database(const char *file)
{
	cleanup_fd int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char start[sizeof(database)];

	return fd >= 0 && pread(fd, start, sizeof(start), 0) == sizeof(start) &&
	       !memcmp(start, database, sizeof(start));
}

void fd_saved_add(struct fd_dump *d, const char *path, const char *file, const struct stat *st)
{
	struct fd_object o = {
		.o = {.kind = IMAGE_OBJECT_FILE, .name = image_writer_string(d->job, path)},
		.fd = -1,
		.text = xstrdup(path),
		.link = xstrdup(path),
	};

	if (st) {
		o.file = xstrdup(file);
		o.o.size = st->st_size;
		o.o.mode = st->st_mode & 07777;
		o.o.args[0] = fd_saved_changed_at(st);
		o.o.args[1] = st->st_uid | (uint64_t)st->st_gid << 32;
		if (file == path) {
			o.file_dev = st->st_dev;
			o.file_ino = st->st_ino;
		}
		fd_parents_dump(d, path);
	} else {
		o.o.flags = IMAGE_FILE_ABSENT;
	}
	fd_object_add(d, &o);
}

bool fd_saved_is_small(const struct fd_dump *d, const char *path, const struct stat *st)
{
	if ((uint64_t)st->st_size <= d->save_files)
		return true;
	notice_add("%s is not saved: it has %" PRIu64 " bytes, and --save-files is for %" PRIu64
		   " at most",
		path, (uint64_t)st->st_size, d->save_files);
	return false;
}

static void add_if_small(
	struct fd_dump *d, const char *path, const char *file, const struct stat *st)
{
	uint32_t added = fd_object_named(d, image_writer_string(d->job, path));

	if (st && !fd_saved_is_small(d, path, st))
		return;
	if (added)
		fd_object_at(d, added)->o.flags &= ~IMAGE_FILE_IF_MISSING;
	else
		fd_saved_add(d, path, file, st);
}

static int add_beside(struct fd_dump *d, const char *path, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(beside); i++) {
		cleanup_free char *other = xasprintf("%s%s", path, beside[i]);
		struct stat st;
		bool there = !lstat(other, &st);

		if (!there && errno != ENOENT)
			return err_set(e, errno, "cannot examine %s", other);
		if (!there || S_ISREG(st.st_mode))
			add_if_small(d, other, other, there ? &st : NULL);
	}
	return 0;
}

int fd_saved_check_room(const char *path)
{
	cleanup_free char *directory = xstrdup(path);

	strrchr(directory, '/')[1] = 0;
	return faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS);
}

void fd_saved_tell_no_room(const char *path)
{
	notice_add("%s is not saved: no file can be created beside it, as a restart would have "
		   "to do to put it back (%s)",
		path, strerror(errno));
}

/* Files that a reboot may remove, or the program itself after the checkpoint. A program that maps such a file and
 * has closed it, as each Java does (/tmp/hsperfdata_USER/PID), uses it as memory that others can read. */
static bool is_temporary(const char *path)
{
	static const char *const directories[] = {"/tmp/", "/var/tmp/", "/run/"};

	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		if (!strncmp(path, directories[i], strlen(directories[i])))
			return true;
	return false;
}

/* Where nobody has asked for files to be saved: of one, and of all. */
#define TEMPORARY_MOST (1u << 20)
#define TEMPORARY_ALL  (16u << 20)

/* @file leads to what has the name @path. Put back only if it is missing: what has been changed since
 * is not the program's alone. */
static void add_temporary(
	struct fd_dump *d, const char *path, const char *file, const struct stat *st)
{
	if (!is_temporary(path) || (uint64_t)st->st_size > TEMPORARY_MOST ||
		fd_saved_check_room(path) || faccessat(AT_FDCWD, file, R_OK, AT_EACCESS) ||
		fd_object_named(d, image_writer_string(d->job, path)))
		return;
	d->temporary_bytes += st->st_size;
	if (d->temporary_bytes > TEMPORARY_ALL)
		return;
	fd_saved_add(d, path, file, st);
	fd_object_at(d, buf_count(&d->objects, struct fd_object))->o.flags =
		IMAGE_FILE_IF_MISSING;
}

/* Without --save-files. */
static void tell_stale(const char *path, const char *set)
{
	if (set)
		notice_add(
			"files in %s are likely to be rewritten or removed while the program "
			"runs on, which can make this checkpoint useless (--save-files saves "
			"them)",
			set);
	else if (is_journal(path))
		notice_add("%s is likely to be rewritten or removed while the program runs on, "
			   "which can make this checkpoint useless (--save-files saves it)",
			path);
}

int fd_saved_dump(struct fd_dump *d, const struct fd_source *s, struct err *e)
{
	cleanup_free char *file = xasprintf("/proc/%d/fd/%d", s->task, s->fd), *set = NULL;

	if ((s->flags & O_ACCMODE) == O_RDONLY) {
		/* An old journal must not be put beside a database that has changed since. */
		if (!is_journal(s->link))
			add_temporary(d, s->link, file, &s->st);
		return 0;
	}
	if (d->save_files && fd_saved_check_room(s->link)) {
		fd_saved_tell_no_room(s->link);
		return 0;
	}
	if (!d->save_files && !d->program_resumes)
		return 0;
	set = fd_set_of(s->link, s->st.st_uid);
	if (d->save_files) {
		add_if_small(d, s->link, file, &s->st);
		if (set)
			fd_saved_mark_set(d, s->link, set);
		return is_database(file) ? add_beside(d, s->link, e) : 0;
	}
	tell_stale(s->link, set);
	return 0;
}

/* Where maps and stat(2) show different devices (file systems with subvolumes), a mapping of our own
 * tells whether @link leads to the file that @v maps. */
static bool maps_like(const char *link, const struct vma *v)
{
	cleanup_fd int fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, IMAGE_BLOCK, PROT_NONE, MAP_PRIVATE, fd, 0);
	struct vma_list list;
	bool same = false;

	if (p == MAP_FAILED)
		return false;
	if (!procfs_maps(getpid(), &list, NULL)) {
		for (size_t i = 0; i < list.count; i++)
			same |= list.v[i].start == (uintptr_t)p && list.v[i].dev == v->dev &&
				list.v[i].inode == v->inode;
		vma_list_free(&list);
	}
	munmap(p, IMAGE_BLOCK);
	return same;
}

/* Whether its name leads to what @v maps, and we may read it. */
static bool look_at_mapped(const struct vma *v, struct stat *st)
{
	cleanup_free char *link = NULL;
	cleanup_fd int fd = -1;

	/* Without opening it for reading, which watchers of it or its directory would be told. */
	fd = open(v->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, st) || !S_ISREG(st->st_mode) || st->st_ino != v->inode)
		return false;
	link = xasprintf("/proc/self/fd/%d", fd);
	return !faccessat(AT_FDCWD, link, R_OK, AT_EACCESS) &&
	       (st->st_dev == v->dev || maps_like(link, v));
}

void fd_saved_dump_mapped(struct fd_dump *d, const struct vma *v)
{
	const char *path = v->name;
	struct stat st;

	if ((!d->save_files && !is_temporary(path)) || !look_at_mapped(v, &st))
		return;
	if (d->save_files && fd_saved_check_room(path)) {
		fd_saved_tell_no_room(path);
	} else if (d->save_files) {
		add_if_small(d, path, path, &st);
	} else {
		add_temporary(d, path, path, &st);
	}
}
