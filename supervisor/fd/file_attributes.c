/*
 * file_attributes.c - reads them by path, as a descriptor may be for writing only; sets what the user
 * and the file system allow, as it is with the owner.
 */
#include "supervisor/fd/file_attributes.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/util.h"

/* What chattr(1) can set on any file; others say how a file system keeps its contents. */
#define INODE_FLAGS                                                                            \
	(FS_SYNC_FL | FS_IMMUTABLE_FL | FS_APPEND_FL | FS_NODUMP_FL | FS_NOATIME_FL |          \
		FS_DIRSYNC_FL)

#define SECOND 1000000000ll

/* ---- checkpoint ---- */

/* Its open file is of no other use: opening anew cannot move the position of the program's. */
static void read_inode(const char *path, struct image_file_attributes *a)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	uint64_t hint;
	int flags;

	if (fd < 0)
		return;
	if (!ioctl(fd, FS_IOC_GETFLAGS, &flags))
		a->inode_flags = flags & INODE_FLAGS;
	if (!fcntl(fd, F_GET_RW_HINT, &hint))
		a->write_hint = hint;
}

static void dump_value(
	struct image_writer *job, uint32_t number, const char *path, const char *name)
{
	cleanup_free char *value = xmalloc(XATTR_SIZE_MAX);
	ssize_t size = getxattr(path, name, value, XATTR_SIZE_MAX);
	struct image_xattr x = {.object = number, .name = image_writer_string(job, name)};

	if (size < 0)
		return;
	x.size = size;
	image_writer_note(job, IMAGE_NOTE_XATTRS, &x, sizeof(x));
	image_writer_note(job, IMAGE_NOTE_XATTR_VALUES, value, size);
}

static void dump_extended(struct image_writer *job, uint32_t number, const char *path)
{
	cleanup_free char *names = xmalloc(XATTR_LIST_MAX);
	ssize_t size = listxattr(path, names, XATTR_LIST_MAX);

	for (const char *name = names; name < names + size; name += strlen(name) + 1)
		dump_value(job, number, path, name);
}

/* Until the year 2262. */
static int64_t timespec_ns(const struct timespec *t)
{
	return t->tv_sec * SECOND + t->tv_nsec;
}

void fd_attributes_dump(struct image_writer *job, uint32_t number, const char *path)
{
	struct image_file_attributes a = {.object = number};
	struct stat st;

	if (stat(path, &st))
		return;
	a.atime_ns = timespec_ns(&st.st_atim);
	a.mtime_ns = timespec_ns(&st.st_mtim);
	read_inode(path, &a);
	image_writer_note(job, IMAGE_NOTE_FILE_ATTRIBUTES, &a, sizeof(a));
	dump_extended(job, number, path);
}

/* ---- restart ---- */

void fd_attributes_restore_extended(const struct image *job, uint32_t number, int fd)
{
	const struct image_xattr *x;
	const char *value;
	size_t count, size;

	x = image_note_array(job, IMAGE_NOTE_XATTRS, struct image_xattr, &count);
	value = image_note_array(job, IMAGE_NOTE_XATTR_VALUES, char, &size);
	for (size_t i = 0; i < count; value += x[i++].size)
		if (x[i].object == number)
			(void)!fsetxattr(fd, image_string(job, x[i].name), value, x[i].size, 0);
}

static struct timespec time_of(int64_t ns)
{
	int64_t rest = ns % SECOND;

	rest += rest < 0 ? SECOND : 0;
	return (struct timespec){(ns - rest) / SECOND, rest};
}

static void set_inode_flags(int fd, uint32_t wanted)
{
	int flags;

	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) || ((uint32_t)flags & INODE_FLAGS) == wanted)
		return;
	flags = (flags & ~INODE_FLAGS) | wanted;
	if (!ioctl(fd, FS_IOC_SETFLAGS, &flags))
		return;
	/* These two take a privilege (CAP_LINUX_IMMUTABLE). */
	flags &= ~(FS_IMMUTABLE_FL | FS_APPEND_FL);
	(void)!ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

void fd_attributes_restore(const struct image *job, uint32_t number, int fd)
{
	const struct image_file_attributes *a;
	size_t count;

	a = image_note_array(
		job, IMAGE_NOTE_FILE_ATTRIBUTES, struct image_file_attributes, &count);
	for (size_t i = 0; i < count; i++) {
		const struct timespec times[2] = {
			time_of(a[i].atime_ns), time_of(a[i].mtime_ns)};
		uint64_t hint = a[i].write_hint;

		if (a[i].object != number)
			continue;
		(void)!futimens(fd, times);
		if (hint)
			(void)!fcntl(fd, F_SET_RW_HINT, &hint);
		set_inode_flags(fd, a[i].inode_flags);
	}
}
