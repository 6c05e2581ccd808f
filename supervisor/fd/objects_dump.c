/*
 * objects_dump.c - the list of objects by what identifies them, and the writing of their
 * contents.
 */
#include "supervisor/fd/objects_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "ckpt/blocks.h"
#include "lib/notices.h"
#include "supervisor/fd/file_attributes.h"
#include "supervisor/fd/hidden_pages.h"
#include "supervisor/fd/hugetlb_file.h"
#include "supervisor/fd/object_kinds.h"
#include "supervisor/fd/reopen_despite_mode.h"
#include "supervisor/target/task_pidfd.h"

static size_t object_count(const struct fd_dump *d)
{
	return buf_count(&d->objects, struct fd_object);
}

struct fd_object *fd_object_at(const struct fd_dump *d, uint32_t number)
{
	BUG_ON(!number || number > object_count(d));
	return buf_at(&d->objects, struct fd_object, number - 1);
}

/* ---- by inode, or the number of its kind ---- */

static size_t inode_slot(const struct fd_dump *d, uint64_t inode)
{
	return (inode * 0x9e3779b97f4a7c15ull >> 32) & (d->inode_slots - 1);
}

/* The first, or the one behind @after, that may have @inode, as others that the table has there may not; NULL: no
 * more. */
static const uint32_t *next_of_inode(
	const struct fd_dump *d, uint64_t inode, const uint32_t *after)
{
	size_t slot;

	if (!d->inode_slots)
		return NULL;
	slot = after ? (after - d->by_inode + 1) & (d->inode_slots - 1) : inode_slot(d, inode);
	return d->by_inode[slot] ? &d->by_inode[slot] : NULL;
}

static void put_by_inode(struct fd_dump *d, uint32_t number)
{
	const struct image_object *o = &fd_object_at(d, number)->o;
	size_t slot = inode_slot(d, o->inode);

	if (o->kind == IMAGE_OBJECT_FILE)
		return; /* many have no inode, and none is known by it */
	while (d->by_inode[slot])
		slot = (slot + 1) & (d->inode_slots - 1);
	d->by_inode[slot] = number;
}

static void note_inode(struct fd_dump *d, uint32_t number)
{
	if ((size_t)number * 2 < d->inode_slots) {
		put_by_inode(d, number);
		return;
	}
	free(d->by_inode);
	d->inode_slots = d->inode_slots ? d->inode_slots * 2 : 64;
	d->by_inode = xcalloc(d->inode_slots, sizeof(*d->by_inode));
	for (uint32_t n = 1; n <= number; n++)
		put_by_inode(d, n);
}

uint32_t fd_object_find(const struct fd_dump *d, uint64_t dev, uint64_t inode)
{
	for (const uint32_t *n = NULL; (n = next_of_inode(d, inode, n));) {
		const struct image_object *o = &fd_object_at(d, *n)->o;

		if (o->inode == inode && o->dev == dev && object_kind_of(o->kind)->by_inode)
			return *n;
	}
	return 0;
}

uint32_t fd_object_numbered(
	const struct fd_dump *d, enum image_object_kind kind, uint64_t number)
{
	for (const uint32_t *n = NULL; (n = next_of_inode(d, number, n));) {
		const struct image_object *o = &fd_object_at(d, *n)->o;

		if (o->inode == number && o->kind == kind)
			return *n;
	}
	return 0;
}

/* ---- by name ---- */

/* Where @name is in the table, or belongs. */
static uint32_t *find_named(const struct fd_dump *d, uint32_t name)
{
	size_t i = name * 2654435761u & (d->named_slots - 1);

	while (d->named[i] && fd_object_at(d, d->named[i])->o.name != name)
		i = (i + 1) & (d->named_slots - 1);
	return &d->named[i];
}

static void grow_named(struct fd_dump *d)
{
	cleanup_free uint32_t *old = d->named;
	size_t old_slots = d->named_slots;

	d->named_slots = old_slots ? old_slots * 2 : 64;
	d->named = xcalloc(d->named_slots, sizeof(*d->named));
	for (size_t i = 0; i < old_slots; i++)
		if (old[i])
			*find_named(d, fd_object_at(d, old[i])->o.name) = old[i];
}

/* The first one of a name is the one that is found. */
static void note_named(struct fd_dump *d, uint32_t number)
{
	uint32_t *slot;

	if (d->named_count * 2 >= d->named_slots)
		grow_named(d);
	slot = find_named(d, fd_object_at(d, number)->o.name);
	if (*slot)
		return;
	*slot = number;
	d->named_count++;
}

uint32_t fd_object_named(const struct fd_dump *d, uint32_t name)
{
	return d->named_slots ? *find_named(d, name) : 0;
}

uint32_t fd_object_add(struct fd_dump *d, const struct fd_object *o)
{
	buf_push(&d->objects, struct fd_object, o);
	if (o->o.kind == IMAGE_OBJECT_FILE)
		note_named(d, object_count(d));
	note_inode(d, object_count(d));
	return object_count(d);
}

