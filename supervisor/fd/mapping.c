/*
 * fd/mapping.c - shared mappings of what has no name: the object behind one.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/memfd.h>
#include <string.h>

#include "supervisor/fd/object.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static bool starts_with(const char *s, const char *start)
{
	return !strncmp(s, start, strlen(start));
}

static bool is_deleted(const char *name)
{
	static const char suffix[] = " (deleted)";
	size_t n = strlen(name), k = sizeof(suffix) - 1;

	return n > k && !strcmp(name + n - k, suffix);
}

/* What @name in /proc/PID/maps can be told to be that is not for us to save, or NULL. */
static const char *refused(const struct fd_dump *d, const char *name, uint64_t dev)
{
	if (starts_with(name, "/anon_hugepage"))
		return "shared memory in huge pages is not supported yet";
	if (starts_with(name, "/[aio]"))
		return "asynchronous I/O contexts (io_setup) are not supported yet";
	if (starts_with(name, "/secretmem"))
		return "secret memory (memfd_secret) is not supported";
	if (name[0] != '/')
		return "shared mappings of this kind are not supported yet";
	if (starts_with(name, "/memfd:") && is_deleted(name) && dev != d->memory_device)
		return "a memfd in huge pages is not supported yet";
	return NULL;
}

/* The kernel's numbers for a file differ between maps and fstat(2) on some file systems
 * (btrfs, overlayfs), the name and the inode number do not. */
static uint32_t find_object(
	const struct fd_dump *d, uint64_t dev, uint64_t inode, const char *name)
{
	uint32_t number = fd_object_find(d, dev, inode);
	size_t count = buf_count(&d->objects, struct fd_object);

	for (uint32_t n = 1; !number && n <= count; n++) {
		const struct fd_object *o = fd_object_at(d, n);

		if (o->o.inode == inode && o->o.kind == IMAGE_OBJECT_UNLINKED && o->link &&
			!strcmp(o->link, name))
			number = n;
	}
	return number;
}

static enum image_object_kind kind_of(const struct fd_dump *d, const char *name, uint64_t dev)
{
	if (dev != d->memory_device)
		return IMAGE_OBJECT_UNLINKED;
	return starts_with(name, "/memfd:") ? IMAGE_OBJECT_MEMFD : IMAGE_OBJECT_SHARED_ANON;
}

/* The mapping itself leads to the file, for those who have CAP_CHECKPOINT_RESTORE. */
static void look_through_mapping(struct fd_object *o)
{
	cleanup_fd int fd = open(o->file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	int seals;

	if (fd < 0 || fstat(fd, &st)) {
		free(o->file);
		o->file = NULL;
		return;
	}
	o->o.size = st.st_size;
	o->o.mode = st.st_mode & 07777;
	seals = fcntl(fd, F_GET_SEALS);
	if (o->o.kind == IMAGE_OBJECT_MEMFD && seals > 0)
		o->o.args[0] = seals;
	if (o->o.kind == IMAGE_OBJECT_UNLINKED)
		o->o.args[0] = st.st_nlink;
}

static uint32_t add_object(struct fd_dump *d, pid_t pid, uint64_t start, uint64_t end,
	const char *name, uint64_t dev, uint64_t inode)
{
	cleanup_free char *path = xstrdup(name);
	struct fd_object o = {
		.o =
			{
				.kind = kind_of(d, name, dev),
				.dev = dev,
				.inode = inode,
				.mode = 0600,
			},
		.pid = pid,
		.task = pid,
		.fd = -1,
		.text = xasprintf("shared memory %s of process %d", name, pid),
		.link = xstrdup(name),
		.file = xasprintf("/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, start, end),
	};

	if (is_deleted(path))
		*strrchr(path, ' ') = 0;
	o.o.name = image_writer_string(d->job, path);
	look_through_mapping(&o);
	return fd_object_add(d, &o);
}

int fd_dump_mapping(struct fd_dump *d, pid_t pid, uint64_t start, uint64_t end, uint64_t offset,
	const char *name, uint64_t dev, uint64_t inode, bool *need_memory, struct err *e)
{
	const char *reason = refused(d, name, dev);
	uint32_t number = find_object(d, dev, inode, name);
	struct fd_object *o;
	struct stat st;

	*need_memory = false;
	if (reason)
		return err_set(e, 0, "mapping %" PRIx64 "-%" PRIx64 " (%s) of process %d: %s",
			start, end, name, pid, reason);
	/* A name may end in " (deleted)" by itself. */
	if (!number && (!is_deleted(name) || (!lstat(name, &st) && st.st_ino == inode)))
		return 0;
	if (!number)
		number = add_object(d, pid, start, end, name, dev, inode);
	o = fd_object_at(d, number);
	if (o->o.kind == IMAGE_OBJECT_MEMFD && o->o.args[0] & F_SEAL_FUTURE_WRITE)
		return err_set(e, 0,
			"mapping %" PRIx64 "-%" PRIx64
			" (%s) of process %d: it is sealed with F_SEAL_FUTURE_WRITE, so that "
			"it could not be mapped again",
			start, end, name, pid);
	if (!o->file) {
		*need_memory = true;
		if (o->o.size < offset + (end - start))
			o->o.size = offset + (end - start);
	}
	return number;
}
