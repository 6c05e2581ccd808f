/*
 * fd/inotify.c - inotify(7).
 *
 * The kernel tells a watch by the file's handle, not by its name. Who may open files by handle
 * (CAP_DAC_READ_SEARCH) gets the name from that; for others it is looked for where programs
 * have their watches mostly: among the files and directories that the tree has open or works
 * in, what is above them, and what is in them.
 *
 * Events that nobody has read yet cannot be put into a new queue. The program is told that
 * events were lost, as it would be by a queue that was full (IN_Q_OVERFLOW): it looks for
 * itself then.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "supervisor/fd/kinds.h"
#include "supervisor/fd/made.h"

#ifndef INOTIFY_IOC_SETNEXTWD
#define INOTIFY_IOC_SETNEXTWD _IOW('I', 0, int32_t)
#endif

#define EVENT_SIZE sizeof(struct inotify_event)

bool fd_inotify_match(const struct fd_dump *d, const struct fd_source *s)
{
	return !strcmp(s->link, "anon_inode:inotify");
}

/* ---- the name of what is watched ---- */

struct watched {
	int wd;
	uint32_t mask;
	uint64_t inode;
	unsigned device; /* as the kernel has it inside */
	unsigned handle_bytes;
	unsigned handle_type;
	const char *handle; /* in hexadecimal */
};

static bool is_it(const struct watched *w, const char *path)
{
	struct stat st;

	return !stat(path, &st) && st.st_ino == w->inode &&
	       st.st_dev == makedev(w->device >> 20, w->device & 0xfffff);
}

static bool fill_handle(const struct watched *w, struct file_handle *h)
{
	h->handle_bytes = w->handle_bytes;
	h->handle_type = w->handle_type;
	for (unsigned i = 0; i < w->handle_bytes; i++) {
		unsigned byte;

		if (sscanf(w->handle + 2 * i, "%2x", &byte) != 1)
			return false;
		h->f_handle[i] = byte;
	}
	return true;
}