uint32_t fd_object_of(struct fd_dump *d, const struct fd_source *s, enum image_object_kind kind)
{
	uint32_t number = fd_object_find(d, s->st.st_dev, s->st.st_ino);
	cleanup_free char *path = NULL;
	struct fd_object o = {
		.o =
			{
				.kind = kind,
				.dev = s->st.st_dev,
				.inode = s->st.st_ino,
				.mode = s->st.st_mode & 07777,
				.size = S_ISREG(s->st.st_mode) ? s->st.st_size : 0,
				.flags = S_ISREG(s->st.st_mode) ? fd_huge_shift(s->dup) : 0,
			},
		.pid = s->pid,
		.task = s->task,
		.fd = s->fd,
	};

	if (number)
		return number;
	path = fd_source_path(s);
	o.o.name = image_writer_string(d->job, path);
	o.text = fd_source_text(s);
	o.link = xstrdup(s->link);
	o.file = xasprintf("/proc/%d/fd/%d", s->task, s->fd);
	return fd_object_add(d, &o);
}

/* Contents while they are written: an open file, or bytes in memory. */
struct contents {
	int fd; /* -1: bytes */
	const char *bytes;
	uint64_t from, size; /* what is below or behind is not looked at */
	const char *what;
};

static int read_contents(
	void *context, uint64_t address, void *data, size_t size, struct err *e)
{
	const struct contents *c = context;
	size_t have = address < c->size ? c->size - address : 0;

	if (have > size)
		have = size;
	memset((char *)data + have, 0, size - have);
	if (!have)
		return 0;
	if (c->fd >= 0)
		return pread_all(c->fd, data, have, address, c->what, e);
	memcpy(data, c->bytes + address, have);
	return 0;
}

static void add_run(
	struct buf *runs, struct contents *c, uint32_t object, uint64_t start, uint64_t end)
{
	struct block_run run = {
		.address = align_down(start, IMAGE_BLOCK),
		.object = object,
		.read = read_contents,
		.context = c,
		.file = c->fd >= 0 && !(end % IMAGE_BLOCK) ? &c->fd : NULL,
	};
	size_t count = buf_count(runs, struct block_run);

	/* Neighbours may share a block. */
	if (count) {
		const struct block_run *last = buf_at(runs, struct block_run, count - 1);

		if (run.address < last->address + last->size)
			run.address = last->address + last->size;
	}
	end = align_up(end, IMAGE_BLOCK);
	if (run.address >= end)
		return;
	run.size = end - run.address;
	buf_push(runs, struct block_run, &run);
}

/* A file system can share whole blocks only. */
static void add_runs(
	struct buf *runs, struct contents *c, uint32_t object, uint64_t start, uint64_t end)
{
	uint64_t whole = align_down(end, IMAGE_BLOCK);

	if (whole > start)
		add_run(runs, c, object, start, whole);
	if (end > whole)
		add_run(runs, c, object, whole > start ? whole : start, end);
}

/* @own: the position may be moved, as nobody else shares it. */
static int find_runs(
	struct buf *runs, struct contents *c, uint32_t object, bool own, struct err *e)
{
	off_t data, hole;

	if (c->fd < 0 || !own) {
		add_runs(runs, c, object, c->from, c->size);
		return 0;
	}
	for (uint64_t at = c->from; at < c->size; at = hole) {
		data = lseek(c->fd, at, SEEK_DATA);
		if (data < 0 && errno == ENXIO)
			return 0;
		hole = data < 0 ? -1 : lseek(c->fd, data, SEEK_HOLE);
		if (hole < 0)
			return err_set(e, errno, "cannot find the data of %s", c->what);
		add_runs(runs, c, object, data,
			(uint64_t)hole < c->size ? (uint64_t)hole : c->size);
	}
	return 0;
}

int fd_object_open(const struct fd_object *o)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY;

	int fd;

	if (o->o.kind == IMAGE_OBJECT_SHM_FILE) {
		/* fd_objects_free() ends it. */
		fd_reopen_prepare(o->file, flags);
		return fd_reopen(o->file, flags);
	}
	/* That it has been read is to be seen by nobody; only its owner may ask for that. */
	fd = open(o->file, flags | O_NOATIME);
	return fd < 0 && errno == EPERM ? open(o->file, flags) : fd;
}

/* The file's mode may not let us open it again; the process's own descriptor can then do, if
 * it is one for reading. */
static int open_contents(const struct fd_object *o, bool *own, struct err *e)
{
	cleanup_fd int fd = fd_object_open(o);
	int code = errno, pidfd, flags;

	*own = fd >= 0;
	if (fd < 0 && o->fd >= 0) {
		pidfd = fd_task_open(o->pid, o->task, e);
		if (pidfd < 0)
			return -1;
		fd = syscall(SYS_pidfd_getfd, pidfd, o->fd, 0);
		close(pidfd);
		flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);
		if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY)
			return err_set(e, code, "its contents cannot be read");
	}
	if (fd < 0)
		return err_set(e, code, "its contents cannot be read");
	return steal_fd(&fd);
}

