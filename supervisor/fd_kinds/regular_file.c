/*
 * fd_kinds/regular_file.c - files: with a name, which are opened again, and without, whose contents
 * are saved.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "ckpt/image_names.h"
#include "lib/notices.h"
#include "lib/procfs.h"
#include "supervisor/fd_kinds/fd_kinds.h"
#include "supervisor/fd/objects_restore.h"
#include "supervisor/fd/objects_dump.h"
#include "supervisor/fd/reopen_despite_mode.h"
#include "supervisor/fd_kinds/rollback.h"
#include "supervisor/fd_kinds/saved_files.h"
#include "supervisor/fd_kinds/saved_files_restore.h"
#include "supervisor/fd/shm_file.h"
#include "supervisor/fd/trusted_path.h"

#ifndef SECRETMEM_MAGIC
#define SECRETMEM_MAGIC 0x5345434d
#endif

/* Files whose text is made up by the kernel: size and times say nothing. */
static bool is_synthetic(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return false;
	return fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
	       fs.f_type == CGROUP2_SUPER_MAGIC || fs.f_type == CGROUP_SUPER_MAGIC;
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n >= k && !strcmp(s + n - k, end);
}

static int check_synthetic(const struct fd_source *s, struct err *e)
{
	if ((s->flags & O_ACCMODE) == O_RDONLY)
		return 0;
	if (!strncmp(s->link, "/proc/pressure/", 15) || ends_with(s->link, ".pressure"))
		return err_set(
			e, 0, "triggers of pressure stall information are not supported");
	return 0;
}

/* A restart opens it once more, which the mode may forbid by now: who owns it may change that
 * for the moment (reopen_despite_mode.h). Standard streams are often opened by another user,
 * who can let this one open them, too. */
static int check_access(const struct fd_source *s, struct err *e)
{
	static const int wanted[] = {R_OK, W_OK, R_OK | W_OK, 0};

	if (!faccessat(AT_FDCWD, s->link, wanted[s->flags & O_ACCMODE], AT_EACCESS) ||
		errno != EACCES || s->st.st_uid == geteuid())
		return 0;
	if (s->fd <= STDERR_FILENO) {
		notice_add("user %u may not open %s (descriptor %d), and so cannot restart the "
			   "program: allow it (chmod, setfacl), or run trecr-run COMMAND | cat "
			   ">FILE",
			geteuid(), s->link, s->fd);
		return 0;
	}
	return err_set(e, 0, "a restart could not open it again, as its mode (%04o) forbids",
		s->st.st_mode & 07777);
}

bool fd_regular_match(const struct fd_dump *d, const struct fd_source *s)
{
	return S_ISREG(s->st.st_mode) && s->named;
}

/* As shm_open(3) opens it, in glibc and musl. The process that made it maps it, and often removes its name, right
 * after. */
static bool is_posix_shm(const struct fd_source *s)
{
	return (s->flags & O_ACCMODE) == O_RDWR && s->flags & O_NOFOLLOW &&
	       fd_shm_file_is_memory(s->link);
}

static void add_posix_shm(struct fd_dump *d, const struct fd_source *s)
{
	struct fd_object *o = fd_object_at(d, fd_object_of(d, s, IMAGE_OBJECT_SHM_FILE));

	o->o.args[1] = fd_source_owner(s);
}

int fd_regular_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	if (is_synthetic(s->dup) ? check_synthetic(s, e) : check_access(s, e))
		return -1;
	if (is_posix_shm(s))
		add_posix_shm(d, s);
	x->path = image_writer_string(d->job, s->link);
	x->size = s->st.st_size;
	x->mtime_ns = s->st.st_mtim.tv_sec * 1000000000ull + s->st.st_mtim.tv_nsec;
	return is_synthetic(s->dup) ? 0 : fd_saved_dump(d, s, e);
}

/* Several descriptions may lead to one file; the first is checked for all. */
static bool is_first_of_path(const struct fd_check *c, const struct image_description *x)
{
	const struct image_description *all = x - c->index;
	const char *path = image_string(c->job, x->path);
	uint32_t n = 0;

	while ((n = image_description_named(c->job, path, n)))
		if (all[n - 1].kind == x->kind)
			break;
	return n == c->index + 1;
}

