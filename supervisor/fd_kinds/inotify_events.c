/*
 * A watch that is removed makes an event itself (IN_IGNORED), but not where the queue is full
 * and says so already. So the queue is filled first with events that nobody shall see, until
 * there is one at its end that says so; as many of the first are read as there are events to
 * come; with these it is full again, the watches are removed, and what is before the events is
 * read.
 */
#include "supervisor/fd_kinds/inotify_events.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/limits.h"
#include "supervisor/fd/objects_restore.h"
#include "supervisor/fd/temporary_directories.h"

#ifndef INOTIFY_IOC_SETNEXTWD
#define INOTIFY_IOC_SETNEXTWD _IOW('I', 0, int32_t)
#endif

#define EVENT_SIZE sizeof(struct inotify_event)

/* Of a watch that is to see nothing: what it is on is moved only where that is wanted. */
#define QUIET IN_MOVE_SELF

/* How many events a queue may hold. */
static uint64_t inotify_queue_limit(void)
{
	cleanup_free char *text = NULL;
	size_t len;

	if (read_file("/proc/sys/fs/inotify/max_queued_events", &text, &len, NULL))
		return 16384;
	return strtoull(text, NULL, 10);
}

void inotify_set_next(int fd, int wd)
{
	(void)ioctl(fd, INOTIFY_IOC_SETNEXTWD, wd);
}

/* ---- what nobody shall see ---- */

/* A file without a name and a watch on it. */
struct filler {
	int fd;   /* of inotify */
	int file; /* -1: not there */
	int wd;
	unsigned made;
};

static int filler_begin(struct filler *f, struct err *e)
{
	cleanup_free char *path = NULL;

	f->file = fd_create_unlinked(temporary_directory());
	if (f->file < 0)
		return err_set(e, errno, "cannot create a file in %s", temporary_directory());
	path = xasprintf("/proc/self/fd/%d", f->file);
	f->wd = inotify_add_watch(f->fd, path, IN_ATTRIB | IN_MODIFY);
	return f->wd < 0 ? limit_err(e, errno, SYS_inotify_add_watch,
				   "cannot fill an inotify queue")
			 : 0;
}

/* Equal events in a row would be one. */
static int fill_queue(struct filler *f, uint64_t count, struct err *e)
{
	for (; count; count--, f->made++)
		if (f->made % 2 ? fchmod(f->file, 0600) : ftruncate(f->file, f->made % 4))
			return err_set(e, errno, "cannot fill an inotify queue");
	return 0;
}

static int take_events(int fd, uint64_t count, struct err *e)
{
	size_t room = count * EVENT_SIZE;
	cleanup_free char *events = xmalloc(room + 1);

	if (count && read(fd, events, room) != (ssize_t)room)
		return err_set(e, errno, "cannot empty an inotify queue");
	return 0;
}

int inotify_overflow(int fd, struct err *e)
{
	uint64_t limit = inotify_queue_limit();
	size_t room = (limit + 2) * EVENT_SIZE;
	cleanup_free char *events = xmalloc(room);
	struct filler f = {.fd = fd, .file = -1};
	cleanup_fd int file = -1;
	int left = 0, failed = filler_begin(&f, e);

	file = f.file;
	/* There is no room for the event that removing the watch would make. */
	if (failed || fill_queue(&f, limit + 1, e) || inotify_rm_watch(fd, f.wd))
		return failed ? -1 : err_set(e, errno, "cannot fill an inotify queue");
	inotify_set_next(fd, f.wd);
	while (!ioctl(fd, FIONREAD, &left) && left > (int)EVENT_SIZE && left <= (int)room)
		if (read(fd, events, left - EVENT_SIZE) <= 0)
			break;
	if (left != (int)EVENT_SIZE)
		return err_set(e, 0, "cannot tell the program that inotify events were lost");
	return 0;
}

int inotify_next(int fd)
{
	cleanup_fd int file = memfd_create("trecr", MFD_CLOEXEC);
	cleanup_free char *path = xasprintf("/proc/self/fd/%d", file);
	int wd = file < 0 ? -1 : inotify_add_watch(fd, path, IN_MODIFY);
	struct inotify_event event;

	if (wd < 0)
		return 0;
	if (inotify_rm_watch(fd, wd))
		return 0;
	inotify_set_next(fd, wd);
	/* An event from outside may have come before it, in this very moment. */
	if (read(fd, &event, sizeof(event)) != sizeof(event) || event.wd != wd)
		(void)inotify_overflow(fd, NULL);
	return wd;
}

