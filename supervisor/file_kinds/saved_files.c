/*
 * saved_files.c - at a checkpoint: which files those are; at a restart: they are put back by
 * way of a file beside them, and what has been changed since is moved aside.
 */
#include "supervisor/file_kinds/saved_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

#include "lib/notices.h"
#include "lib/procfs.h"
#include "supervisor/fd/file_attributes.h"
#include "supervisor/fd/objects_restore.h"
#include "supervisor/fd/objects_dump.h"
#include "supervisor/fd/parent_directories.h"
#include "supervisor/fd/shm_file.h"

/* What SQLite keeps beside a database (https://www.sqlite.org/fileformat.html), and what such a
 * file begins with. A file that comes to be after the checkpoint would be taken for
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

/* ---- checkpoint ---- */

/* @file leads to what has the name @path, or is that name; without @st there is none. */
static void add_file(
	struct fd_dump *d, const char *path, const char *file, const struct stat *st)
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
		o.o.args[0] = st->st_mtim.tv_sec * 1000000000ull + st->st_mtim.tv_nsec;
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

static void add_if_small(
	struct fd_dump *d, const char *path, const char *file, const struct stat *st)
{
	uint32_t added = fd_object_named(d, image_writer_string(d->job, path));

	if (st && (uint64_t)st->st_size > d->save_files)
		notice_add("%s is not saved: it has %" PRIu64
			   " bytes, and --save-files is for %" PRIu64 " at most",
			path, (uint64_t)st->st_size, d->save_files);
	else if (added)
		fd_object_at(d, added)->o.flags &= ~IMAGE_FILE_IF_MISSING;
	else
		add_file(d, path, file, st);
}

static int add_beside(struct fd_dump *d, const char *path, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(beside); i++) {
		cleanup_free char *other = xasprintf("%s%s", path, beside[i]);
		struct stat st;
		bool there = !lstat(other, &st);

		if (!there && errno != ENOENT)
			return err_set(e, errno, "cannot look at %s", other);
		if (!there || S_ISREG(st.st_mode))
			add_if_small(d, other, other, there ? &st : NULL);
	}
	return 0;
}

/* To be put back, a file needs one beside it that has the contents, and another for what is
 * there by then. -1 with errno. */
static int check_room_beside(const char *path)
{
	cleanup_free char *directory = xstrdup(path);

	strrchr(directory, '/')[1] = 0;
	return faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS);
}

static void tell_no_room(const char *path)
{
	notice_add(
		"%s is not saved: no file can be made beside it, as a restart would have to in "
		"order to put it back (%s)",
		path, strerror(errno));
}

/* What a reboot may remove, or the program itself behind the checkpoint. Who maps such a file and has
 * closed it, as each Java does (/tmp/hsperfdata_USER/PID), uses it as memory that others can look
 * at. */
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
		check_room_beside(path) || faccessat(AT_FDCWD, file, R_OK, AT_EACCESS) ||
		fd_object_named(d, image_writer_string(d->job, path)))
		return;
	d->temporary_bytes += st->st_size;
	if (d->temporary_bytes > TEMPORARY_ALL)
		return;
	add_file(d, path, file, st);
	fd_object_at(d, buf_count(&d->objects, struct fd_object))->o.flags =
		IMAGE_FILE_IF_MISSING;
}

