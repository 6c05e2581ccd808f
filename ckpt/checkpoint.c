/*
 * checkpoint.c - opens all files of a checkpoint at once (struct checkpoint, store.h), finds
 * the checkpoint that a path means, answers who owns what processes share, and reads a checkpoint
 * back from the disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "ckpt/checkpoint_check.h"
#include "ckpt/members.h"
#include "ckpt/store.h"
#include "ckpt/store_dir.h"
#include "ckpt/trust.h"
#include "lib/util.h"

/* Whether the directory is a checkpoint, rather than a directory of checkpoints. */
static bool is_checkpoint(int fd)
{
	return faccessat(fd, IMAGE_JOB_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	       members_present(fd);
}

/* The checkpoint's absolute path: @path or what `latest` in it names. */
static char *find_checkpoint(const char *path, struct err *e)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_free char *latest = NULL;
	char *full;

	if (fd < 0) {
		err_set(e, errno, "cannot open checkpoint %s", path);
		return NULL;
	}
	if (!is_checkpoint(fd)) {
		if (faccessat(fd, STORE_LATEST, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
			err_set(e, 0,
				"%s is neither a checkpoint nor a directory of checkpoints",
				path);
			return NULL;
		}
		latest = xasprintf("%s/" STORE_LATEST, path);
	}
	full = realpath(latest ? latest : path, NULL);
	if (!full)
		err_set(e, errno, "cannot open checkpoint %s", latest ? latest : path);
	return full;
}

int checkpoint_members(const char *path, char **whole, struct members *m, struct err *e)
{
	cleanup_free char *found = find_checkpoint(path, e);
	cleanup_fd int fd = found ? open(found, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (!found)
		return -1;
	if (fd < 0)
		return err_set(e, errno, "cannot open %s", found);
	if (!members_present(fd))
		return 0;
	if (trust_check(fd, found, e) || members_read(fd, m, found, e))
		return -1;
	*whole = steal_ptr(found);
	return 1;
}

static int refuse_members(const struct checkpoint *c, struct err *e)
{
	struct members m;
	size_t count;

	if (members_read(c->dirfd, &m, c->path, e))
		return -1;
	count = m.count;
	members_free(&m);
	return err_set(e, 0,
		"%s holds a job of %zu ranks; name the checkpoint of one of them in "
		"it: " STORE_PART "0 to " STORE_PART "%zu",
		c->path, count, count - 1);
}

/* A member's chain leads into other checkpoints of the job, beside its own. */
static int leave_job(struct checkpoint *c, struct err *e)
{
	cleanup_fd int fd = -1;

	if (!members_present(c->parentfd))
		return 0;
	fd = openat(c->parentfd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, errno, "cannot open %s/..", c->parent);
	if (trust_check(c->parentfd, c->parent, e) < 0 ||
		trust_check_parent(fd, c->parent, e) < 0)
		return -1;
	close(c->parentfd);
	c->parentfd = steal_fd(&fd);
	return 0;
}

static int open_dirs(struct checkpoint *c, struct err *e)
{
	char *slash = strrchr(c->path, '/');

	c->name = xstrdup(slash + 1);
	c->parent = slash == c->path ? xstrdup("/") : strndup(c->path, slash - c->path);
	c->dirfd = open(c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->dirfd < 0)
		return err_set(e, errno, "cannot open %s", c->path);
	c->parentfd = open(c->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->parentfd < 0)
		return err_set(e, errno, "cannot open %s", c->parent);
	if (trust_check_parent(c->parentfd, c->parent, e) < 0 ||
		trust_check(c->dirfd, c->path, e) < 0)
		return -1;
	return members_present(c->dirfd) ? refuse_members(c, e) : leave_job(c, e);
}

static struct image *open_file(
	struct checkpoint *c, const char *name, enum image_file_kind kind, struct err *e)
{
	cleanup_free char *path = xasprintf("%s/%s", c->path, name);
	struct image *img = image_open(c->dirfd, name, path, kind, e);

	if (!img)
		return NULL;
	if (c->job && memcmp(img->super.checkpoint_id, c->job->super.checkpoint_id,
			      sizeof(img->super.checkpoint_id))) {
		err_set(e, 0, "cannot read image %s: it belongs to another checkpoint", path);
		image_close(img);
		return NULL;
	}
	if (image_open_chain(img, c->dirfd, c->parentfd, name, e) < 0) {
		image_close(img);
		return NULL;
	}
	return img;
}

static int open_job(struct checkpoint *c, struct err *e)
{
	size_t count;

	c->job = open_file(c, IMAGE_JOB_FILE, IMAGE_FILE_JOB, e);
	if (!c->job || checkpoint_check_job(c->job, e) < 0)
		return -1;
	c->info = image_note_array(c->job, IMAGE_NOTE_JOB, struct image_job, &count);
	return 0;
}

static int open_processes(struct checkpoint *c, struct err *e)
{
	const struct image_job_process *list;
	size_t count;

	list = image_note_array(c->job, IMAGE_NOTE_PROCESSES, struct image_job_process, &count);
	c->processes = xcalloc(count, sizeof(*c->processes));
	for (size_t i = 0; i < count && !(list[i].flags & IMAGE_JOB_PROCESS_ZOMBIE); i++) {
		char name[16];

		snprintf(name, sizeof(name), "%d", list[i].pid);
		c->processes[i] = open_file(c, name, IMAGE_FILE_PROCESS, e);
		if (!c->processes[i])
			return -1;
		c->process_count++;
		if (checkpoint_check_process(c->processes[i], c->job, list[i].pid, e) < 0)
			return -1;
	}
	return 0;
}

int checkpoint_maker(const char *path, struct image_maker *m, struct err *e)
{
	struct checkpoint *c = xcalloc(1, sizeof(*c));
	cleanup_fd int fd = -1;
	int r = -1;

	c->dirfd = c->parentfd = -1;
	c->path = find_checkpoint(path, e);
	if (c->path && !open_dirs(c, e)) {
		fd = openat(c->dirfd, IMAGE_JOB_FILE,
			O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd < 0)
			err_set(e, errno, "cannot open image %s/" IMAGE_JOB_FILE, c->path);
		else if (!trust_check(fd, c->path, e))
			r = image_read_maker(fd, m)
				    ? err_set(e, 0,
					      "%s does not say which release of trecr wrote it",
					      c->path)
				    : 0;
	}
	checkpoint_close(c);
	return r;
}

struct checkpoint *checkpoint_open(const char *path, struct err *e)
{
	struct checkpoint *c = xcalloc(1, sizeof(*c));

	c->dirfd = c->parentfd = -1;
	c->path = find_checkpoint(path, e);
	if (!c->path || open_dirs(c, e) < 0 || open_job(c, e) < 0 || open_processes(c, e) < 0) {
		checkpoint_close(c);
		return NULL;
	}
	return c;
}

static void add_descriptors(const struct image *img, struct buf *fds)
{
	buf_push(fds, int, &img->fd);
	for (size_t i = 0; i < img->source_count; i++)
		buf_push(fds, int, &img->sources[i].fd);
}

void checkpoint_descriptors(const struct checkpoint *c, struct buf *fds)
{
	buf_push(fds, int, &c->dirfd);
	buf_push(fds, int, &c->parentfd);
	add_descriptors(c->job, fds);
	for (size_t i = 0; i < c->process_count; i++)
		add_descriptors(c->processes[i], fds);
}

void checkpoint_close(struct checkpoint *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->process_count; i++)
		image_close(c->processes[i]);
	free(c->processes);
	image_close(c->job);
	if (c->dirfd >= 0)
		close(c->dirfd);
	if (c->parentfd >= 0)
		close(c->parentfd);
	free(c->path);
	free(c->parent);
	free(c->name);
	free(c);
}

size_t checkpoint_owner(const struct checkpoint *c, size_t process, enum image_shared what)
{
	const struct image_sharing *s;
	size_t count;

	s = image_note_array(c->job, IMAGE_NOTE_SHARING, struct image_sharing, &count);
	return process < count ? s[process].with[what] : process;
}

static bool can_be_opened(const char *path)
{
	struct checkpoint *c = checkpoint_open(path, NULL);
	bool can = c && !checkpoint_need_hashes(c, NULL);

	checkpoint_close(c);
	return can;
}

char *checkpoint_older(const char *path)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_free char *latest = fd < 0 ? NULL : find_checkpoint(path, NULL);
	struct store_entries all = {0};
	char *found = NULL;
	size_t before;

	if (fd < 0 || is_checkpoint(fd) || store_dir_list(fd, path, &all, NULL))
		return NULL;
	before = all.count;
	for (size_t i = 0; latest && i < all.count; i++)
		if (!strcmp(all.entries[i].name, strrchr(latest, '/') + 1))
			before = i;
	while (!found && before-- > 0) {
		found = xasprintf("%s/%s", path, all.entries[before].name);
		if (!can_be_opened(found)) {
			free(found);
			found = NULL;
		}
	}
	store_entries_free(&all);
	return found;
}

int checkpoint_need_hashes(const struct checkpoint *c, struct err *e)
{
	if (image_need_hashes(c->job, e) < 0)
		return -1;
	for (size_t i = 0; i < c->process_count; i++)
		if (image_need_hashes(c->processes[i], e) < 0)
			return -1;
	return 0;
}

int checkpoint_verify(const struct checkpoint *c, struct err *e)
{
	if (image_check_all(c->job, e) < 0)
		return -1;
	for (size_t i = 0; i < c->process_count; i++)
		if (image_check_all(c->processes[i], e) < 0)
			return -1;
	return 0;
}

/* What is on the disk already is forgotten, and read again. */
static void forget_pages(const struct image *img)
{
	(void)posix_fadvise(img->fd, 0, 0, POSIX_FADV_DONTNEED);
	for (size_t i = 1; i < img->source_count; i++)
		if (img->sources[i].fd >= 0)
			(void)posix_fadvise(img->sources[i].fd, 0, 0, POSIX_FADV_DONTNEED);
}

int checkpoint_read_back(const struct checkpoint *c, struct err *e)
{
	forget_pages(c->job);
	for (size_t i = 0; i < c->process_count; i++)
		forget_pages(c->processes[i]);
	return checkpoint_verify(c, e);
}
