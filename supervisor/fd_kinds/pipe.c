/*
 * fd_kinds/pipe.c - pipes and FIFOs with what is in them, when all their ends are saved.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "lib/limits.h"
#include "supervisor/fd/trusted_path.h"
#include "supervisor/fd_kinds/fd_kinds.h"
#include "supervisor/fd/objects_restore.h"
#include "supervisor/fd/objects_dump.h"
#include "supervisor/fd/reopen_despite_mode.h"

/* args[0] of a description is its O_ACCMODE. */
#define PIPE_READ  O_RDONLY
#define PIPE_WRITE O_WRONLY

#define PACKET_MAX 4096u /* larger writes become several packets (man 2 pipe, O_DIRECT) */
#define PIPE_MAX   (1u << 31)

bool fd_pipe_match(const struct fd_dump *d, const struct fd_source *s)
{
	return S_ISFIFO(s->st.st_mode) && !strncmp(s->link, "pipe:[", 6);
}

bool fd_fifo_match(const struct fd_dump *d, const struct fd_source *s)
{
	return S_ISFIFO(s->st.st_mode) && s->named;
}

/* A FIFO that still has a name, which is not known, others could open. */
bool fd_unlinked_fifo_match(const struct fd_dump *d, const struct fd_source *s)
{
	return S_ISFIFO(s->st.st_mode) && s->link[0] == '/' && !s->st.st_nlink;
}

/* ---- saving ---- */

/* Read all that is in @from, a copy: the lengths of the reads, of which a stream of bytes
 * needs one and packets one each, come behind the bytes. */
static int read_copy(int from, size_t size, struct fd_object *o, struct err *e)
{
	cleanup_free char *data = xmalloc(size);
	cleanup_buf struct buf lengths = {0};

	while (o->bytes.len < size) {
		ssize_t n = read(from, data, size);
		uint32_t length = n;

		if (n <= 0)
			return err_set(e, n ? errno : 0, "cannot read the bytes in it");
		buf_add(&o->bytes, data, n);
		buf_push(&lengths, uint32_t, &length);
	}
	o->o.size = size;
	if (buf_count(&lengths, uint32_t) > 1) {
		o->o.args[1] = buf_count(&lengths, uint32_t);
		buf_add(&o->bytes, lengths.data, lengths.len);
	}
	return 0;
}

static int bytes_in(int fd, struct err *e)
{
	int size;

	if (ioctl(fd, FIONREAD, &size))
		return err_set(e, errno, "cannot query how much is in it");
	return size;
}

/* A reading end of a copy: tee(2) leaves what is in the pipe where it is. The copy needs as
 * many slots. */
static int copy_pipe(const struct fd_source *s, const struct fd_object *o, struct err *e)
{
	bool readable = (s->flags & O_ACCMODE) != O_WRONLY;
	cleanup_free char *path = xasprintf("/proc/self/fd/%d", s->dup);
	cleanup_fd int reader = -1, writer = -1, again = -1;
	int ends[2], size, from = s->dup;
	ssize_t n;

	if (!readable)
		from = again = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (from < 0)
		return err_set(e, errno, "cannot examine its contents");
	size = bytes_in(from, e);
	if (size < 0)
		return -1;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return err_set(e, errno, "cannot create a pipe");
	reader = ends[0];
	writer = ends[1];
	if (fcntl(writer, F_SETPIPE_SZ, (int)o->o.args[0]) < 0)
		return limit_err(e, errno, SYS_fcntl,
			"cannot create a pipe as large (%" PRIu64 " bytes)", o->o.args[0]);
	n = tee(from, writer, size, SPLICE_F_NONBLOCK);
	if (n != size) {
		err_set(e, n < 0 ? errno : 0, "cannot copy the bytes in it");
		return -1;
	}
	return steal_fd(&reader);
}

static int save_bytes(const struct fd_source *s, struct fd_object *o, struct err *e)
{
	cleanup_fd int copy = -1;
	int size = bytes_in(s->dup, e);

	o->have_bytes = true;
	if (size <= 0)
		return size;
	copy = copy_pipe(s, o, e);
	return copy < 0 ? -1 : read_copy(copy, size, o, e);
}