int fd_saved_dump(struct fd_dump *d, const struct fd_source *s, struct err *e)
{
	cleanup_free char *file = xasprintf("/proc/%d/fd/%d", s->task, s->fd);

	if ((s->flags & O_ACCMODE) == O_RDONLY) {
		/* An old journal is not to be put beside a database that has gone on. */
		if (!is_journal(s->link))
			add_temporary(d, s->link, file, &s->st);
		return 0;
	}
	if (d->save_files && check_room_beside(s->link)) {
		tell_no_room(s->link);
		return 0;
	}
	if (d->save_files) {
		add_if_small(d, s->link, file, &s->st);
		return is_database(file) ? add_beside(d, s->link, e) : 0;
	}
	if (d->program_resumes && is_journal(s->link))
		notice_add("%s is likely to be rewritten or removed while the program runs on, "
			   "which can make this checkpoint useless (--save-files saves it)",
			s->link);
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
	if (!procfs_vmas(getpid(), &list, NULL)) {
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

	/* Without opening it for reading, which who watches it or its directory would be told. */
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
	if (d->save_files && check_room_beside(path)) {
		tell_no_room(path);
	} else if (d->save_files) {
		add_if_small(d, path, path, &st);
	} else {
		add_temporary(d, path, path, &st);
	}
}

/* ---- restart ---- */

/* Whether a restart puts it back. */
static bool is_put_back(const struct image_object *o, const char *path)
{
	return o->kind == IMAGE_OBJECT_FILE &&
	       !(o->flags & (IMAGE_FILE_NOT_SAVED | IMAGE_FILE_DIRECTORY)) &&
	       (!(o->flags & IMAGE_FILE_IF_MISSING) ||
		       faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW));
}

bool fd_saved_in(const struct image *job, const char *path)
{
	const struct image_object *o;
	size_t count;

	o = image_note_array(job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(image_string(job, o[i].name), path) && is_put_back(&o[i], path))
			return true;
	return false;
}

bool fd_saved_needed(const struct image *job)
{
	const struct image_object *o;
	size_t count;

	o = image_note_array(job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	for (size_t i = 0; i < count; i++)
		if (is_put_back(&o[i], image_string(job, o[i].name)))
			return true;
	return false;
}

static int rename_new(const char *from, const char *to)
{
	return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
}

/* NULL with @e filled, else the new name: the caller's to free. */
static char *move_aside(const char *path, struct err *e)
{
	for (unsigned n = 0;; n++) {
		char *name = n ? xasprintf("%s.trecr-aside.%u", path, n)
			       : xasprintf("%s.trecr-aside", path);

		if (!rename_new(path, name))
			return name;
		if (errno != EEXIST)
			err_set(e, errno, "cannot move %s aside", path);
		free(name);
		if (errno != EEXIST)
			return NULL;
	}
}

#define PIECE 65536u

static bool is_same(int a, int b, uint64_t size)
{
	cleanup_free char *of_a = xmalloc(PIECE), *of_b = xmalloc(PIECE);

	for (uint64_t at = 0; at < size; at += PIECE) {
		size_t n = size - at < PIECE ? size - at : PIECE;

		if (pread_all(a, of_a, n, at, "", NULL) ||
			pread_all(b, of_b, n, at, "", NULL) || memcmp(of_a, of_b, n))
			return false;
	}
	return true;
}

/* Whether what is at @path is what was saved. */
static bool is_unchanged(const char *path, int saved, uint64_t size)
{
	cleanup_fd int now = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	return now >= 0 && !fstat(now, &st) && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size == size && is_same(now, saved, size);
}

/* A file whose contents are in the checkpoint. */
struct saved_file {
	const struct image *job;
	uint32_t number; /* of the object, */
	const struct image_object *o;
	const char *path;
};

/* Of another user's file, which has a mode that lets us write to it, owner, mode and times are
 * not ours to set: they stay what they are. */
static bool has_failed(int r)
{
	return r && errno != EPERM;
}

static int set_attributes(const struct saved_file *f, int fd)
{
	const struct image_object *o = f->o;
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
		{o->args[0] / 1000000000ull, o->args[0] % 1000000000ull}};

	/* Only root could give it away. */
	(void)!fchown(fd, (uid_t)o->args[1], (gid_t)(o->args[1] >> 32));
	fd_attributes_restore_extended(f->job, f->number, fd);
	return has_failed(fchmod(fd, o->mode & 07777)) || has_failed(futimens(fd, times)) ||
	       fsync(fd);
}

