/*
 * module.c - how a file is identified, a cache of that, and the check whether a file is still
 * the same.
 */
#include "supervisor/target/module.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/hash.h"
#include "lib/build_id.h"
#include "lib/util.h"

struct module_cache {
	struct buf known; /* struct image_module */
};

struct module_cache *module_cache_new(void)
{
	return xcalloc(1, sizeof(struct module_cache));
}

static void read_stat(const struct stat *st, struct image_module *m)
{
	m->size = st->st_size;
	m->dev = st->st_dev;
	m->inode = st->st_ino;
	m->mtime_ns = st->st_mtim.tv_sec * 1000000000ull + st->st_mtim.tv_nsec;
}

static bool same_stat(const struct image_module *a, const struct image_module *b)
{
	return a->dev == b->dev && a->inode == b->inode && a->size == b->size &&
	       a->mtime_ns == b->mtime_ns;
}

static int identify_fd(int fd, const char *path, struct image_module *m, struct err *e)
{
	m->build_id_size = build_id_read(fd, m->build_id, sizeof(m->build_id));
	if (m->build_id_size)
		return 0;
	if (hash128_file(fd, m->hash))
		return err_set(e, errno, "cannot read the mapped file %s", path);
	m->flags |= IMAGE_MODULE_HASHED;
	return 0;
}

int module_identify(struct module_cache *c, const char *path, uint64_t inode,
	struct image_module *m, struct err *e)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	memset(m, 0, sizeof(*m));
	/* The device is no test: on file systems with subvolumes maps and stat show two. */
	if (fd < 0 || fstat(fd, &st) || st.st_ino != inode || !S_ISREG(st.st_mode)) {
		m->flags = IMAGE_MODULE_DELETED;
		return 0;
	}
	read_stat(&st, m);
	for (size_t i = 0; i < buf_count(&c->known, struct image_module); i++) {
		struct image_module *known = buf_at(&c->known, struct image_module, i);

		if (same_stat(known, m)) {
			*m = *known;
			return 0;
		}
	}
	if (identify_fd(fd, path, m, e))
		return -1;
	buf_push(&c->known, struct image_module, m);
	return 0;
}

static int refuse_kind(const char *path, struct err *e)
{
	return err_set(
		e, 0, "%s, which the program has mapped, is no longer a regular file", path);
}

/* O_NONBLOCK: a FIFO under a file's old name would make us wait. */
static int open_mapped(const char *path, struct stat *st, struct err *e)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || fstat(fd, st))
		return err_set(e, errno, "cannot open %s, which the program has mapped", path);
	if (!S_ISREG(st->st_mode))
		return refuse_kind(path, e);
	return steal_fd(&fd);
}

int module_look(const char *path, struct image_module *m, struct err *e)
{
	struct stat st;

	if (stat(path, &st))
		return err_set(e, errno, "cannot examine the mapped file %s", path);
	read_stat(&st, m);
	return 0;
}

/* Of a file of ours the mode does not count (fd/reopen_despite_mode.h). */
static int check_access(const char *path, const struct stat *st, bool writable, struct err *e)
{
	if (st->st_uid == geteuid())
		return 0;
	if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS))
		return err_set(e, errno, "cannot open %s, which the program has mapped", path);
	if (writable && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS))
		return err_set(e, errno, "cannot write to %s, a shared mapping", path);
	return 0;
}

int module_check_shared(const struct image_module *m, const char *path, bool writable,
	bool *changed, struct err *e)
{
	struct image_module now = {0};
	struct stat st;

	if (stat(path, &st))
		return err_set(e, errno, "cannot open %s, which the program has mapped", path);
	if (!S_ISREG(st.st_mode))
		return refuse_kind(path, e);
	if (check_access(path, &st, writable, e))
		return -1;
	read_stat(&st, &now);
	if (now.size < m->size)
		return err_set(e, 0,
			"cannot continue with %s, a shared mapping: it is shorter than at the "
			"checkpoint: put back the file as it was",
			path);
	*changed = now.size != m->size || (writable && now.mtime_ns != m->mtime_ns);
	return 0;
}

int module_check(const struct image_module *m, const char *path, struct err *e)
{
	struct image_module now = {0};
	struct stat st;
	cleanup_fd int fd = open_mapped(path, &st, e);

	if (fd < 0)
		return -1;
	read_stat(&st, &now);
	if (same_stat(&now, m))
		return 0;
	if (identify_fd(fd, path, &now, e))
		return -1;
	if (now.build_id_size != m->build_id_size ||
		memcmp(now.build_id, m->build_id, m->build_id_size))
		return err_set(e, 0,
			"%s has changed since the checkpoint (another build-id); a --portable "
			"image would carry it",
			path);
	if (!m->build_id_size && memcmp(now.hash, m->hash, sizeof(m->hash)))
		return err_set(
			e, 0, "%s has changed since the checkpoint (other contents)", path);
	return 0;
}
