/*
 * fd_kinds/inotify.c - inotify(7).
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

#include "lib/limits.h"
#include "supervisor/fd_kinds/watch_handle.h"
#include "supervisor/fd_kinds/inotify_events.h"
#include "supervisor/fd/trusted_path.h"
#include "supervisor/fd_kinds/fd_kinds.h"
#include "supervisor/fd/objects_restore.h"
#include "supervisor/fd/objects_dump.h"

#define EVENT_SIZE sizeof(struct inotify_event)

bool fd_inotify_match(const struct fd_dump *d, const struct fd_source *s)
{
	return !strcmp(s->link, "anon_inode:inotify");
}

/* ---- saving ---- */

struct watched {
	int wd;
	uint32_t mask;
	struct watch_handle file;
};

static int dump_watch(const struct watched *w, const char *path, struct buf *out, struct err *e)
{
	struct stat st;
	bool link;

	if (!path || strchr(path, '\n'))
		return err_set(e, 0,
			"the file of its watch %d (inode %" PRIu64
			") was not found by name, nor among the open files: it may have been "
			"removed, or be where only CAP_DAC_READ_SEARCH finds it quickly (run "
			"trecr as root)",
			w->wd, w->file.inode);
	link = path[0] == '/' && !lstat(path, &st) && S_ISLNK(st.st_mode);
	buf_printf(
		out, "%d %" PRIx32 " %s\n", w->wd, w->mask | (link ? IN_DONT_FOLLOW : 0), path);
	return 0;
}

/* "inotify wd:2 ino:7ef82a sdev:800001 mask:800afff ignored_mask:0 ..." */
static int read_watch(const char *line, struct watched *w, struct err *e)
{
	if (watch_handle_read(line, &w->file) ||
		sscanf(line, "inotify wd:%x ino:%*x sdev:%*x mask:%" SCNx32, &w->wd,
			&w->mask) != 2)
		return err_set(e, 0, "cannot parse its watches in /proc/PID/fdinfo");
	return 0;
}

static int compare_numbers(const void *a, const void *b)
{
	const struct watched *x = a, *y = b;

	return (x->wd > y->wd) - (x->wd < y->wd);
}

/* Removed files that process @task has open: struct stat. */
static void list_removed(pid_t task, struct buf *out)
{
	cleanup_free char *list = xasprintf("/proc/%d/fd", task);
	DIR *dir = opendir(list);
	struct dirent *entry;
	struct stat st;

	while (dir && (entry = readdir(dir)))
		if (!fstatat(dirfd(dir), entry->d_name, &st, 0) && !st.st_nlink)
			buf_push(out, struct stat, &st);
	if (dir)
		closedir(dir);
}

/* "open DEVICE:INODE", by which the restart knows it among the open files; NULL: it is none of
 * @removed. */
static char *find_removed(const struct watch_handle *h, const struct buf *removed)
{
	for (size_t i = 0; i < buf_count(removed, struct stat); i++) {
		const struct stat *st = buf_at(removed, struct stat, i);

		if (st->st_ino == h->inode && st->st_dev == watch_handle_device(h))
			return xasprintf("open %" PRIx64 ":%" PRIx64, (uint64_t)st->st_dev,
				(uint64_t)st->st_ino);
	}
	return NULL;
}

static int dump_watches(const struct fd_source *s, const struct watched *w, size_t count,
	struct buf *out, struct err *e)
{
	cleanup_free struct watch_handle *files = xcalloc(count, sizeof(*files));
	cleanup_free char **paths = xcalloc(count, sizeof(*paths));
	cleanup_buf struct buf removed = {0};
	int failed = 0;

	list_removed(s->task, &removed);
	for (size_t i = 0; i < count; i++) {
		files[i] = w[i].file;
		paths[i] = find_removed(&files[i], &removed);
	}
	watch_paths_find(files, count, s->task, paths);
	for (size_t i = 0; i < count; i++) {
		failed = failed || dump_watch(&w[i], paths[i], out, e);
		free(paths[i]);
	}
	return failed ? -1 : 0;
}

static void keep_events(
	struct fd_dump *d, const struct fd_source *s, struct image_description *x);

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
	if (dump_watches(s, watches.data, count, &out, e))
		return -1;
	buf_add(&out, "", 1);
	x->args[0] = image_writer_string(d->job, out.data);
	if (ioctl(s->dup, FIONREAD, &pending))
		return err_set(e, errno, "cannot query whether there are events in it");
	x->args[1] = pending;
	/* Only where nobody will miss them. */
	if (pending && !d->program_resumes)
		keep_events(d, s, x);
	/* A signal would be sent. */
	if (!pending && !(s->flags & O_ASYNC))
		x->args[2] = inotify_next(s->dup);
	return 0;
}

