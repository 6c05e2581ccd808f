/*
 * shm_file.c - which mapped files are such; before a restart, whether their names are free;
 * and making them, with a list of those made, as a restart that fails removes them again.
 */
#include "supervisor/fd/shm_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "ckpt/image_names.h"
#include "supervisor/fd/parent_directories.h"
#include "supervisor/fd/reopen_despite_mode.h"
#include "supervisor/fd/trusted_path.h"

bool fd_shm_file_is_memory(const char *path)
{
	struct statfs fs;

	return !statfs(path, &fs) && fs.f_type == TMPFS_MAGIC;
}

static bool leads_to(const char *path, uint64_t dev, uint64_t inode)
{
	struct stat st;

	return !lstat(path, &st) && st.st_dev == dev && st.st_ino == inode;
}

/* sem_open(3) makes a file, and gives it its name by link(2) only when it is complete: what a
 * mapping shows is the name that the file had before. */
static char *other_name(const char *shown, uint64_t dev, uint64_t inode)
{
	cleanup_free char *dir = xstrdup(shown);
	char *slash = strrchr(dir, '/'), *name = NULL;
	struct dirent *entry;
	DIR *d;

	*slash = 0;
	d = *dir && fd_shm_file_is_memory(dir) ? opendir(dir) : NULL;
	while (d && !name && (entry = readdir(d))) {
		if (entry->d_ino != inode)
			continue;
		name = xasprintf("%s/%s", dir, entry->d_name);
		if (!leads_to(name, dev, inode)) {
			free(name);
			name = NULL;
		}
	}
	if (d)
		closedir(d);
	return name;
}

char *fd_shm_file_name(const char *shown, uint64_t dev, uint64_t inode)
{
	return leads_to(shown, dev, inode) ? xstrdup(shown) : other_name(shown, dev, inode);
}

/* The one at or after number *next (from 0) in the image; NULL: no more. */
static const struct image_object *next_object(const struct image *job, size_t *next)
{
	const struct image_object *o;
	size_t count;

	o = image_note_array(job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	while (*next < count)
		if (o[(*next)++].kind == IMAGE_OBJECT_SHM_FILE)
			return &o[*next - 1];
	return NULL;
}

bool fd_shm_file_in(const struct image *job, const char *path)
{
	const struct image_object *o;
	size_t count;

	o = image_note_array(job, IMAGE_NOTE_OBJECTS, struct image_object, &count);
	for (uint32_t n = 0; (n = image_object_named(job, path, n));)
		if (o[n - 1].kind == IMAGE_OBJECT_SHM_FILE)
			return true;
	return false;
}

/* A lease for writing is given only to who alone has the file open; mappings count, as they
 * keep it open (check_conflicting_open(), fs/locks.c). */
static int check_unused(int fd, const char *path, struct err *e)
{
	/* Should somebody open it before we let go, that must not end us. */
	if (fcntl(fd, F_SETSIG, SIGURG))
		return err_set(e, errno, "cannot find out who uses %s", path);
	if (!fcntl(fd, F_SETLEASE, F_WRLCK)) {
		/* The lease ends with the descriptor as well. */
		(void)fcntl(fd, F_SETLEASE, F_UNLCK);
		return 0;
	}
	if (errno == EAGAIN)
		return err_set(e, 0,
			"%s, shared memory of the program, is in use by another process", path);
	return err_set(e, errno, "cannot tell whether %s is in use", path);
}

/* The file that is open as @fd may be emptied: it is what a program of @owner could have left.
 */
static int check_file(int fd, const char *path, uid_t owner, struct err *e)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) || fstatfs(fd, &fs))
		return err_set(e, errno, "cannot examine %s", path);
	if (!S_ISREG(st.st_mode) || st.st_uid != owner || fs.f_type != TMPFS_MAGIC)
		return err_set(e, 0,
			"cannot put back %s, shared memory of the program: another file has "
			"that name",
			path);
	return check_unused(fd, path, e);
}

#define OPEN_FLAGS (O_RDWR | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK)

static int check_shm_file(const char *path, const struct image_object *o, struct err *e)
{
	cleanup_fd int fd = -1;

	if (fd_check_trusted(path, O_NOFOLLOW, e))
		return -1;
	fd_reopen_prepare(path, OPEN_FLAGS);
	fd = fd_reopen(path, OPEN_FLAGS);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return err_set(
			e, errno, "cannot put back %s, shared memory of the program", path);
	return check_file(fd, path, o->args[1], e);
}

int fd_shm_files_check(const struct checkpoint *c, struct err *e)
{
	const struct image_object *o;
	size_t next = 0;

	while ((o = next_object(c->job, &next)))
		if (check_shm_file(image_string(c->job, o->name), o, e))
			return -1;
	return 0;
}

/* Shared with the process that makes the files; by what they are, as anybody can give another
 * file one of their names meanwhile. */
static struct made_files {
	size_t count;
	struct {
		dev_t dev;
		ino_t inode;
	} files[];
} * made;
static size_t made_size;

int fd_shm_files_begin(const struct checkpoint *c, struct err *e)
{
	size_t next = 0;

	made_size = sizeof(*made);
	while (next_object(c->job, &next))
		made_size += sizeof(made->files[0]);
	made = mmap(NULL, made_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (made != MAP_FAILED)
		return 0;
	made = NULL;
	return err_set(e, errno, "cannot allocate memory");
}

static void remember_made(int fd)
{
	struct stat st;

	if (!made || made_size < sizeof(*made) + (made->count + 1) * sizeof(made->files[0]) ||
		fstat(fd, &st))
		return;
	made->files[made->count].dev = st.st_dev;
	made->files[made->count].inode = st.st_ino;
	made->count++;
}

static void remove_made(const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	cleanup_free char *above = xasprintf("%.*s", (int)(name - path), path);
	cleanup_fd int in = fd_open_trusted(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (in < 0 || fstatat(in, name, &st, AT_SYMLINK_NOFOLLOW))
		return;
	for (size_t i = 0; i < made->count; i++)
		if (made->files[i].dev == st.st_dev && made->files[i].inode == st.st_ino) {
			(void)unlinkat(in, name, 0); /* somebody was faster: all the same */
			return;
		}
}

void fd_shm_files_end(const struct checkpoint *c, bool remove)
{
	const struct image_object *o;
	size_t next = 0;

	if (!made)
		return;
	while (remove && (o = next_object(c->job, &next)))
		remove_made(image_string(c->job, o->name));
	munmap(made, made_size);
	made = NULL;
}

/* O_CREAT on another user's file is refused in a directory like /dev/shm, even to root
 * (fs.protected_regular). What is there is looked at again: anybody may have made it since. */
int fd_shm_file_open(const struct image *job, const char *path, uid_t owner, struct err *e)
{
	/* The program's memory does not depend on the directory's group. */
	cleanup_fd int directory = fd_parents_open(job, path, owner | ~0ull << 32, true);
	cleanup_fd int fd = directory < 0 ? -1
					  : openat(directory, strrchr(path, '/') + 1,
						    OPEN_FLAGS | O_CREAT | O_EXCL, 0600);
	bool is_new = fd >= 0;

	if (fd < 0 && errno == EEXIST) {
		fd = fd_reopen(path, OPEN_FLAGS);
		if (fd >= 0 && check_file(fd, path, owner, e))
			return -1;
	}
	if (fd >= 0 && is_new)
		remember_made(fd);
	if (fd < 0)
		return err_set(
			e, errno, "cannot create %s, shared memory of the program", path);
	if (ftruncate(fd, 0))
		return err_set(e, errno, "cannot empty %s", path);
	return steal_fd(&fd);
}
