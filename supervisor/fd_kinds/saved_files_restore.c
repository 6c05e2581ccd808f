/*
 * saved_files_restore.c - a file is put back by way of one beside it that gets the contents first.
 */
#include "supervisor/fd_kinds/saved_files_restore.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sendfile.h>

#include "ckpt/image_names.h"
#include "lib/notices.h"
#include "supervisor/fd/file_attributes.h"
#include "supervisor/fd/objects_restore.h"
#include "supervisor/fd/parent_directories.h"
#include "supervisor/fd/rename_noreplace.h"
#include "supervisor/fd/shm_file.h"
#include "supervisor/fd/trusted_path.h"
#include "supervisor/fd_kinds/set_file_aside.h"
#include "supervisor/fd_kinds/saved_files.h"
#include "supervisor/fd_kinds/saved_directories_restore.h"

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
	for (uint32_t n = 0; (n = image_object_named(job, path, n));)
		if (is_put_back(&o[n - 1], path))
			return true;
	return false;
}

bool fd_saved_needed(const struct image *job)
{
	const struct image_object *o;
	size_t count;

	o = image_note_array(job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	for (size_t i = 0; i < count; i++)
		if (fd_saved_is_set(&o[i]) || is_put_back(&o[i], image_string(job, o[i].name)))
			return true;
	return false;
}

/* A file whose contents are in the checkpoint, or that did not exist. All is done through a descriptor of its
 * directory, in case another process renames that meanwhile, or puts a link in its place. */
struct saved_file {
	const struct image *job;
	uint32_t number; /* of the object, */
	const struct image_object *o;
	const char *path, *base;
	int in;
};

/* The name in its directory of a path that begins with that of @f. */
static const char *base_of(const struct saved_file *f, const char *path)
{
	return path + (f->base - f->path);
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

/* Whether what is there is what was saved. */
static bool is_unchanged(const struct saved_file *f, int saved)
{
	cleanup_fd int now = openat(
		f->in, f->base, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	uint64_t size = f->o->size;
	struct stat st;

	return now >= 0 && !fstat(now, &st) && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size == size && is_same(now, saved, size);
}

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

	mode_t mode = o->mode & 07777;
	struct stat st;

	/* Only root could give it away. What stays another's is not to be executed as that one. */
	(void)!fchown(fd, (uid_t)o->args[1], (gid_t)(o->args[1] >> 32));
	if (fstat(fd, &st))
		return -1;
	if (st.st_uid != (uid_t)o->args[1])
		mode &= ~S_ISUID;
	if (st.st_gid != (gid_t)(o->args[1] >> 32))
		mode &= ~S_ISGID;
	fd_attributes_restore_extended(f->job, f->number, fd);
	return has_failed(fchmod(fd, mode)) || has_failed(futimens(fd, times)) || fsync(fd);
}

static int fill_file(const struct saved_file *f, int fd, struct err *e)
{
	return fd_contents_to_file(f->job, f->number, f->o->size, fd, e)
		       ? err_prefix(e, "cannot put %s back", f->path)
		       : 0;
}

/* Then it is on the disk, too. */
static int finish_file(const struct saved_file *f, int fd, struct err *e)
{
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

/* A copy of @fd, which is what is there; as fd_move_aside(). */
static char *copy_aside(
	const struct saved_file *f, int fd, const struct stat *st, struct err *e)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	cleanup_fd int copy = -1;
	char *name = NULL;

	for (unsigned n = 0; copy < 0; n++) {
		free(name);
		name = fd_aside_name(f->path, n);
		copy = openat(
			f->in, base_of(f, name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (copy < 0 && errno != EEXIST)
			break;
	}
	if (copy >= 0) {
		/* As above. A copy is not to be executed as anybody else. */
		(void)!fchown(copy, st->st_uid, st->st_gid);
		if (!copy_file(fd, copy) && !fchmod(copy, st->st_mode & 0777) &&
			!futimens(copy, times) && !fsync(copy))
			return name;
		(void)unlinkat(f->in, base_of(f, name), 0);
	}
	err_set(e, errno, "cannot keep a copy of %s", f->path);
	free(name);
	return NULL;
}

/* Another user may have put a hard link to some file of root's there. */
static bool may_be_anothers(const struct saved_file *f, const struct stat *st)
{
	struct stat in;

	return !geteuid() &&
	       (st->st_uid != (uid_t)f->o->args[1] ||
		       (!st->st_uid && st->st_nlink > 1 && (fstat(f->in, &in) || in.st_uid)));
}

/* The file stays the same one, as SQLite writes to no database that has another inode than it
 * had: its contents become those of @with. *aside: where those of now are; NULL: it is not
 * there, may not be written to, or may be another file. */
static int rewrite_file(const struct saved_file *f, int with, char **aside, struct err *e)
{
	cleanup_fd int now =
		openat(f->in, f->base, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	struct stat st;

	if (now < 0 || fstat(now, &st) || !S_ISREG(st.st_mode) || may_be_anothers(f, &st))
		return 0;
	*aside = copy_aside(f, now, &st, e);
	/* Should the power fail while the file is written to, the copy has a name. */
	if (!*aside || sync_directory_of(*aside, e))
		return -1;
	if (lseek(now, 0, SEEK_SET) || copy_file(with, now) || ftruncate(now, f->o->size) ||
		set_attributes(f, now))
		return err_set(e, errno, "cannot put %s back; its former contents are in %s",
			f->path, *aside);
	return 0;
}

static void tell_put_back(void (*notice)(const char *line), const char *path, const char *aside)
{
	notice_printf(notice,
		"%s was put back as it was at the checkpoint; its contents until now are in %s",
		path, aside);
}

/* @with, a name in its directory, in the place of what is there, if anything is. */
static int replace_file(const struct saved_file *f, const char *with,
	void (*notice)(const char *line), struct err *e)
{
	cleanup_free char *aside = NULL;
	const char *path = f->path;
	struct stat st;

	if (!fstatat(f->in, f->base, &st, AT_SYMLINK_NOFOLLOW)) {
		aside = fd_move_aside(f->in, f->base, f->path, e);
		if (!aside)
			return -1;
	}
	if (with && fd_rename_noreplace(f->in, with, f->in, f->base))
		return err_set(e, errno, "cannot put %s back", path);
	if (with && aside)
		tell_put_back(notice, path, aside);
	else if (with)
		notice_printf(notice, "%s was missing and has been put back", path);
	else if (aside)
		fd_tell_moved_aside(notice, path, aside);
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
		"link leads there",
		f->path, (int)(strrchr(f->path, '/') - f->path), f->path);
}

/* A name in the same directory that none should have. The caller's to free. */
static char *name_beside(const struct saved_file *f)
{
	uint64_t number = 0;

	(void)!getrandom(&number, sizeof(number), 0); /* who makes it, makes it anew */
	return xasprintf("%s.trecr-%016" PRIx64, f->base, number);
}

/* A new file in the same directory, and its name there, which is the caller's to free. */
static int make_beside(const struct saved_file *f, char **name, struct err *e)
{
	int fd;

	*name = name_beside(f);
	fd = openat(f->in, *name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd < 0 ? err_set(e, errno, "cannot put %s back", f->path) : fd;
}

/* A file that was missing. If another process has made one meanwhile, that stays. */
static int put_missing_back(
	const struct saved_file *f, void (*notice)(const char *line), struct err *e)
{
	cleanup_free char *name = NULL;
	cleanup_fd int fd = make_beside(f, &name, e);
	int failed;

	if (fd < 0)
		return -1;
	failed = fill_file(f, fd, e) || finish_file(f, fd, e) ? -1 : 0;
	if (!failed && !fd_rename_noreplace(f->in, name, f->in, f->base)) {
		notice_printf(notice, "%s was missing and has been put back", f->path);
		return sync_directory_of(f->path, e);
	}
	if (!failed && errno != EEXIST)
		failed = err_set(e, errno, "cannot put %s back", f->path);
	(void)unlinkat(f->in, name, 0); /* ours, of a moment ago */
	return failed;
}

static int put_contents_back(
	const struct saved_file *f, void (*notice)(const char *line), struct err *e)
{
	cleanup_free char *name = NULL, *aside = NULL;
	cleanup_fd int fd = make_beside(f, &name, e);
	int failed;

	if (fd < 0)
		return -1;
	failed = fill_file(f, fd, e);
	if (failed || is_unchanged(f, fd)) {
		(void)unlinkat(f->in, name, 0); /* ours, of a moment ago */
		return failed;
	}
	failed = finish_file(f, fd, e) || rewrite_file(f, fd, &aside, e) ? -1 : 0;
	if (!failed && !aside)
		failed = replace_file(f, name, notice, e);
	else if (!failed)
		tell_put_back(notice, f->path, aside);
	if (failed || aside)
		(void)unlinkat(f->in, name, 0);
	return failed || sync_directory_of(f->path, e) ? -1 : 0;
}

static bool is_link_to(const struct saved_file *f, const char *target)
{
	char now[PATH_MAX];
	ssize_t n = readlinkat(f->in, f->base, now, sizeof(now));

	return n >= 0 && (size_t)n == strlen(target) && !memcmp(now, target, n);
}

/* Only root could give it away. Another user may have put something else there. */
static void give_link(const struct saved_file *f, const char *name)
{
	cleanup_fd int fd = openat(f->in, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	uint64_t owner = f->o->args[1];
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && S_ISLNK(st.st_mode))
		(void)!fchownat(fd, "", (uid_t)owner, (gid_t)(owner >> 32), AT_EMPTY_PATH);
}

static int put_link_back(
	const struct saved_file *f, void (*notice)(const char *line), struct err *e)
{
	const char *target = image_string(f->job, f->o->args[0]);
	cleanup_free char *name = name_beside(f);

	if (is_link_to(f, target))
		return 0;
	if (symlinkat(target, f->in, name))
		return err_set(e, errno, "cannot put %s back", f->path);
	give_link(f, name);
	if (replace_file(f, name, notice, e)) {
		(void)unlinkat(f->in, name, 0); /* ours, of a moment ago */
		return -1;
	}
	return sync_directory_of(f->path, e);
}

/* A directory that is gone with the file is made again. */
static int open_directory(const struct saved_file *f, struct err *e)
{
	int fd = -1;

	if (fd_check_trusted(f->path, O_NOFOLLOW, e))
		return -1;
	fd = fd_parents_open(f->job, f->path, f->o->args[1], true);
	return fd < 0 ? err_set(e, errno, "cannot put %s back", f->path) : fd;
}

/* Where a file may have been made since the checkpoint; -1 with errno (ENOENT, ENOTDIR: nothing, as it is
 * gone). */
static int open_directory_of_absent(const struct saved_file *f)
{
	cleanup_free char *above = xasprintf("%.*s", (int)(f->base - f->path), f->path);

	return fd_open_trusted(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int put_file_back(struct saved_file *f, void (*notice)(const char *line), struct err *e)
{
	cleanup_fd int in = -1;

	if (f->o->flags & IMAGE_FILE_ABSENT) {
		if (fd_check_trusted(f->path, O_NOFOLLOW, e))
			return -1;
		f->in = in = open_directory_of_absent(f);
		if (in < 0 && errno != ENOENT && errno != ENOTDIR)
			return err_set(e, errno, "cannot move %s aside", f->path);
		return in < 0 ? 0 : replace_file(f, NULL, notice, e);
	}
	if (f->o->flags & IMAGE_FILE_IF_MISSING) {
		f->in = in = open_own_directory(f, e);
		return in < 0 ? -1 : put_missing_back(f, notice, e);
	}
	f->in = in = open_directory(f, e);
	if (in < 0)
		return -1;
	return f->o->flags & IMAGE_FILE_LINK ? put_link_back(f, notice, e)
					     : put_contents_back(f, notice, e);
}

/* Of a set, but not saved. */
static void tell_newer(
	const struct image_object *o, const char *path, void (*notice)(const char *line))
{
	struct stat st;

	if (o->kind == IMAGE_OBJECT_FILE && o->args[0] && o->flags == IMAGE_FILE_NOT_SAVED &&
		!lstat(path, &st) && fd_saved_changed_at(&st) != o->args[0])
		notice_printf(notice,
			"%s was not saved and has been changed since the checkpoint: it may "
			"not match "
			"the files beside it",
			path);
}

/* Before anything is moved: a directory in the place of a file is moved aside with all that is in it. */
static int check_directories_in_the_way(
	const struct image *job, const struct fd_restore_options *options, struct err *e)
{
	const struct image_object *o;
	size_t count;

	o = image_note_array(job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	for (size_t i = 0; i < count; i++) {
		const char *path = image_string(job, o[i].name);

		if (is_put_back(&o[i], path) && fd_saved_directory_stays(options, path))
			return err_set(e, 0,
				"cannot put the files back: %s is a directory now, and is not "
				"moved "
				"aside, as trecr uses something in it, or something is "
				"mounted, a "
				"socket or not accessible there: move it away",
				path);
	}
	return 0;
}

int fd_saved_put_back(const struct image *job, const struct fd_restore_options *options,
	void (*notice)(const char *line), struct err *e)
{
	const struct image_object *o;
	size_t count;

	if (check_directories_in_the_way(job, options, e) ||
		fd_saved_clear_sets(job, options, notice, e))
		return -1;
	o = image_note_array(job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	for (size_t i = 0; i < count; i++) {
		const char *path = image_string(job, o[i].name), *slash = strrchr(path, '/');
		struct saved_file f = {job, i + 1, &o[i], path, slash ? slash + 1 : path, -1};

		tell_newer(&o[i], path, notice);
		if (is_put_back(&o[i], f.path) && !fd_shm_file_in(job, f.path) &&
			put_file_back(&f, notice, e))
			return -1;
	}
	return 0;
}
