/*
 * fd_kinds/epoll_dump.c - epoll(7) at a checkpoint.
 *
 * The kernel shows a watch by the number of the descriptor that it was made by, in whichever
 * process that was: which file it is on is found out by comparison (kcmp) with all files of the
 * tree, when they are known.
 */
#include "supervisor/fd_kinds/epoll_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>

#include "lib/procfs.h"
#include "supervisor/fd_kinds/epoll_watch.h"
#include "supervisor/fd_kinds/fd_kinds.h"
#include "supervisor/target/task_pidfd.h"

/* An epoll descriptor whose watches are not known yet. */
struct fd_epoll {
	uint32_t description;
	pid_t pid, task;
	int fd;
	char *text, *info;
};

bool fd_epoll_match(const struct fd_dump *d, const struct fd_source *s)
{
	return !strcmp(s->link, "anon_inode:[eventpoll]");
}

int fd_epoll_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	struct fd_epoll p = {
		.description = buf_count(&d->descriptions, struct fd_described),
		.pid = s->pid,
		.task = s->task,
		.fd = s->fd,
		.text = fd_source_text(s),
		.info = xstrdup(s->info),
	};

	buf_push(&d->epolls, struct fd_epoll, &p);
	return 0;
}

void fd_epolls_free(struct fd_dump *d)
{
	for (size_t i = 0; i < buf_count(&d->epolls, struct fd_epoll); i++) {
		free(buf_at(&d->epolls, struct fd_epoll, i)->text);
		free(buf_at(&d->epolls, struct fd_epoll, i)->info);
	}
	buf_free(&d->epolls);
}

/* ---- what a watch is on ---- */

/* As kcmp(2) has it: 0 the same file, 1 ours is less, 2 greater; -1 on failure. Of several
 * watches under one number @nth is this one's place. */
static int compare_watch(
	pid_t task, int fd, const struct fd_epoll *p, int watched, uint32_t nth)
{
	struct kcmp_epoll_slot slot = {.efd = p->fd, .tfd = watched, .toff = nth};

	return syscall(SYS_kcmp, task, p->task, KCMP_EPOLL_TFD, (long)fd, &slot);
}