static bool is_written(const struct fd_check *c, const struct image_description *x)
{
	const struct image_description *all = x - c->index;
	const char *path = image_string(c->job, x->path);

	for (uint32_t n = 0; (n = image_description_named(c->job, path, n));)
		if (all[n - 1].kind == x->kind && (all[n - 1].flags & O_ACCMODE) != O_RDONLY)
			return true;
	return false;
}

/* Only what the program has open for writing is saved. */
static const char *what_saves_it(const struct fd_check *c, const struct image_description *x)
{
	return is_written(c, x) ? " (trecr-run --save-files has checkpoints contain files that "
				  "are open for writing)"
				: "";
}

static int check_growth(const struct fd_check *c, int fd, const char *path, uint64_t was,
	uint64_t is, struct err *e)
{
	cleanup_free char *tail = NULL;

	if (!c->options->rollback_files) {
		notice_printf(c->notice,
			"%s has grown by %" PRIu64 " bytes since the checkpoint; they are kept "
			"(--rollback-files moves them aside)",
			path, is - was);
		return 0;
	}
	if (fd_rollback(fd, path, was, &tail, e))
		return -1;
	notice_printf(c->notice,
		"%s: %" PRIu64 " bytes written since the checkpoint are now in %s", path,
		is - was, tail);
	return 0;
}

static int check_contents(const struct fd_check *c, int fd, const struct image_description *x,
	const struct stat *st, struct err *e)
{
	const char *path = image_string(c->job, x->path);
	uint64_t size = st->st_size;
	uint64_t mtime = st->st_mtim.tv_sec * 1000000000ull + st->st_mtim.tv_nsec;

	if (size < x->size)
		return err_set(e, 0,
			"cannot continue with %s: it is shorter than at the checkpoint "
			"(%" PRIu64 " bytes, it had %" PRIu64
			"): put back the file as it was%s",
			path, size, x->size, what_saves_it(c, x));
	if (size > x->size && is_written(c, x))
		return check_growth(c, fd, path, x->size, size, e);
	if (size != x->size || mtime != x->mtime_ns)
		notice_printf(c->notice, "%s has changed since the checkpoint", path);
	return 0;
}

/* "descriptor 5", the caller's to free. */
static char *opened_as(const struct fd_check *c, const struct image_description *x)
{
	return x->args[1] ? xstrdup("opened by MPI_File_open")
			  : xasprintf("descriptor %d", c->fd);
}

static int cannot_open(const struct fd_check *c, const struct image_description *x,
	const char *path, int code, struct err *e)
{
	cleanup_free char *as = opened_as(c, x);

	(void)fd_cannot_open(path, as, code, e);
	return code == ENOENT ? err_append(e, ": make it again%s", what_saves_it(c, x)) : -1;
}

/* Opening it would break a lease, be seen by a process that watches it, or change its mode for a moment.
 */
static int check_name(const struct fd_check *c, const struct image_description *x,
	const char *path, struct err *e)
{
	cleanup_free char *as = opened_as(c, x);
	struct stat st;

	if (stat(path, &st))
		return cannot_open(c, x, path, errno, e);
	if (!S_ISREG(st.st_mode))
		return err_set(e, 0, "%s (%s) is not a regular file", path, as);
	return fd_check_access(c, path, x->flags, e);
}

static int check_file(const struct fd_check *c, const struct image_description *x,
	const char *path, struct err *e)
{
	/* A FIFO in the file's place must not make us wait. */
	int flags = (x->flags & O_ACCMODE) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	cleanup_fd int fd = fd_reopen(path, flags);
	cleanup_free char *as = opened_as(c, x);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return cannot_open(c, x, path, errno, e);
	if (!S_ISREG(st.st_mode))
		return err_set(
			e, 0, "cannot open %s (%s): it is no longer a regular file", path, as);
	if (is_synthetic(fd) || !is_first_of_path(c, x))
		return 0;
	return check_contents(c, fd, x, &st, e);
}

