#include "supervisor/fd/handle.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "lib/shown_path.h"
#include "lib/util.h"

static bool is_it(const struct fd_handle *h, const char *path)
{
	struct stat st;

	return !stat(path, &st) && st.st_ino == h->inode &&
	       st.st_dev == makedev(h->device >> 20, h->device & 0xfffff);
}

static bool fill_handle(const struct fd_handle *h, struct file_handle *file)
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

/* By its handle, in the file system that is mounted at @mount. */
static char *find_by_handle(const struct fd_handle *h, const char *mount)
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
	if (path && is_it(h, path))
		return path;
	free(path);
	return NULL;
}

/* @path, what is above it, and what is in it. */
static char *find_near(const struct fd_handle *h, const char *path)
{
	cleanup_free char *above = xstrdup(path);
	struct dirent *entry;
	char *found = NULL;
	DIR *dir;

	for (char *slash; (slash = strrchr(above, '/'));) {
		if (is_it(h, *above ? above : "/"))
			return xstrdup(*above ? above : "/");
		if (slash == above && !above[1])
			break;
		slash[slash == above] = 0;
	}
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir))) {
		cleanup_free char *inside = xasprintf("%s/%s", path, entry->d_name);

		if (entry->d_ino == h->inode && is_it(h, inside))
			found = steal_ptr(inside);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* In the working directory of @task, and where it has files open. */
static char *find_in_process(const struct fd_handle *h, pid_t task)
{
	cleanup_free char *list = xasprintf("/proc/%d/fd", task);
	cleanup_free char *cwd = xasprintf("/proc/%d/cwd", task);
	cleanup_free char *home = read_shown_link(cwd, NULL);
	char *found = home ? find_near(h, home) : NULL;
	DIR *dir = opendir(list);
	struct dirent *entry;

	while (dir && !found && (entry = readdir(dir))) {
		cleanup_free char *link = xasprintf("%s/%s", list, entry->d_name);
		cleanup_free char *path = read_shown_link(link, NULL);
		char *slash = path ? strrchr(path, '/') : NULL;

		if (!slash || path[0] != '/')
			continue;
		found = find_near(h, path);
		if (slash > path && !found) {
			*slash = 0;
			found = find_near(h, path);
		}
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Of file systems that are mounted, the place: fields 3 and 5 of mountinfo (man
 * proc_pid_mountinfo). The one of the root directory of a chroot is not listed unless it is
 * mounted there. */
static char *find_by_mounts(const struct fd_handle *h, pid_t task)
{
	cleanup_free char *file = xasprintf("/proc/%d/mountinfo", task);
	cleanup_free char *text = NULL;
	char *found = NULL;
	struct stat root;
	size_t len;

	if (read_file(file, &text, &len, NULL))
		return NULL;
	for (char *line = text, *end; !found && (end = strchr(line, '\n')); line = end + 1) {
		char mount[PATH_MAX];
		unsigned a, b;

		*end = 0;
		if (sscanf(line, "%*d %*d %u:%u %*s %4095s", &a, &b, mount) == 3 &&
			a == h->device >> 20 && b == (h->device & 0xfffff))
			found = find_by_handle(h, mount);
	}
	if (!found && !stat("/", &root) &&
		root.st_dev == makedev(h->device >> 20, h->device & 0xfffff))
		found = find_by_handle(h, "/");
	return found;
}

char *fd_handle_find(const struct fd_handle *h, pid_t task)
{
	char *path = find_by_mounts(h, task);

	return path ? path : find_in_process(h, task);
}

int fd_handle_read(const char *line, struct fd_handle *h)
{
	const char *at = strstr(line, "ino:"), *text = strstr(line, "f_handle:");
	const char *kind = strstr(line, "fhandle-bytes:"), *end = strchrnul(line, '\n');

	*h = (struct fd_handle){0};
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