/* ---- the files ---- */

/* What a watch is on. */
struct place {
	int wd;
	bool gone;
	char *path;
};

struct replay {
	int fd;
	const char *dir;
	const struct inotify_event **events;
	bool *done;
	size_t count;
	struct buf places; /* struct place */
	unsigned moves;
};

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

static void remove_tree(const char *path)
{
	(void)nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static int make_path(const char *path, bool directory)
{
	cleanup_fd int fd = -1;

	if (directory)
		return mkdir(path, 0700);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd < 0 || write(fd, "x", 1) != 1 ? -1 : 0;
}

static int ensure_file(const char *path, bool directory)
{
	struct stat st;

	if (!lstat(path, &st)) {
		if (S_ISDIR(st.st_mode) == directory)
			return 0;
		remove_tree(path);
	}
	return make_path(path, directory);
}

static bool is_directory(const struct replay *p, int wd)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->events[i]->wd == wd &&
			(p->events[i]->len || p->events[i]->mask & IN_ISDIR))
			return true;
	return false;
}

static struct place *place_of(struct replay *p, int wd)
{
	struct place new = {.wd = wd};

	for (size_t i = 0; i < buf_count(&p->places, struct place); i++)
		if (buf_at(&p->places, struct place, i)->wd == wd)
			return buf_at(&p->places, struct place, i);
	new.path = xasprintf("%s/%d", p->dir, wd);
	if (!make_path(new.path, is_directory(p, wd))) {
		inotify_set_next(p->fd, wd);
		if (inotify_add_watch(p->fd, new.path, QUIET) == wd) {
			buf_push(&p->places, struct place, &new);
			return buf_at(&p->places, struct place,
				buf_count(&p->places, struct place) - 1);
		}
	}
	free(new.path);
	return NULL;
}

static int watch_for(struct replay *p, const struct place *at, uint32_t mask)
{
	return inotify_add_watch(p->fd, at->path, mask) == at->wd ? 0 : -1;
}

static char *path_in(const struct place *at, const struct inotify_event *v)
{
	return v->len ? xasprintf("%s/%.*s", at->path, (int)v->len, v->name)
		      : xstrdup(at->path);
}

/* ---- one event ---- */

static const struct inotify_event *find_partner(struct replay *p, size_t i, uint32_t mask)
{
	const struct inotify_event *v = p->events[i];

	for (size_t k = i + 1; k < p->count; k++) {
		const struct inotify_event *w = p->events[k];

		if (p->done[k] || !(w->mask & mask) ||
			(mask == IN_IGNORED ? w->wd != v->wd : w->cookie != v->cookie))
			continue;
		p->done[k] = true;
		return w;
	}
	return NULL;
}

/* Both ends of a rename, or a rename to or from somewhere else. */
static int move_file(struct replay *p, size_t i)
{
	const struct inotify_event *v = p->events[i], *to = NULL;
	bool directory = v->mask & IN_ISDIR;
	cleanup_free char *from_path = NULL, *to_path = NULL;
	struct place *at = place_of(p, v->wd), *there = NULL;
	uint32_t mask = v->mask & (IN_MOVED_FROM | IN_MOVED_TO);

	if (!at || !v->len)
		return -1;
	if (mask == IN_MOVED_FROM)
		to = find_partner(p, i, IN_MOVED_TO);
	if (to && (!to->len || !place_of(p, to->wd)))
		return -1;
	/* The list may have moved. */
	at = place_of(p, v->wd);
	there = to ? place_of(p, to->wd) : NULL;
	from_path = mask == IN_MOVED_FROM ? path_in(at, v) : xasprintf("%s/from", p->dir);
	to_path = mask == IN_MOVED_TO ? path_in(at, v)
		  : to                ? path_in(there, to)
				      : xasprintf("%s/to-%u", p->dir, p->moves++);
	remove_tree(to_path);
	if (ensure_file(from_path, directory) ||
		watch_for(p, at, there == at ? IN_MOVE : mask) ||
		(there && there != at && watch_for(p, there, IN_MOVED_TO)) ||
		rename(from_path, to_path) || watch_for(p, at, QUIET))
		return -1;
	return there && there != at ? watch_for(p, there, QUIET) : 0;
}

