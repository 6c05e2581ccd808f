/*
 * fd/inotify.c - inotify(7).
 *
 * Events that nobody has read yet cannot be put into a new queue. The program is told that
 * events were lost, as it would be by a queue that was full (IN_Q_OVERFLOW): it looks for
 * itself then.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "lib/limits.h"
#include "supervisor/fd/handle.h"
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

/* ---- saving ---- */

struct watched {
	int wd;
	uint32_t mask;
	struct fd_handle file;
};

static int dump_watch(
	const struct fd_source *s, const struct watched *w, struct buf *out, struct err *e)
{
	cleanup_free char *path = fd_handle_find(&w->file, s->task);

	if (!path || strchr(path, '\n'))
		return err_set(e, 0,
			"cannot tell what its watch %d is on (inode %" PRIu64
			"; CAP_DAC_READ_SEARCH would help, unless the file has been removed)",
			w->wd, w->file.inode);
	buf_printf(out, "%d %" PRIx32 " %s\n", w->wd, w->mask, path);
	return 0;
}

/* "inotify wd:2 ino:7ef82a sdev:800001 mask:800afff ignored_mask:0 ..." */
static int read_watch(const char *line, struct watched *w, struct err *e)
{
	if (fd_handle_read(line, &w->file) ||
		sscanf(line, "inotify wd:%x ino:%*x sdev:%*x mask:%" SCNx32, &w->wd,
			&w->mask) != 2)
		return err_set(e, 0, "cannot understand what it watches");
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
	cleanup_fd int file = fd_made_nameless(temporary_directory());
	cleanup_free char *path = xasprintf("/proc/self/fd/%d", file);
	int wd, left = 0, failed = 0;

	if (file < 0)
		return err_set(e, errno, "cannot make a file in %s", temporary_directory());
	wd = inotify_add_watch(fd, path, IN_ATTRIB | IN_MODIFY);
	for (uint64_t i = 0; i <= limit && wd >= 0 && !failed; i++)
		failed = i % 2 ? fchmod(file, 0600) : ftruncate(file, i % 4);
	/* There is no room for the event that this would make. */
	if (wd < 0 || failed || inotify_rm_watch(fd, wd))
		return limit_err(
			e, errno, SYS_inotify_add_watch, "cannot fill an inotify queue");
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
		return limit_err(
			e, errno, SYS_inotify_init1, "cannot make an inotify descriptor");
	if (x->args[1] && overflow(fd, e))
		return -1;
	if (each_watch(image_string(r->job, x->args[0]), add_watch, &fd, e))
		return -1;
	return fd_lift(r, steal_fd(&fd), e);
}

/* Removing a watch makes an event; its number is then the next again. */
int fd_inotify_provoke(
	struct fd_restore *r, const struct image_description *x, int fd, int64_t *state)
{
	cleanup_fd int file = fd_made_nameless(temporary_directory());
	cleanup_free char *path = xasprintf("/proc/self/fd/%d", file);

	if (file < 0)
		return -1;
	*state = inotify_add_watch(fd, path, IN_MODIFY);
	if (*state < 0 || inotify_rm_watch(fd, *state))
		return -1;
	(void)ioctl(fd, INOTIFY_IOC_SETNEXTWD, (int)*state);
	return 0;
}

int fd_inotify_calm(
	struct fd_restore *r, const struct image_description *x, int fd, int64_t state)
{
	char event[EVENT_SIZE];

	return read(fd, event, sizeof(event)) == (ssize_t)sizeof(event) ? 0 : -1;
}

void fd_inotify_show(
	const struct image *job, const struct image_description *x, struct buf *out)
{
	size_t count = 0;

	for (const char *p = image_string(job, x->args[0]); (p = strchr(p, '\n')); p++)
		count++;
	buf_printf(out, "inotify, %zu watches%s", count, x->args[1] ? ", events in it" : "");
}