/* ---- events ---- */

/* What is read of a queue, which is the program's until the checkpoint is complete. */
struct queue {
	int fd;
	uint32_t object;
	bool taken, told; /* told: it says that events were lost */
};

static void keep_events(
	struct fd_dump *d, const struct fd_source *s, struct image_description *x)
{
	struct fd_object o = {.o = {.kind = IMAGE_OBJECT_EVENTS}, .fd = -1};
	struct queue q = {.fd = fcntl(s->dup, F_DUPFD_CLOEXEC, 0)};

	/* Without it, the program is told that events were lost. */
	if (q.fd < 0)
		return;
	o.text = fd_source_text(s);
	o.link = xstrdup("");
	o.o.name = image_writer_string(d->job, s->link);
	x->object = q.object = fd_object_add(d, &o);
	buf_push(&d->queues, struct queue, &q);
}

static void set_next(struct fd_dump *d, const struct queue *q)
{
	uint32_t next = inotify_next(q->fd);

	for (size_t i = 0; i < buf_count(&d->descriptions, struct fd_described); i++) {
		struct fd_described *x = buf_at(&d->descriptions, struct fd_described, i);

		if (x->x.kind == IMAGE_FD_INOTIFY && x->x.object == q->object)
			x->x.args[2] = next;
	}
}

/* The processes are stopped, so nobody else reads; but more may come. The program is told at
 * once that they are lost: it resumes, should we be killed before it is ended. */
static int take_events(struct fd_dump *d, struct queue *q, struct err *e)
{
	struct fd_object *o = fd_object_at(d, q->object);
	int pending;

	q->taken = true;
	for (int i = 0; i < 64; i++) {
		ssize_t n;

		if (ioctl(q->fd, FIONREAD, &pending))
			return err_set(e, errno, "%s: cannot query its events", o->text);
		if (!pending)
			break;
		n = read(q->fd, buf_grow(&o->bytes, pending), pending);
		o->bytes.len -= pending - (n > 0 ? n : 0);
		if (n <= 0)
			return err_set(e, errno, "%s: cannot read its events", o->text);
	}
	o->o.size = o->bytes.len;
	set_next(d, q);
	/* Else when it resumes. */
	q->told = !inotify_overflow(q->fd, NULL);
	return 0;
}

int fd_inotifies_take(struct fd_dump *d, struct err *e)
{
	for (size_t i = 0; i < buf_count(&d->queues, struct queue); i++)
		if (take_events(d, buf_at(&d->queues, struct queue, i), e))
			return -1;
	return 0;
}

void fd_inotifies_free(struct fd_dump *d, bool program_resumes)
{
	for (size_t i = 0; i < buf_count(&d->queues, struct queue); i++) {
		struct queue *q = buf_at(&d->queues, struct queue, i);

		/* Nothing more can be done than to say so. */
		if (program_resumes && q->taken && !q->told)
			(void)inotify_overflow(q->fd, NULL);
		close(q->fd);
	}
	buf_free(&d->queues);
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
	if (path[0] == '/' && fd_check_trusted(path, mask & IN_DONT_FOLLOW ? O_NOFOLLOW : 0, e))
		return -1;
	return path[0] == '/' && access(path, F_OK) ? err_set(e, errno, "cannot watch %s", path)
						    : 0;
}

int fd_inotify_check(const struct fd_check *c, const struct image_description *x, struct err *e)
{
	return each_watch(image_string(c->job, x->args[0]), check_path, NULL, e);
}

struct watching {
	const struct fd_restore *r;
	int fd;      /* the inotify descriptor */
	int highest; /* number so far */
};

/* The descriptor of the open file that is "open DEVICE:INODE"; -1: there is none. */
static int open_file(const struct fd_restore *r, const char *name)
{
	uint64_t dev, inode;

	if (sscanf(name, "open %" SCNx64 ":%" SCNx64, &dev, &inode) != 2)
		return -1;
	for (size_t i = 0; i < r->description_count; i++)
		if (r->descriptions[i].dev == dev && r->descriptions[i].inode == inode &&
			r->open[i] >= 0)
			return r->open[i];
	return -1;
}