/* By its handle, in the file system that is mounted at @mount. */
static char *find_by_handle(const struct watched *w, const char *mount)
{
	cleanup_free struct file_handle *h = xcalloc(1, sizeof(*h) + MAX_HANDLE_SZ);
	cleanup_fd int root = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_free char *link = NULL;
	cleanup_fd int fd = -1;
	char *path;

	if (root < 0 || w->handle_bytes > MAX_HANDLE_SZ || !fill_handle(w, h))
		return NULL;
	fd = open_by_handle_at(root, h, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	link = xasprintf("/proc/self/fd/%d", fd);
	path = read_link(link, NULL);
	if (path && is_it(w, path))
		return path;
	free(path);
	return NULL;
}

/* @path, what is above it, and what is in it. */
static char *find_near(const struct watched *w, const char *path)
{
	cleanup_free char *above = xstrdup(path);
	struct dirent *entry;
	char *found = NULL;
	DIR *dir;

	for (char *slash; (slash = strrchr(above, '/'));) {
		if (is_it(w, *above ? above : "/"))
			return xstrdup(*above ? above : "/");
		if (slash == above && !above[1])
			break;
		slash[slash == above] = 0;
	}
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir))) {
		cleanup_free char *inside = xasprintf("%s/%s", path, entry->d_name);

		if (entry->d_ino == w->inode && is_it(w, inside))
			found = steal_ptr(inside);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* In the working directory of @task, and where it has files open. */
static char *find_in_process(const struct watched *w, pid_t task)
{
	cleanup_free char *list = xasprintf("/proc/%d/fd", task);
	cleanup_free char *cwd = xasprintf("/proc/%d/cwd", task);
	cleanup_free char *home = read_link(cwd, NULL);
	char *found = home ? find_near(w, home) : NULL;
	DIR *dir = opendir(list);
	struct dirent *entry;

	while (dir && !found && (entry = readdir(dir))) {
		cleanup_free char *link = xasprintf("%s/%s", list, entry->d_name);
		cleanup_free char *path = read_link(link, NULL);
		char *slash = path ? strrchr(path, '/') : NULL;

		if (!slash || path[0] != '/')
			continue;
		found = find_near(w, path);
		if (slash > path && !found) {
			*slash = 0;
			found = find_near(w, path);
		}
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Of file systems that are mounted, the place: fields 3 and 5 of mountinfo (man
 * proc_pid_mountinfo). */
static char *find_by_mounts(const struct watched *w, pid_t task)
{
	cleanup_free char *file = xasprintf("/proc/%d/mountinfo", task);
	cleanup_free char *text = NULL;
	char *found = NULL;
	size_t len;

	if (read_file(file, &text, &len, NULL))
		return NULL;
	for (char *line = text, *end; !found && (end = strchr(line, '\n')); line = end + 1) {
		char mount[PATH_MAX];
		unsigned a, b;

		*end = 0;
		if (sscanf(line, "%*d %*d %u:%u %*s %4095s", &a, &b, mount) == 3 &&
			a == w->device >> 20 && b == (w->device & 0xfffff))
			found = find_by_handle(w, mount);
	}
	return found;
}

/* ---- saving ---- */

static int dump_watch(
	const struct fd_source *s, const struct watched *w, struct buf *out, struct err *e)
{
	cleanup_free char *path = find_by_mounts(w, s->task);

	if (!path)
		path = find_in_process(w, s->task);
	if (!path || strchr(path, '\n'))
		return err_set(e, 0,
			"cannot tell what its watch %d is on (inode %" PRIu64
			"; CAP_DAC_READ_SEARCH would help, unless the file has been removed)",
			w->wd, w->inode);
	buf_printf(out, "%d %" PRIx32 " %s\n", w->wd, w->mask, path);
	return 0;
}

/* "inotify wd:2 ino:7ef82a sdev:800001 mask:800afff ignored_mask:0 fhandle-bytes:8
 * fhandle-type:1 f_handle:2af87e00220ffd73" (Documentation/filesystems/proc.rst) */
static int read_watch(const char *line, struct watched *w, struct err *e)
{
	const char *handle = strstr(line, "f_handle:");

	*w = (struct watched){.handle = handle ? handle + 9 : NULL};
	if (sscanf(line, "inotify wd:%x ino:%" SCNx64 " sdev:%x mask:%" SCNx32, &w->wd,
		    &w->inode, &w->device, &w->mask) != 4)
		return err_set(e, 0, "cannot understand what it watches");
	line = strstr(line, "fhandle-bytes:");
	if (!handle || !line ||
		sscanf(line, "fhandle-bytes:%x fhandle-type:%x", &w->handle_bytes,
			&w->handle_type) != 2)
		w->handle_bytes = 0;
	return 0;
}

static int compare_numbers(const void *a, const void *b)
{
	const struct watched *x = a, *y = b;

	return (x->wd > y->wd) - (x->wd < y->wd);
}

int fd_inotify_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	cleanup_buf struct buf out = {0}, watches = {0};
	int pending = 0;
	size_t count;

	for (char *line = strstr(s->info, "inotify "); line;
		line = strstr(line + 1, "inotify "))
		if (read_watch(line, buf_grow(&watches, sizeof(struct watched)), e))
			return -1;
	count = buf_count(&watches, struct watched);
	if (count)
		qsort(watches.data, count, sizeof(struct watched), compare_numbers);
	for (size_t i = 0; i < count; i++)
		if (dump_watch(s, buf_at(&watches, struct watched, i), &out, e))
			return -1;
	buf_add(&out, "", 1);
	x->args[0] = image_writer_string(d->job, out.data);
	if (ioctl(s->dup, FIONREAD, &pending))
		return err_set(e, errno, "cannot ask whether there are events in it");
	x->args[1] = pending;
	return 0;
}

/* ---- restart ---- */

/* Call @each for every line of @text. */
static int each_watch(const char *text,
	int (*each)(void *context, int wd, uint32_t mask, const char *path, struct err *e),
	void *context, struct err *e)
{
	for (const char *p = text, *end; *p; p = end + 1) {
		char path[PATH_MAX];
		uint32_t mask;
		int wd, n = 0;

		end = strchr(p, '\n');
		if (!end || sscanf(p, "%d %" SCNx32 " %n", &wd, &mask, &n) != 2 ||
			end - p - n >= PATH_MAX || end - p <= n)
			return err_set(e, 0, "the image is damaged: inotify watches");
		snprintf(path, sizeof(path), "%.*s", (int)(end - p - n), p + n);
		if (each(context, wd, mask, path, e))
			return -1;
	}
	return 0;
}

static int check_path(void *context, int wd, uint32_t mask, const char *path, struct err *e)
{
	return access(path, F_OK) ? err_set(e, errno, "cannot watch %s", path) : 0;
}

int fd_inotify_check(const struct fd_check *c, const struct image_description *x, struct err *e)
{
	return each_watch(image_string(c->job, x->args[0]), check_path, NULL, e);
}

/* Numbers only go up: where the next cannot be chosen (Linux 4.18), watches are made and
 * removed until it has been reached. */
static int add_watch(void *context, int wd, uint32_t mask, const char *path, struct err *e)
{
	int fd = *(int *)context, got;
	char events[4096];

	(void)ioctl(fd, INOTIFY_IOC_SETNEXTWD, wd);
	while ((got = inotify_add_watch(fd, path, mask)) < wd) {
		if (got < 0)
			return err_set(e, errno, "cannot watch %s", path);
		/* That makes an event. */
		if (inotify_rm_watch(fd, got) || read(fd, events, sizeof(events)) < 0)
			return err_set(e, errno, "cannot watch %s", path);
	}
	return got == wd ? 0 : err_set(e, 0, "watch number %d cannot be had again", wd);
}

static uint64_t queue_limit(void)
{
	cleanup_free char *text = NULL;
	size_t len;

	if (read_file("/proc/sys/fs/inotify/max_queued_events", &text, &len, NULL))
		return 16384;
	return strtoull(text, NULL, 10);
}

/* Fill the queue with what nobody shall see, and read all of it but the event at its end that
 * says that it was full. Equal events in a row would be one. */
static int overflow(int fd, struct err *e)
{
	uint64_t limit = queue_limit();
	size_t room = (limit + 2) * EVENT_SIZE;
	cleanup_free char *events = xmalloc(room);
	char path[] = "/tmp/trecr-XXXXXX";
	cleanup_fd int file = mkostemp(path, O_CLOEXEC);
	int wd, left = 0, failed = 0;

	if (file < 0)
		return err_set(e, errno, "cannot make a file in /tmp");
	wd = inotify_add_watch(fd, path, IN_ATTRIB | IN_MODIFY);
	(void)unlink(path);
	for (uint64_t i = 0; i <= limit && wd >= 0 && !failed; i++)
		failed = i % 2 ? fchmod(file, 0600) : ftruncate(file, i % 4);
	/* There is no room for the event that this would make. */
	if (wd < 0 || failed || inotify_rm_watch(fd, wd))
		return err_set(e, errno, "cannot fill an inotify queue");
	while (!ioctl(fd, FIONREAD, &left) && left > (int)EVENT_SIZE && left <= (int)room)
		if (read(fd, events, left - EVENT_SIZE) <= 0)
			break;
	if (left != (int)EVENT_SIZE)
		return err_set(e, 0, "cannot tell the program that inotify events were lost");
	return 0;
}

int fd_inotify_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	cleanup_fd int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	if (fd < 0)
		return err_set(e, errno, "cannot make an inotify descriptor");
	if (x->args[1] && overflow(fd, e))
		return -1;
	if (each_watch(image_string(r->job, x->args[0]), add_watch, &fd, e))
		return -1;
	return fd_lift(r, steal_fd(&fd), e);
}

void fd_inotify_show(
	const struct image *job, const struct image_description *x, struct buf *out)
{
	size_t count = 0;

	for (const char *p = image_string(job, x->args[0]); (p = strchr(p, '\n')); p++)
		count++;
	buf_printf(out, "inotify, %zu watches%s", count, x->args[1] ? ", events in it" : "");
}