int fd_regular_check(const struct fd_check *c, const struct image_description *x, struct err *e)
{
	const char *path = image_string(c->job, x->path);

	if (fd_shm_file_in(c->job, path))
		return 0;
	if (fd_check_trusted(path, 0, e))
		return -1;
	/* It comes back as it was, or has. */
	if (!c->options->alive && fd_saved_in(c->job, path))
		return c->options->files_are_back ? check_name(c, x, path, e) : 0;
	return c->options->alive ? check_name(c, x, path, e) : check_file(c, x, path, e);
}

int fd_regular_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	int fd = fd_open_again(r, image_string(r->job, x->path), x, e);

	return fd_at_position(r, fd, x, e);
}

static const char *access_text(const struct image_description *x)
{
	switch (x->flags & O_ACCMODE) {
	case O_RDONLY:
		return "reading";
	case O_WRONLY:
		return "writing";
	default:
		return "reading and writing";
	}
}

void fd_regular_show(
	const struct image *job, const struct image_description *x, struct buf *out)
{
	buf_printf(out, "file %s, %s, at %" PRIu64 " of %" PRIu64 " bytes",
		image_string(job, x->path), access_text(x), x->position, x->size);
}

/* ---- without a name ---- */

bool fd_unlinked_match(const struct fd_dump *d, const struct fd_source *s)
{
	return S_ISREG(s->st.st_mode) && s->link[0] == '/';
}

/* It is written to, but not found under its name. */
static int refuse_lost_name(const struct fd_source *s, struct err *e)
{
	struct stat st;

	if (lstat(s->link, &st) && errno == EACCES)
		return err_set(e, 0,
			"user %u may not enter its directory, so a restart could not open it: "
			"choose a file that this user can reach%s",
			geteuid(),
			s->fd <= STDERR_FILENO ? ", or have its output pass through a pipe "
						 "(trecr-run COMMAND | cat >FILE)"
					       : "");
	if (fd_refuse_detached(s, e))
		return -1;
	return err_set(e, 0,
		"the file has a name that cannot be found, by which others see what is written "
		"to it");
}

int fd_unlinked_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	struct fd_object *o;
	struct statfs fs;

	if (fstatfs(s->dup, &fs))
		return err_set(e, errno, "cannot query its file system");
	if (fs.f_type == SECRETMEM_MAGIC || is_synthetic(s->dup))
		return fd_unsupported(d, s, e);
	/* A copy of what is only read does no harm. */
	if (s->st.st_nlink && (s->flags & O_ACCMODE) != O_RDONLY)
		return refuse_lost_name(s, e);
	x->size = s->st.st_size;
	x->object = fd_object_of(d, s, IMAGE_OBJECT_UNLINKED);
	o = fd_object_at(d, x->object);
	o->o.args[0] = s->st.st_nlink;
	o->o.args[1] = fd_source_owner(s);
	x->path = o->o.name;
	return 0;
}

int fd_unlinked_check(
	const struct fd_check *c, const struct image_description *x, struct err *e)
{
	const struct image_object *o =
		fd_object_info(c->job, x->object, IMAGE_OBJECT_UNLINKED, e);

	if (!o)
		return -1;
	if (o->args[0] && is_first_of_path(c, x))
		notice_printf(c->notice,
			"%s (descriptor %d) had another name that is not known; "
			"the program continues with a copy",
			image_string(c->job, x->path), c->fd);
	return 0;
}

int fd_unlinked_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	struct fd_made *made = fd_made_get(r, x->object, e);
	int fd = made ? fd_open_object(r, made->fd, x, e) : -1;

	return fd_at_position(r, fd, x, e);
}

void fd_unlinked_show(
	const struct image *job, const struct image_description *x, struct buf *out)
{
	buf_printf(out, "unlinked file %s, %s, at %" PRIu64 " of %" PRIu64 " bytes",
		image_string(job, x->path), access_text(x), x->position, x->size);
}