/* A watch takes permission to read, which the program may have taken away since from a file that it has open as
 * @file (-1: a file with a name). The file has it for a moment then, unless the watch would see that. */
static int watch_file(int fd, const char *path, int file, uint32_t mask)
{
	int wd = inotify_add_watch(fd, path, mask);
	struct stat st;

	if (wd >= 0 || errno != EACCES || file < 0 || mask & IN_ATTRIB || fstat(file, &st) ||
		fchmod(file, (st.st_mode & 07777) | S_IRUSR))
		return wd;
	wd = inotify_add_watch(fd, path, mask);
	if (!fchmod(file, st.st_mode & 07777))
		return wd;
	return -1;
}

/* Numbers only go up: where the next cannot be chosen (Linux 4.18), watches are made and
 * removed until it has been reached. */
static int add_watch(void *context, int wd, uint32_t mask, const char *name, struct err *e)
{
	struct watching *w = context;
	int link = mask & IN_DONT_FOLLOW ? O_NOFOLLOW : 0;
	cleanup_fd int named =
		name[0] == '/' ? fd_open_trusted(name, O_PATH | O_CLOEXEC | link) : -1;
	int file = name[0] == '/' ? -1 : open_file(w->r, name);
	cleanup_free char *path = xasprintf("/proc/self/fd/%d", named >= 0 ? named : file);
	char events[4096];
	int got;

	if (name[0] == '/' && named < 0)
		return err_set(e, errno, "cannot watch %s", name);
	inotify_set_next(w->fd, wd);
	/* The link in /proc is followed, which leads to what is open, if that is a link, too. */
	while ((got = watch_file(w->fd, path, file, mask & ~IN_DONT_FOLLOW)) < wd) {
		if (got < 0)
			return err_set(e, errno, "cannot watch %s", name);
		/* That makes an event. */
		if (inotify_rm_watch(w->fd, got) || read(w->fd, events, sizeof(events)) < 0)
			return err_set(e, errno, "cannot watch %s", name);
	}
	w->highest = wd;
	return got == wd ? 0 : err_set(e, 0, "cannot get watch number %d again", wd);
}

static int make_queue(void)
{
	return inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
}

static int read_events(struct fd_restore *r, const struct image_description *x,
	struct buf *events, struct err *e)
{
	const struct image_object *o =
		fd_object_info(r->job, x->object, IMAGE_OBJECT_EVENTS, e);

	return o ? fd_object_contents(r, x->object, o->size, events, e) : -1;
}

/* Without its watches, which see nothing of what other queues are filled by. What cannot be put
 * into it again, or not as it was, the program is told to be lost. */
int fd_inotify_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	cleanup_buf struct buf events = {0};
	cleanup_fd int fd = make_queue();

	if (x->object && read_events(r, x, &events, e))
		return -1;
	if (fd >= 0 && x->object) {
		if (!inotify_replay(r, fd, events.data, events.len, NULL))
			return fd_lift(r, steal_fd(&fd), e);
		close(fd);
		fd = make_queue();
	}
	if (fd < 0)
		return limit_err(
			e, errno, SYS_inotify_init1, "cannot create an inotify descriptor");
	if (x->args[1] && inotify_overflow(fd, e))
		return -1;
	return fd_lift(r, steal_fd(&fd), e);
}

int fd_inotifies_watch(struct fd_restore *r, struct err *e)
{
	for (size_t i = 0; i < r->description_count; i++) {
		const struct image_description *x = &r->descriptions[i];
		struct watching w = {r, r->open[i], 0};

		if (x->kind != IMAGE_FD_INOTIFY || r->open[i] < 0)
			continue;
		if (each_watch(image_string(r->job, x->args[0]), add_watch, &w, e))
			return -1;
		/* No number is given a second time. */
		if (x->args[2] > (uint64_t)w.highest && x->args[2] <= INT_MAX)
			inotify_set_next(w.fd, (int)x->args[2]);
	}
	return 0;
}

/* Removing a watch makes an event; its number is then the next again. */
int fd_inotify_provoke(
	struct fd_restore *r, const struct image_description *x, int fd, int64_t *state)
{
	cleanup_fd int file = fd_create_unlinked(temporary_directory());
	cleanup_free char *path = xasprintf("/proc/self/fd/%d", file);

	if (file < 0)
		return -1;
	*state = inotify_add_watch(fd, path, IN_MODIFY);
	if (*state < 0 || inotify_rm_watch(fd, *state))
		return -1;
	inotify_set_next(fd, (int)*state);
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