static int move_self(struct replay *p, struct place *at)
{
	char *other = xasprintf("%s/moved-%u", p->dir, p->moves++);
	int failed = watch_for(p, at, IN_MOVE_SELF) || rename(at->path, other);

	free(at->path);
	at->path = other;
	return failed ? -1 : 0;
}

static int end_watch(struct replay *p, size_t i, struct place *at)
{
	bool removed = p->events[i]->mask & IN_DELETE_SELF;

	at->gone = true;
	if (!removed)
		return inotify_rm_watch(p->fd, at->wd);
	if (!find_partner(p, i, IN_IGNORED) || watch_for(p, at, IN_DELETE_SELF))
		return -1;
	remove_tree(at->path);
	return 0;
}

/* What is done to a file that is open, or with its opening and closing. */
static int replay_use(struct replay *p, const struct place *at, const char *path, uint32_t mask,
	bool directory)
{
	bool writes = mask == IN_MODIFY || mask == IN_CLOSE_WRITE;
	int flags = (writes ? O_WRONLY : O_RDONLY) | O_CLOEXEC, fd = -1, failed = 0;
	char data[1024];

	if (mask != IN_OPEN)
		fd = open(path, flags);
	failed = (mask != IN_OPEN && fd < 0) || watch_for(p, at, mask);
	if (!failed && mask == IN_OPEN)
		failed = (fd = open(path, flags)) < 0;
	else if (!failed && mask == IN_ACCESS)
		failed = directory ? syscall(SYS_getdents64, fd, data, sizeof(data)) < 0
				   : pread(fd, data, 1, 0) != 1;
	else if (!failed && mask == IN_MODIFY)
		failed = pwrite(fd, "x", 1, 0) != 1;
	else if (!failed) {
		failed = close(fd);
		fd = -1;
	}
	failed |= watch_for(p, at, QUIET);
	if (fd >= 0)
		close(fd);
	return failed ? -1 : 0;
}

static int replay_change(struct replay *p, const struct place *at, const char *path,
	uint32_t mask, bool directory)
{
	int failed = 0;

	if (mask == IN_CREATE)
		remove_tree(path);
	else
		failed = ensure_file(path, directory);
	failed = failed || watch_for(p, at, mask);
	if (mask == IN_CREATE)
		failed = failed ||
			 (directory ? mkdir(path, 0700) : mknod(path, S_IFREG | 0600, 0));
	else if (mask == IN_DELETE)
		failed = failed || remove(path);
	else
		failed = failed || chmod(path, 0700);
	return watch_for(p, at, QUIET) || failed ? -1 : 0;
}

static int make_event(struct replay *p, size_t i)
{
	const struct inotify_event *v = p->events[i];
	uint32_t mask = v->mask & ~IN_ISDIR;
	struct place *at = place_of(p, v->wd);
	cleanup_free char *path = at && !at->gone ? path_in(at, v) : NULL;
	bool directory = v->mask & IN_ISDIR;

	if (!path)
		return -1;
	switch (mask) {
	case IN_MOVED_FROM:
	case IN_MOVED_TO:
		return move_file(p, i);
	case IN_MOVE_SELF:
		return move_self(p, at);
	case IN_DELETE_SELF:
	case IN_IGNORED:
		return end_watch(p, i, at);
	case IN_CREATE:
	case IN_DELETE:
		return v->len ? replay_change(p, at, path, mask, directory) : -1;
	case IN_ATTRIB:
		return replay_change(
			p, at, path, mask, v->len ? directory : is_directory(p, v->wd));
	case IN_ACCESS:
	case IN_MODIFY:
	case IN_OPEN:
	case IN_CLOSE_WRITE:
	case IN_CLOSE_NOWRITE:
		return v->len && ensure_file(path, directory)
			       ? -1
			       : replay_use(p, at, path, mask, directory);
	default:
		return -1;
	}
}

static size_t size_of(const struct replay *p, size_t from, size_t to)
{
	size_t size = 0;

	for (; from < to; from++)
		if (p->done[from])
			size += EVENT_SIZE + p->events[from]->len;
	return size;
}