/* A single packet reads like a stream of bytes; the ends' flags tell. */
static void mark_packet(struct fd_object *o, uint32_t flags)
{
	uint32_t length = o->o.size;

	o->o.flags |= flags & O_DIRECT;
	if (!(o->o.flags & O_DIRECT) || o->o.args[1] || !length || length > PACKET_MAX)
		return;
	o->o.args[1] = 1;
	buf_push(&o->bytes, uint32_t, &length);
}

/* What was written before O_DIRECT was set is no packet: a read takes a part of it and leaves
 * the rest, which of a packet is thrown away. */
static int refuse_mixture(const struct fd_source *s, const struct fd_object *o, struct err *e)
{
	cleanup_fd int copy = -1;

	if (!(o->o.flags & O_DIRECT) || !o->o.size)
		return 0;
	copy = copy_pipe(s, o, e);
	if (copy < 0)
		return -1;
	for (uint64_t i = 0; i < o->o.args[1]; i++) {
		int before = bytes_in(copy, e), after;
		uint32_t length;
		char byte;

		if (before < 0 || read(copy, &byte, 1) != 1)
			return before < 0 ? -1 : err_set(e, errno, "cannot read a packet");
		after = bytes_in(copy, e);
		if (after < 0)
			return -1;
		memcpy(&length, (char *)o->bytes.data + o->o.size + i * sizeof(length),
			sizeof(length));
		if ((uint32_t)(before - after) != length)
			return err_set(e, 0,
				"it holds both packets and plain bytes (O_DIRECT was set in "
				"between), which is not supported");
	}
	return 0;
}

int fd_pipe_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	int capacity = fcntl(s->dup, F_GETPIPE_SZ);
	struct fd_object *o;

	if (capacity < 0)
		return err_set(e, errno, "cannot query its capacity");
	x->args[0] = s->flags & O_ACCMODE;
	x->args[1] = fd_source_owner(s);
	x->object = fd_object_of(d, s, IMAGE_OBJECT_PIPE);
	o = fd_object_at(d, x->object);
	o->o.args[0] = capacity;
	if (x->args[0] != PIPE_WRITE && !o->have_bytes && save_bytes(s, o, e))
		return -1;
	mark_packet(o, s->flags);
	return o->have_bytes ? refuse_mixture(s, o, e) : 0;
}

int fd_fifo_dump(struct fd_dump *d, const struct fd_source *s, struct image_description *x,
	struct err *e)
{
	x->path = image_writer_string(d->job, s->link);
	return fd_pipe_dump(d, s, x, e);
}

int fd_unlinked_fifo_dump(struct fd_dump *d, const struct fd_source *s,
	struct image_description *x, struct err *e)
{
	cleanup_free char *path = fd_source_path(s);

	x->path = image_writer_string(d->job, path);
	return fd_pipe_dump(d, s, x, e);
}

/* ---- restart ---- */

static const struct image_object *pipe_info(
	const struct image *job, const struct image_description *x, struct err *e)
{
	const struct image_object *o = fd_object_info(job, x->object, IMAGE_OBJECT_PIPE, e);

	if (o && (x->args[0] > O_RDWR || o->args[0] > PIPE_MAX || o->size > o->args[0] ||
			 o->args[1] > o->size)) {
		err_set(e, 0, "the image is damaged: a pipe holds more than it can");
		return NULL;
	}
	return o;
}

int fd_pipe_check(const struct fd_check *c, const struct image_description *x, struct err *e)
{
	return pipe_info(c->job, x, e) ? 0 : -1;
}

int fd_fifo_check(const struct fd_check *c, const struct image_description *x, struct err *e)
{
	const char *path = image_string(c->job, x->path);
	cleanup_free char *as = xasprintf("descriptor %d", c->fd);
	struct stat st;

	if (fd_check_trusted(path, 0, e))
		return -1;
	if (stat(path, &st))
		return fd_cannot_open(path, as, errno, e);
	if (!S_ISFIFO(st.st_mode))
		return err_set(e, 0, "cannot open %s (descriptor %d): it is no longer a FIFO",
			path, c->fd);
	return fd_check_access(c, path, O_RDWR, e) || fd_pipe_check(c, x, e) ? -1 : 0;
}

int fd_unlinked_fifo_check(
	const struct fd_check *c, const struct image_description *x, struct err *e)
{
	return fd_pipe_check(c, x, e);
}

/* Never waits: @writer is non-blocking. */
static int put_data(int writer, const char *data, size_t size, struct err *e)
{
	ssize_t n = write(writer, data, size);

	if (n != (ssize_t)size)
		return err_set(e, n < 0 ? errno : 0, "cannot put %zu bytes into a pipe", size);
	return 0;
}