/* A file that the program can do without until the restart. */
static int leave_out(struct fd_object *o, const char *why)
{
	o->o.flags |= IMAGE_FILE_NOT_SAVED;
	notice_add("%s is not saved: %s", o->text, why);
	return 0;
}

/* Others may have made the file shorter since it was found. */
static void clip_size(struct fd_object *o, int fd)
{
	struct stat st;

	if (o->o.kind == IMAGE_OBJECT_FILE && !fstat(fd, &st) &&
		(uint64_t)st.st_size < o->o.size)
		o->o.size = st.st_size;
}

static int write_contents(struct fd_dump *d, uint32_t number, struct err *e)
{
	struct fd_object *o = fd_object_at(d, number);
	struct contents c = {.fd = -1, .what = o->text};
	struct blocks_to_write to_write = {.writer = d->job};
	cleanup_buf struct buf runs = {0};
	cleanup_fd int fd = -1;
	bool own = false;

	if (fd_hidden_save(d, number, e))
		return -1;
	if (object_kind_of(o->o.kind)->is_bytes) {
		c.bytes = o->bytes.data;
		c.size = o->bytes.len;
	} else if (o->file) {
		fd = open_contents(o, &own, e);
		if (fd < 0 && o->o.flags & IMAGE_FILE_IF_MISSING)
			return leave_out(o, "cannot be read");
		if (fd < 0)
			return err_prefix(e, "%s", o->text);
		clip_size(o, fd);
		c.fd = fd;
		c.size = o->o.size;
		if (o->has_part) {
			c.from = o->part_from;
			c.size = o->part_to < c.size ? o->part_to : c.size;
		}
	}
	if (find_runs(&runs, &c, number, own, e))
		return -1;
	to_write.runs = runs.data;
	to_write.run_count = buf_count(&runs, struct block_run);
	return blocks_write(&to_write, e);
}

/* Before reading its contents sets the time of access. */
static void write_attributes(struct fd_dump *d, uint32_t number)
{
	const struct fd_object *o = fd_object_at(d, number);

	if (o->file && object_kind_of(o->o.kind)->has_attributes)
		fd_attributes_dump(d->job, number, o->file);
}

/* What was found by its name may have been removed by others since, or have another file in its
 * place. A descriptor of the file, for the caller to close, which is what it is read by; -1: it is
 * gone, and no part of the checkpoint. */
static int hold_file(struct fd_object *o)
{
	cleanup_fd int fd = open(o->file, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	free(o->file);
	o->file = NULL;
	if (fd < 0 || fstat(fd, &st) || st.st_dev != o->file_dev || st.st_ino != o->file_ino) {
		leave_out(o, "another program has removed or replaced it");
		return -1;
	}
	o->file = xasprintf("/proc/self/fd/%d", fd);
	return steal_fd(&fd);
}

static void write_object(struct fd_dump *d, const struct image_object *o)
{
	/* To a trecr that does not know them these were all files to be put back. */
	if (o->kind == IMAGE_OBJECT_FILE && o->flags & ~IMAGE_FILE_ABSENT)
		image_writer_incompat(d->job, IMAGE_INCOMPAT_NAMED);
	if (o->kind == IMAGE_OBJECT_FILE && o->flags & IMAGE_FILE_LINK)
		image_writer_incompat(d->job, IMAGE_INCOMPAT_LINKS);
	image_writer_note(d->job, IMAGE_NOTE_OBJECTS, o, sizeof(*o));
}

int fd_objects_write(struct fd_dump *d, struct err *e)
{
	if (fd_hidden_look(d, e))
		return -1;
	for (uint32_t n = 1; n <= object_count(d); n++) {
		cleanup_fd int held =
			fd_object_at(d, n)->file_ino ? hold_file(fd_object_at(d, n)) : -1;

		(void)held; /* read by its path below /proc/self/fd */
		write_attributes(d, n);
		if (write_contents(d, n, e))
			return -1;
		write_object(d, &fd_object_at(d, n)->o);
	}
	return 0;
}

void fd_object_free(struct fd_object *o)
{
	free(o->text);
	free(o->link);
	free(o->file);
	buf_free(&o->bytes);
	buf_free(&o->mapped);
}

void fd_objects_free(struct fd_dump *d)
{
	for (uint32_t n = 1; n <= object_count(d); n++)
		fd_object_free(fd_object_at(d, n));
	buf_free(&d->objects);
	free(d->named);
	free(d->by_inode);
	d->by_inode = NULL;
	d->inode_slots = 0;
	d->named = NULL;
	d->named_slots = d->named_count = 0;
	buf_free(&d->lowers);
	buf_free(&d->sets);
	fd_reopen_end();
}