static int fill_file(const struct saved_file *f, int fd, struct err *e)
{
	if (fd_contents_to_file(f->job, f->number, f->o->size, fd, e))
		return err_prefix(e, "cannot put %s back", f->path);
	return set_attributes(f, fd) ? err_set(e, errno, "cannot put %s back", f->path) : 0;
}

/* ---- in the file that is there ---- */

#define MUCH (1u << 30)

/* From the beginning of both. Some file systems know only the second way. */
static int copy_file(int from, int to)
{
	off_t at = 0;
	ssize_t n;

	do
		n = copy_file_range(from, &at, to, NULL, MUCH, 0);
	while (n > 0);
	if (n < 0 && lseek(to, at, SEEK_SET) < 0)
		return -1;
	while (n)
		if ((n = sendfile(to, from, &at, MUCH)) < 0)
			return -1;
	return 0;
}

/* A copy of @fd, which is at @path; as move_aside(). */
static char *copy_aside(const char *path, int fd, const struct stat *st, struct err *e)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	cleanup_fd int copy = -1;
	char *name = NULL;

	for (unsigned n = 0; copy < 0; n++) {
		free(name);
		name = n ? xasprintf("%s.trecr-aside.%u", path, n)
			 : xasprintf("%s.trecr-aside", path);
		copy = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (copy < 0 && errno != EEXIST)
			break;
	}
	if (copy >= 0) {
		(void)!fchown(copy, st->st_uid, st->st_gid); /* as above */
		if (!copy_file(fd, copy) && !fchmod(copy, st->st_mode & 07777) &&
			!futimens(copy, times) && !fsync(copy))
			return name;
		(void)unlink(name);
	}
	err_set(e, errno, "cannot keep a copy of %s", path);
	free(name);
	return NULL;
}

/* The file stays the same one, as SQLite writes to no database that has another inode than it
 * had: its contents become those of @with. *aside: where those of now are; NULL: it is not
 * there, or may not be written to. */
static int rewrite_file(const struct saved_file *f, int with, char **aside, struct err *e)
{
	cleanup_fd int now =
		open(f->path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	struct stat st;

	if (now < 0 || fstat(now, &st) || !S_ISREG(st.st_mode))
		return 0;
	*aside = copy_aside(f->path, now, &st, e);
	/* Should the power fail while the file is written to, the copy has a name. */
	if (!*aside || sync_directory_of(*aside, e))
		return -1;
	if (lseek(now, 0, SEEK_SET) || copy_file(with, now) || ftruncate(now, f->o->size) ||
		set_attributes(f, now))
		return err_set(
			e, errno, "cannot put %s back; as it was, it is %s", f->path, *aside);
	return 0;
}

static void tell_and_free(void (*notice)(const char *line), char *line)
{
	notice(line);
	free(line);
}

static void tell_put_back(void (*notice)(const char *line), const char *path, const char *aside)
{
	tell_and_free(notice, xasprintf("%s is as it was at the checkpoint again; as it was "
					"until now it is %s",
				      path, aside));
}

/* @with in the place of what is there, if anything is. */
static int replace_file(
	const char *path, const char *with, void (*notice)(const char *line), struct err *e)
{
	cleanup_free char *aside = NULL;
	struct stat st;

	if (!lstat(path, &st)) {
		aside = move_aside(path, e);
		if (!aside)
			return -1;
	}
	if (with && rename_new(with, path))
		return err_set(e, errno, "cannot put %s back", path);
	if (with && aside)
		tell_put_back(notice, path, aside);
	else if (with)
		tell_and_free(notice, xasprintf("%s was missing and has been put back", path));
	else if (aside)
		tell_and_free(
			notice, xasprintf("%s was not there at the checkpoint; it is now %s",
					path, aside));
	return 0;
}

/* Nobody has asked for this file to be saved: it is only put into a directory of this user's. Where
 * anybody can make names, as in /tmp, its name may lead somewhere else by now. */
static int open_own_directory(const struct saved_file *f, struct err *e)
{
	uid_t owner = f->o->args[1];
	cleanup_fd int fd = fd_parents_open(f->job, f->path, f->o->args[1], false);
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) &&
		(st.st_uid == geteuid() || !st.st_uid || st.st_uid == owner))
		return steal_fd(&fd);
	if (fd < 0 && errno != ENOTDIR)
		return err_set(e, errno, "cannot put %s back", f->path);
	return err_set(e, 0,
		"cannot put %s back: %.*s is not a directory of this user's, or a symbolic "
		"link "
		"leads there",
		f->path, (int)(strrchr(f->path, '/') - f->path), f->path);
}