static int put_packets(
	int writer, const struct image_object *o, const char *data, struct err *e)
{
	const char *lengths = data + o->size;
	uint64_t at = 0;

	if (fcntl(writer, F_SETFL, O_NONBLOCK | O_DIRECT))
		return err_set(e, errno, "cannot put packets into a pipe");
	for (uint64_t i = 0; i < o->args[1]; i++) {
		uint32_t length;

		memcpy(&length, lengths + i * sizeof(length), sizeof(length));
		if (length > o->size - at)
			return err_set(e, 0, "the image is damaged: packets in a pipe");
		if (put_data(writer, data + at, length, e))
			return -1;
		at += length;
	}
	return 0;
}

/* A user with many pipes gets smaller ones (pipe(7), pipe-user-pages-soft), as the program
 * would have been: that will do for what is in it. Packets take a page each. */
static bool is_large_enough(int writer, const struct image_object *o)
{
	int capacity = fcntl(writer, F_GETPIPE_SZ);

	return capacity >= 0 && (uint64_t)capacity >= (o->args[1] ? o->args[0] : o->size);
}

static int fill_pipe(struct fd_restore *r, uint32_t number, int writer,
	const struct image_object *o, struct err *e)
{
	cleanup_buf struct buf contents = {0};

	if (fcntl(writer, F_SETPIPE_SZ, (int)o->args[0]) < 0 &&
		(errno != EPERM || !is_large_enough(writer, o)))
		return limit_err(e, errno, SYS_fcntl,
			"cannot create a pipe of %" PRIu64 " bytes", o->args[0]);
	if (!o->size)
		return 0;
	if (fd_object_contents(
		    r, number, o->size + o->args[1] * sizeof(uint32_t), &contents, e))
		return -1;
	return o->args[1] ? put_packets(writer, o, contents.data, e)
			  : put_data(writer, contents.data, o->size, e);
}

static struct fd_made *make_pipe(
	struct fd_restore *r, const struct image_description *x, struct err *e)
{
	const struct image_object *o = pipe_info(r->job, x, e);
	struct fd_made *made;
	int ends[2];

	if (!o)
		return NULL;
	made = &r->made[x->object - 1];
	if (made->fd >= 0)
		return made;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK)) {
		err_set(e, errno, "cannot create a pipe");
		return NULL;
	}
	made->fd = fd_lift(r, ends[0], e);
	made->writer = fd_lift(r, ends[1], made->fd < 0 ? NULL : e);
	if (made->fd < 0 || made->writer < 0 || fill_pipe(r, x->object, made->writer, o, e))
		return NULL;
	return made;
}

int fd_pipe_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	struct fd_made *made = make_pipe(r, x, e);
	int end = x->args[0], *own;

	if (!made)
		return -1;
	/* A pipe opened again through /proc, as another description. */
	if (end > PIPE_WRITE || made->taken[end] || x->flags & KERNEL_O_LARGEFILE)
		return fd_open_object(r, made->fd, x, e);
	made->taken[end] = true;
	own = end == PIPE_READ ? &made->fd : &made->writer;
	return *own = fd_lift_into(r, x - r->descriptions, *own, e);
}

unsigned fd_pipe_takes(const struct image_description *x, const struct fd_object *o)
{
	return x->args[0] > PIPE_WRITE || x->flags & KERNEL_O_LARGEFILE ? 0 : 1u << x->args[0];
}

