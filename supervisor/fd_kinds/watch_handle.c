/*
 * watch_handle.c - from the handle in fdinfo to a path: by open_by_handle_at(2), else by
 * watched_file_names.c.
 */
#include "supervisor/fd_kinds/watch_handle.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "lib/util.h"
#include "supervisor/fd_kinds/watched_file_names.h"

#ifndef AT_HANDLE_FID
#define AT_HANDLE_FID 0x200
#endif

dev_t watch_handle_device(const struct watch_handle *h)
{
	return makedev(h->device >> 20, h->device & 0xfffff);
}

static bool fill_handle(const struct watch_handle *h, struct file_handle *file)
{
	file->handle_bytes = h->bytes;
	file->handle_type = h->type;
	for (unsigned i = 0; i < h->bytes; i++) {
		unsigned byte;

		if (sscanf(h->text + 2 * i, "%2x", &byte) != 1)
			return false;
		file->f_handle[i] = byte;
	}
	return true;
}

/* Where file systems are joined to one (btrfs, overlayfs), stat(2) shows another device than
 * the kernel has inside. */
static bool has_handle(const struct watch_handle *h, const char *path)
{
	cleanup_free struct file_handle *want = xcalloc(1, sizeof(*want) + MAX_HANDLE_SZ);
	cleanup_free struct file_handle *got = xcalloc(1, sizeof(*got) + MAX_HANDLE_SZ);
	int mount;

	if (!h->bytes || h->bytes > MAX_HANDLE_SZ || !fill_handle(h, want))
		return false;
	for (int i = 0; i < 2; i++) {
		got->handle_bytes = MAX_HANDLE_SZ;
		if (!name_to_handle_at(AT_FDCWD, path, got, &mount, i ? AT_HANDLE_FID : 0) &&
			got->handle_bytes == want->handle_bytes &&
			got->handle_type == want->handle_type &&
			!memcmp(got->f_handle, want->f_handle, got->handle_bytes))
			return true;
	}
	return false;
}

bool watch_handle_leads_to(const struct watch_handle *h, const char *path)
{
	struct stat st;

	return !lstat(path, &st) && st.st_ino == h->inode &&
	       (st.st_dev == watch_handle_device(h) || has_handle(h, path));
}

static bool same_file(int fd, const char *path)
{
	struct stat a, b;

	return !fstat(fd, &a) && !lstat(path, &b) && a.st_ino == b.st_ino &&
	       a.st_dev == b.st_dev;
}

/* By its handle, in the file system that is mounted at @mount. */
static char *find_by_handle(const struct watch_handle *h, const char *mount)
{
	cleanup_free struct file_handle *file = xcalloc(1, sizeof(*file) + MAX_HANDLE_SZ);
	cleanup_fd int root = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_free char *link = NULL;
	cleanup_fd int fd = -1;
	char *path;

	if (root < 0 || h->bytes > MAX_HANDLE_SZ || !fill_handle(h, file))
		return NULL;
	fd = open_by_handle_at(root, file, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	link = xasprintf("/proc/self/fd/%d", fd);
	path = read_link(link, NULL);
	if (path && same_file(fd, path))
		return path;
	free(path);
	return NULL;
}

/* Of file systems that are mounted, the place: fields 3 and 5 of @mountinfo (man
 * proc_pid_mountinfo). The one of the root directory of a chroot is not listed unless it is
 * mounted there. */
static char *find_by_mounts(const struct watch_handle *h, const char *mountinfo)
{
	char mount[PATH_MAX], *found = NULL;
	dev_t device = watch_handle_device(h);
	struct stat root;

	for (const char *line = mountinfo; !found && fd_mount_next(&line, device, mount);)
		found = find_by_handle(h, mount);
	if (!found && !stat("/", &root) && root.st_dev == device)
		found = find_by_handle(h, "/");
	return found;
}

bool fd_mount_next(const char **mountinfo, dev_t device, char mount[PATH_MAX])
{
	for (const char *line = *mountinfo, *end; (end = strchr(line, '\n')); line = end + 1) {
		unsigned a, b;

		if (sscanf(line, "%*d %*d %u:%u %*s %4095s", &a, &b, mount) == 3 &&
			makedev(a, b) == device) {
			*mountinfo = end + 1;
			return true;
		}
	}
	return false;
}

void watch_paths_find(const struct watch_handle *h, size_t count, pid_t task, char **paths)
{
	cleanup_free char *file = xasprintf("/proc/%d/mountinfo", task);
	cleanup_free char *mountinfo = NULL;
	size_t len;

	if (read_file(file, &mountinfo, &len, NULL))
		mountinfo = xstrdup("");
	for (size_t i = 0; i < count; i++)
		if (!paths[i])
			paths[i] = find_by_mounts(&h[i], mountinfo);
	watch_paths_search(h, count, task, mountinfo, paths);
}

char *watch_path_find(const struct watch_handle *h, pid_t task)
{
	char *path = NULL;

	watch_paths_find(h, 1, task, &path);
	return path;
}

int watch_handle_read(const char *line, struct watch_handle *h)
{
	const char *at = strstr(line, "ino:"), *text = strstr(line, "f_handle:");
	const char *kind = strstr(line, "fhandle-bytes:"), *end = strchrnul(line, '\n');

	*h = (struct watch_handle){0};
	if (!at || at > end ||
		sscanf(at, "ino:%" SCNx64 " sdev:%x", &h->inode, &h->device) != 2)
		return -1;
	if (text && text < end && kind &&
		sscanf(kind, "fhandle-bytes:%x fhandle-type:%x", &h->bytes, &h->type) == 2)
		h->text = text + 9;
	else
		h->bytes = 0;
	return 0;
}