/* The file among those numbered @low to @high, of one inode, in order; NULL: none. */
static const struct fd_known *find_among(const struct fd_dump *d, size_t low, size_t high,
	const struct fd_epoll *p, int watched, uint32_t nth)
{
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct fd_known *k = buf_at(&d->known, struct fd_known, mid);
		int r = compare_watch(k->task, k->fd, p, watched, nth);

		if (!r)
			return k;
		if (r < 0)
			return NULL;
		if (r == 1)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

/* Where the files of a device with at least @inode begin, of a list that begins at @low. */
static size_t first_known_from(
	const struct fd_dump *d, size_t low, uint64_t dev, uint64_t inode)
{
	size_t high = buf_count(&d->known, struct fd_known);

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct fd_known *k = buf_at(&d->known, struct fd_known, mid);

		if (k->dev < dev || (k->dev == dev && k->inode < inode))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Several standard streams may be one file: then the number decides. */
static const struct fd_known *find_stream(
	const struct fd_dump *d, const struct fd_epoll *p, int watched, uint32_t nth)
{
	const struct fd_known *found = NULL;

	for (int i = 0; i < 3; i++) {
		const struct fd_known *k = &d->inherited_of[i];

		if (d->inherited[i] && (!found || k->fd == watched) &&
			!compare_watch(k->task, k->fd, p, watched, nth))
			found = k;
	}
	return found;
}

/* The kernel's number of a device is not always what fstat(2) tells. */
static const struct fd_known *find_file(const struct fd_dump *d, uint64_t inode,
	const struct fd_epoll *p, int watched, uint32_t nth)
{
	const struct fd_known *found = NULL;
	size_t count = buf_count(&d->known, struct fd_known);

	for (size_t at = 0; at < count && !found;) {
		uint64_t dev = buf_at(&d->known, struct fd_known, at)->dev;
		size_t low = first_known_from(d, at, dev, inode),
		       high = first_known_from(d, low, dev, inode + 1);

		found = find_among(d, low, high, p, watched, nth);
		at = first_known_from(d, high, dev + 1, 0);
	}
	return found ? found : find_stream(d, p, watched, nth);
}

/* ---- whether it can be made again ---- */

/* What a restart opens when everything is in place (restore/task_files_restore.c), and pidfds,
 * which each process makes its own of. @here: the number still leads to the file. */
static int check_late(
	const struct fd_described *x, const struct watch *w, bool here, struct err *e)
{
	if (x->kind->needs_threads && x->kind->needs_threads(&x->x))
		return err_set(e, 0,
			"it watches descriptor %d, a file of /proc or the pidfd of a thread, "
			"which is not supported",
			w->fd);
	if (x->kind->traits & FD_OF_TASK && !here)
		return err_set(e, 0,
			"it watches a pidfd that was descriptor %d, a number that no longer "
			"refers to it",
			w->fd);
	return 0;
}

static bool has_event(const struct fd_known *file)
{
	/* A thread that has a table of its own is not found as a process. */
	int process = fd_task_open(file->task, file->task, NULL);
	cleanup_fd int pidfd = process >= 0 ? process : fd_task_open(0, file->task, NULL);
	cleanup_fd int dup = pidfd < 0 ? -1 : syscall(SYS_pidfd_getfd, pidfd, file->fd, 0);
	struct pollfd p = {.fd = dup, .events = WATCH_ANY_EVENT};

	return dup >= 0 && poll(&p, 1, 0) == 1;
}

/* That a one-shot watch has fired cannot be set: a restart lets it fire once more. */
static int check_fired(const struct fd_known *file, const struct fd_described *x,
	const struct watch *w, struct err *e)
{
	if (x->kind->traits & FD_FIRES || has_event(file))
		return 0;
	return err_set(e, 0,
		"it has a one-shot watch on descriptor %d that has fired, and nothing is ready "
		"there that would make it fire after a restart",
		w->fd);
}

/* It would be woken by the signals of the first process instead of its own's. */
static int check_signals(const struct fd_epoll *p, const struct fd_described *x,
	const struct watch *w, struct err *e)
{
	if (!(x->kind->traits & FD_OWN_EVENTS) || p->task == p->pid)
		return 0;
	return err_set(e, 0, "it watches a signalfd (descriptor %d), which is not supported %s",
		w->fd,
		p->pid == getpid() ? "while it is in a message only" : "of a thread's own");
}

static int dump_watch(struct fd_dump *d, const struct fd_epoll *p, struct watch *w,
	uint64_t inode, uint32_t nth, struct err *e)
{
	const struct fd_known *file = find_file(d, inode, p, w->fd, nth);
	bool here = !compare_watch(p->task, w->fd, p, w->fd, nth);
	const struct fd_described *x;

	if (!file)
		return err_set(e, 0,
			"it watches a file that was descriptor %d, and that no descriptor of "
			"the program refers to any more",
			w->fd);
	w->description = file->description;
	x = buf_at(&d->descriptions, struct fd_described, w->description);
	if (check_late(x, w, here, e) || check_signals(p, x, w, e) ||
		(watch_has_fired(w) && check_fired(file, x, w, e)))
		return -1;
	if (!here)
		image_writer_incompat(d->job, IMAGE_INCOMPAT_WATCHES);
	return 0;
}

/* fdinfo has a line for each watch: "tfd: 5 events: 19 data: 5  pos:0 ino:61af sdev:7" (man
 * proc_pid_fdinfo). */
static int dump_watches(
	struct fd_dump *d, const struct fd_epoll *p, struct buf *out, struct err *e)
{
	struct watch w;
	uint64_t inode;
	uint32_t nth = 0;
	int last = -1;

	for (const char *at = strstr(p->info, "tfd:"); at; at = strstr(at + 1, "tfd:")) {
		if (sscanf(at,
			    "tfd: %d events: %" SCNx32 " data: %" SCNx64
			    " pos:%*s ino:%" SCNx64,
			    &w.fd, &w.events, &w.data, &inode) != 4)
			return err_set(e, 0, "cannot parse its watches in /proc/PID/fdinfo");
		nth = w.fd == last ? nth + 1 : 0;
		last = w.fd;
		if (dump_watch(d, p, &w, inode, nth, e))
			return -1;
		watch_write(&w, out);
	}
	return 0;
}

int fd_epolls_dump(struct fd_dump *d, struct err *e)
{
	for (size_t i = 0; i < buf_count(&d->epolls, struct fd_epoll); i++) {
		const struct fd_epoll *p = buf_at(&d->epolls, struct fd_epoll, i);
		cleanup_buf struct buf out = {0};

		if (dump_watches(d, p, &out, e))
			return err_prefix(e, "%s", p->text);
		buf_add(&out, "", 1);
		buf_at(&d->descriptions, struct fd_described, p->description)->x.args[0] =
			image_writer_string(d->job, out.data);
	}
	return 0;
}

/* ---- the rest of its row ---- */

int fd_epoll_check(const struct fd_check *c, const struct image_description *x, struct err *e)
{
	const char *text = image_string(c->job, x->args[0]);
	struct watch w;
	size_t count;
	int more;

	image_note_array(c->job, IMAGE_NOTE_DESCRIPTIONS, struct image_description, &count);
	while ((more = watch_next(&text, &w, e)) > 0)
		if (w.fd < 0 || w.description >= count)
			return err_set(e, 0, "the image is damaged: what epoll watches");
	return more;
}

void fd_epoll_show(const struct image *job, const struct image_description *x, struct buf *out)
{
	size_t count = 0;

	for (const char *p = image_string(job, x->args[0]); (p = strchr(p, '\n')); p++)
		count++;
	buf_printf(out, "epoll, %zu watches", count);
}