/* Opened for both, so that no open waits for the other end. */
static int open_both(const char *path, struct err *e)
{
	int fd = fd_reopen(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? err_set(e, errno, "cannot open %s", path) : fd;
}

/* A FIFO in @directory, whose name is gone again. Who may make files there may have put another into its place
 * meanwhile: it must be one that nobody else can open. -1 and errno. */
static int make_fifo_in(const char *directory, const char *name)
{
	cleanup_fd int in = fd_open_trusted(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_fd int at = -1, fd = -1;
	cleanup_free char *link = NULL;
	struct stat st;

	if (in < 0 || mkfifoat(in, name, 0600))
		return -1;
	at = openat(in, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	link = xasprintf("/proc/self/fd/%d", at);
	if (at >= 0 && !fstat(at, &st) && S_ISFIFO(st.st_mode) && st.st_uid == geteuid() &&
		!(st.st_mode & 077))
		fd = fd_reopen(link, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	else
		errno = EEXIST;
	return unlinkat(in, name, 0) ? -1 : steal_fd(&fd);
}

/* In the directory where it was if that can be, else in the one for what is temporary. */
static int make_unlinked_fifo(
	struct fd_restore *r, const struct image_description *x, struct err *e)
{
	const char *was = image_string(r->job, x->path), *slash = strrchr(was, '/');
	cleanup_free char *above = xasprintf("%.*s", slash ? (int)(slash + 1 - was) : 0, was);
	int fd = slash ? make_fifo_in(above, r->options->temporary_name) : -1;

	if (fd < 0)
		fd = make_fifo_in(temporary_directory(), r->options->temporary_name);
	return fd < 0 ? err_set(e, errno, "cannot create a FIFO for the removed %s", was) : fd;
}

static struct fd_made *make_fifo(
	struct fd_restore *r, const struct image_description *x, struct err *e)
{
	const struct image_object *o = pipe_info(r->job, x, e);
	struct fd_made *made;
	struct stat st;

	if (!o)
		return NULL;
	made = &r->made[x->object - 1];
	if (made->fd >= 0)
		return made;
	made->fd = x->kind == IMAGE_FD_FIFO ? open_both(image_string(r->job, x->path), e)
					    : make_unlinked_fifo(r, x, e);
	if (made->fd >= 0)
		made->fd = fd_lift(r, made->fd, e);
	if (made->fd < 0)
		return NULL;
	if (fstat(made->fd, &st) || !S_ISFIFO(st.st_mode)) {
		err_set(e, 0, "cannot open %s: it is no longer a FIFO",
			image_string(r->job, x->path));
		return NULL;
	}
	return fill_pipe(r, x->object, made->fd, o, e) ? NULL : made;
}

int fd_fifo_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	struct fd_made *made = make_fifo(r, x, e);

	return made ? fd_open_object(r, made->fd, x, e) : -1;
}

int fd_unlinked_fifo_restore(
	struct fd_restore *r, const struct image_description *x, struct err *e)
{
	return fd_fifo_restore(r, x, e);
}

/* ---- for a moment ---- */

/* The write end is not ready when the pipe is full, the read end when it is empty. */
int fd_pipe_provoke(
	struct fd_restore *r, const struct image_description *x, int fd, int64_t *state)
{
	const struct fd_made *made = &r->made[x->object - 1];

	if (x->args[0] == PIPE_WRITE) {
		*state = fcntl(fd, F_GETPIPE_SZ);
		return *state < 0 || fcntl(fd, F_SETPIPE_SZ, (int)*state * 2) < 0 ? -1 : 0;
	}
	return write(made->writer >= 0 ? made->writer : made->fd, "", 1) == 1 ? 0 : -1;
}

int fd_pipe_calm(struct fd_restore *r, const struct image_description *x, int fd, int64_t state)
{
	char byte;

	if (x->args[0] == PIPE_WRITE)
		return fcntl(fd, F_SETPIPE_SZ, (int)state) < 0 ? -1 : 0;
	return read(fd, &byte, 1) == 1 ? 0 : -1;
}

/* ---- show ---- */

static void show_end(
	const struct image *job, const struct image_description *x, struct buf *out)
{
	static const char *const ends[] = {"read end", "write end", "both ends"};
	const struct image_object *o = fd_object_info(job, x->object, IMAGE_OBJECT_PIPE, NULL);

	buf_printf(out, ", %s", x->args[0] < ARRAY_SIZE(ends) ? ends[x->args[0]] : "?");
	if (!o)
		return;
	buf_printf(out, ", %" PRIu64 " bytes in it", o->size);
	if (o->args[1])
		buf_printf(out, " in %" PRIu64 " packets", o->args[1]);
}

void fd_pipe_show(const struct image *job, const struct image_description *x, struct buf *out)
{
	buf_printf(out, "pipe");
	show_end(job, x, out);
}

void fd_fifo_show(const struct image *job, const struct image_description *x, struct buf *out)
{
	buf_printf(out, "FIFO %s", image_string(job, x->path));
	show_end(job, x, out);
}

void fd_unlinked_fifo_show(
	const struct image *job, const struct image_description *x, struct buf *out)
{
	buf_printf(out, "unlinked FIFO %s", image_string(job, x->path));
	show_end(job, x, out);
}
