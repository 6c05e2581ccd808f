/*
 * fd_kinds/fanotify.c - fanotify(7): what a group reports about, and how.
 *
 * Events that nobody has read hold files open, and cannot be put into a new queue: the program
 * is given a moment to read them. Groups that are asked for permissions are refused: the
 * processes that wait for the answer cannot be stopped.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "lib/limits.h"
#include "lib/procfs.h"
#include "supervisor/fd/trusted_path.h"
#include "supervisor/fd_kinds/fd_kinds.h"
#include "supervisor/fd_kinds/watch_handle.h"

/* <linux/fanotify.h> of kernels 5.19 and 6.0 */
#ifndef FAN_MARK_EVICTABLE
#define FAN_MARK_EVICTABLE 0x200
#endif
#ifndef FAN_MARK_IGNORE
#define FAN_MARK_IGNORE 0x400
#endif

#define CLASSES (FAN_CLASS_CONTENT | FAN_CLASS_PRE_CONTENT)

/* A mark: on a file, a mount, or a file system. */
struct mark {
	unsigned where; /* 0, FAN_MARK_MOUNT, FAN_MARK_FILESYSTEM */
	unsigned flags; /* FAN_MARK_EVICTABLE and the like */
	uint64_t mask, ignored;
};

bool fd_fanotify_match(const struct fd_dump *d, const struct fd_source *s)
{
	return !strcmp(s->link, "anon_inode:[fanotify]");
}

/* ---- saving ---- */

/* Whether the root directory is in it. In a chroot, mountinfo does not say so. */
static bool is_root_in(int id, unsigned device)
{
	struct statx root;

	if (statx(AT_FDCWD, "/", 0, STATX_MNT_ID, &root))
		return false;
	return id < 0 ? root.stx_dev_major == device >> 20 &&
				root.stx_dev_minor == (device & 0xfffff)
		      : root.stx_mask & STATX_MNT_ID && root.stx_mnt_id == (unsigned)id;
}

/* The mount point with number @id, or, with @id -1, one of file system @device: fields 1, 3 and
 * 5 of mountinfo (man proc_pid_mountinfo). */
static char *find_mount(pid_t task, int id, unsigned device)
{
	cleanup_free char *file = xasprintf("/proc/%d/mountinfo", task);
	cleanup_free char *text = NULL;
	size_t len;

	if (read_file(file, &text, &len, NULL))
		return NULL;
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
		char mount[PATH_MAX];
		unsigned a, b;
		int number;

		if (sscanf(line, "%d %*d %u:%u %*s %4095s", &number, &a, &b, mount) == 4 &&
			(id < 0 ? a == device >> 20 && b == (device & 0xfffff) : number == id))
			return xstrdup(mount);
		if (!strchr(line, '\n'))
			break;
	}
	return is_root_in(id, device) ? xstrdup("/") : NULL;
}

/* What follows "fanotify ": "mnt_id:1b ...", "ino:3c51a sdev:fe00000 ..." or "sdev:fe00000
 * ...", and then "mflags:0 mask:20 ignored_mask:0". */
static char *find_marked(const struct fd_source *s, const char *line, struct mark *m)
{
	struct watch_handle file;
	unsigned device, id;

	if (sscanf(line, "mnt_id:%x", &id) == 1) {
		m->where = FAN_MARK_MOUNT;
		return find_mount(s->task, id, 0);
	}
	if (sscanf(line, "sdev:%x", &device) == 1) {
		m->where = FAN_MARK_FILESYSTEM;
		return find_mount(s->task, -1, device);
	}
	m->where = 0;
	return watch_handle_read(line, &file) ? NULL : watch_path_find(&file, s->task);
}

static int dump_mark(
	const struct fd_source *s, const char *line, struct buf *out, struct err *e)
{
	const char *flags = strstr(line, "mflags:");
	cleanup_free char *path = NULL;
	struct mark m;

	if (!flags || sscanf(flags, "mflags:%x mask:%" SCNx64 " ignored_mask:%" SCNx64,
			      &m.flags, &m.mask, &m.ignored) != 3)
		return err_set(e, 0, "cannot parse its watches in /proc/PID/fdinfo");
	path = find_marked(s, line, &m);
	if (!path || strchr(path, '\n') || strchr(path, '\\'))
		return err_set(e, 0,
			"cannot tell what it watches (%.*s; CAP_DAC_READ_SEARCH would help, "
			"unless the file has been removed)",
			(int)strcspn(line, "\n"), line);
	buf_printf(out, "%x %x %" PRIx64 " %" PRIx64 " %s\n", m.where, m.flags, m.mask,
		m.ignored, path);
	return 0;
}