/* A file that was missing. One that somebody has made since stays. */
static int put_missing_back(
	const struct saved_file *f, void (*notice)(const char *line), struct err *e)
{
	const char *base = strrchr(f->path, '/') + 1;
	cleanup_fd int directory = open_own_directory(f, e), fd = -1;
	cleanup_free char *name = NULL;
	uint64_t number = 0;
	int failed;

	if (directory < 0)
		return -1;
	(void)!getrandom(&number, sizeof(number), 0); /* O_EXCL tells */
	name = xasprintf("%s.trecr-%016" PRIx64, base, number);
	fd = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(e, errno, "cannot put %s back", f->path);
	failed = fill_file(f, fd, e);
	if (!failed &&
		!syscall(SYS_renameat2, directory, name, directory, base, RENAME_NOREPLACE)) {
		tell_and_free(
			notice, xasprintf("%s was missing and has been put back", f->path));
		return sync_directory_of(f->path, e);
	}
	if (!failed && errno != EEXIST)
		failed = err_set(e, errno, "cannot put %s back", f->path);
	(void)unlinkat(directory, name, 0); /* ours, of a moment ago */
	return failed;
}

/* A directory that is gone with the file is made again. */
static int make_directory(const struct saved_file *f, struct err *e)
{
	cleanup_fd int fd = fd_parents_open(f->job, f->path, f->o->args[1], true);

	return fd < 0 ? err_set(e, errno, "cannot put %s back", f->path) : 0;
}

static int put_file_back(
	const struct saved_file *f, void (*notice)(const char *line), struct err *e)
{
	cleanup_free char *name = xasprintf("%s.trecr-XXXXXX", f->path), *aside = NULL;
	cleanup_fd int fd = -1;
	int failed;

	if (f->o->flags & IMAGE_FILE_ABSENT)
		return replace_file(f->path, NULL, notice, e);
	if (f->o->flags & IMAGE_FILE_IF_MISSING)
		return put_missing_back(f, notice, e);
	if (make_directory(f, e))
		return -1;
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return err_set(e, errno, "cannot put %s back", f->path);
	failed = fill_file(f, fd, e);
	if (failed || is_unchanged(f->path, fd, f->o->size)) {
		(void)unlink(name); /* ours, of a moment ago */
		return failed;
	}
	failed = rewrite_file(f, fd, &aside, e);
	if (!failed && !aside)
		failed = replace_file(f->path, name, notice, e);
	else if (!failed)
		tell_put_back(notice, f->path, aside);
	if (failed || aside)
		(void)unlink(name);
	return failed || sync_directory_of(f->path, e) ? -1 : 0;
}

int fd_saved_put_back(const struct image *job, void (*notice)(const char *line), struct err *e)
{
	const struct image_object *o;
	size_t count;

	o = image_note_array(job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	for (size_t i = 0; i < count; i++) {
		const struct saved_file f = {job, i + 1, &o[i], image_string(job, o[i].name)};

		if (is_put_back(&o[i], f.path) && !fd_shm_file_in(job, f.path) &&
			put_file_back(&f, notice, e))
			return -1;
	}
	return 0;
}