/* Those from @from up to @to, and no other. */
static int make_events(struct replay *p, size_t from, size_t to)
{
	int before, now;

	if (ioctl(p->fd, FIONREAD, &before))
		return -1;
	for (size_t i = from; i < to; i++) {
		if (p->done[i])
			continue;
		p->done[i] = true;
		if (make_event(p, i) || ioctl(p->fd, FIONREAD, &now) ||
			(size_t)(now - before) != size_of(p, from, p->count))
			return -1;
	}
	return 0;
}

/* ---- all of them ---- */

static size_t find_overflow(const struct replay *p)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->events[i]->mask & IN_Q_OVERFLOW)
			return i;
	return p->count;
}

/* @before, the event that says that the queue was full, and @after. */
static int make_queue(struct replay *p, struct filler *f, uint64_t limit, struct err *e)
{
	size_t full = find_overflow(p), none = full == p->count;
	size_t before = none ? 0 : full, after = none ? p->count : p->count - full - 1;
	uint64_t fillers = limit - before, taken = after ? after + 1 : 0;

	if (before > limit || taken > fillers)
		return 1;
	if (fill_queue(f, fillers, e))
		return -1;
	if (before && make_events(p, 0, before))
		return 1;
	if (fill_queue(f, 1, e) || take_events(p->fd, taken, e))
		return -1;
	if (!none)
		p->done[full] = true;
	if (make_events(p, p->count - after, p->count))
		return 1;
	for (size_t i = 0; i < buf_count(&p->places, struct place); i++)
		if (!buf_at(&p->places, struct place, i)->gone)
			(void)inotify_rm_watch(p->fd, buf_at(&p->places, struct place, i)->wd);
	(void)inotify_rm_watch(p->fd, f->wd);
	return take_events(p->fd, fillers - taken + none, e);
}

static int check_size(const struct replay *p, size_t size)
{
	int now;

	return ioctl(p->fd, FIONREAD, &now) || (size_t)now != size;
}

static bool parse_events(struct buf *list, const char *events, size_t size, int *last)
{
	for (size_t at = 0; at < size;) {
		const struct inotify_event *v = (const void *)(events + at);

		if (size - at < EVENT_SIZE || v->len > size - at - EVENT_SIZE ||
			v->len % EVENT_SIZE || memchr(v->name, '/', v->len))
			return false;
		buf_push(list, const struct inotify_event *, &v);
		*last = v->wd > *last ? v->wd : *last;
		at += EVENT_SIZE + v->len;
	}
	return *last < INT_MAX - 1;
}

static int replay_in(struct replay *p, int last, size_t size, struct err *e)
{
	struct filler f = {.fd = p->fd, .file = -1};
	int result;

	inotify_set_next(p->fd, last + 1);
	result = filler_begin(&f, e);
	if (!result)
		result = make_queue(p, &f, inotify_queue_limit(), e);
	if (f.file >= 0)
		close(f.file);
	return result ? result : check_size(p, size);
}

int inotify_replay(struct fd_restore *r, int fd, const char *events, size_t size, struct err *e)
{
	cleanup_free char *temporary = fd_temporary_directory(r->options->temporary_name, e),
			  *dir = NULL;
	cleanup_buf struct buf list = {0};
	cleanup_free bool *done = NULL;
	struct replay p = {.fd = fd};
	int last = 0, result;

	if (!temporary)
		return -1;
	if (!parse_events(&list, events, size, &last))
		return err_set(e, 0, "the image is damaged: inotify events");
	p.dir = dir = xasprintf("%s/inotify", temporary);
	p.events = list.data;
	p.count = buf_count(&list, const struct inotify_event *);
	p.done = done = xcalloc(p.count, sizeof(*done));
	result = mkdir(dir, 0700) ? err_set(e, errno, "cannot create directory %s", dir)
				  : replay_in(&p, last, size, e);
	for (size_t i = 0; i < buf_count(&p.places, struct place); i++)
		free(buf_at(&p.places, struct place, i)->path);
	buf_free(&p.places);
	remove_tree(dir);
	/* Others may have something in it. */
	(void)rmdir(temporary);
	return result;
}