static int dump_marks(const struct fd_source *s, struct buf *out, struct err *e)
{
	for (const char *p = strstr(s->info, "fanotify "); p; p = strstr(p + 1, "fanotify "))
		if (strncmp(p + 9, "flags:", 6) && dump_mark(s, p + 9, out, e))
			return -1;
	buf_add(out, "", 1);
	return 0;
}

int fd_fanotify_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	const char *group = strstr(s->info, "fanotify flags:");
	cleanup_buf struct buf marks = {0};
	unsigned flags, event_flags;
	int pending = 0;

	if (!group ||
		sscanf(group, "fanotify flags:%x event-flags:%x", &flags, &event_flags) != 2)
		return err_set(e, 0, "cannot parse its entry in /proc/PID/fdinfo");
	if (flags & CLASSES)
		return err_set(e, 0, "fanotify groups for permission events are not supported");
	if (ioctl(s->dup, FIONREAD, &pending))
		return err_set(e, errno, "cannot query whether there are events in it");
	if (pending)
		return err_with(e, ERR_TRY_AGAIN,
			"it holds events that have not been read, and nothing could put them "
			"back: it can be saved when the program has read them");
	if (dump_marks(s, &marks, e))
		return -1;
	x->args[0] = image_writer_string(d->job, marks.data);
	x->args[1] = flags;
	x->args[2] = event_flags;
	return 0;
}

/* ---- restart ---- */

/* Call @each for every line of @text, the last one first: the kernel shows the newest mark
 * first.
 */
static int each_mark(const char *text,
	int (*each)(int fd, const struct mark *m, const char *path, struct err *e), int fd,
	struct err *e)
{
	for (const char *p, *end = text + strlen(text); end-- > text; end = p) {
		char path[PATH_MAX];
		struct mark m;
		int n = 0;

		for (p = end; p > text && p[-1] != '\n'; p--)
			;
		if (*end != '\n' ||
			sscanf(p, "%x %x %" SCNx64 " %" SCNx64 " %n", &m.where, &m.flags,
				&m.mask, &m.ignored, &n) != 4 ||
			end - p - n >= PATH_MAX || end - p <= n)
			return err_set(e, 0, "the image is damaged: fanotify marks");
		snprintf(path, sizeof(path), "%.*s", (int)(end - p - n), p + n);
		if (each(fd, &m, path, e))
			return -1;
	}
	return 0;
}

static int check_path(int fd, const struct mark *m, const char *path, struct err *e)
{
	if (fd_check_trusted(path, 0, e))
		return -1;
	return access(path, F_OK) ? err_set(e, errno, "cannot watch %s", path) : 0;
}

int fd_fanotify_check(
	const struct fd_check *c, const struct image_description *x, struct err *e)
{
	return each_mark(image_string(c->job, x->args[0]), check_path, -1, e);
}

static int add_mark(int fd, const struct mark *m, const char *path, struct err *e)
{
	unsigned flags = FAN_MARK_ADD | m->where | (m->flags & FAN_MARK_EVICTABLE);
	/* The newer kind of ignoring says of what, too; the older one leaves that out. */
	unsigned ignore = m->flags & FAN_MARK_IGNORE ? FAN_MARK_IGNORE : FAN_MARK_IGNORED_MASK;
	uint64_t ignored = m->flags & FAN_MARK_IGNORE
				   ? m->ignored
				   : m->ignored & ~(uint64_t)(FAN_ONDIR | FAN_EVENT_ON_CHILD);
	cleanup_fd int at = fd_open_trusted(path, O_PATH | O_CLOEXEC);
	cleanup_free char *link = xasprintf("/proc/self/fd/%d", at);

	if (at < 0 || (m->mask && fanotify_mark(fd, flags, m->mask, AT_FDCWD, link)) ||
		(ignored && fanotify_mark(fd,
				    flags | ignore | (m->flags & FAN_MARK_IGNORED_SURV_MODIFY),
				    ignored, AT_FDCWD, link)))
		return err_set(e, errno, "cannot watch %s (fanotify)", path);
	return 0;
}

int fd_fanotify_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	/* With all of its flags, as they show; close-on-exec of descriptors is another thing.
	 */
	cleanup_fd int fd = fanotify_init(x->args[1], x->args[2]);

	if (fd < 0)
		return limit_err(
			e, errno, SYS_fanotify_init, "cannot create a fanotify descriptor");
	if (each_mark(image_string(r->job, x->args[0]), add_mark, fd, e))
		return -1;
	return fd_lift(r, steal_fd(&fd), e);
}

void fd_fanotify_show(
	const struct image *job, const struct image_description *x, struct buf *out)
{
	size_t count = 0;

	for (const char *p = image_string(job, x->args[0]); (p = strchr(p, '\n')); p++)
		count++;
	buf_printf(out, "fanotify, %zu marks", count);
}
