/*
 * swap.c - a library to be preloaded into trecr's own processes, which plays another user: behind
 * each bind(2) to the socket file TRECR_SWAP it puts a symbolic link to TRECR_SWAP_FOR there. The
 * directory TRECR_SWAP_DIRECTORY it replaces by such a link, of the same owner, when a file in it
 * has been written (fsync(2)), root is about to bind a socket in it, or any file is about to be renamed,
 * or it is about to be read itself. In the place of a temporary directory (.trecr-*) that is opened again it puts the
 * directory TRECR_SWAP_TEMPORARY that lies beside it. In the place of a FIFO that has just been made by a temporary
 * name it puts one for anybody to read, which is the file TRECR_SWAP_FIFO, too. The file TRECR_SWAP_FILE it makes, for
 * anybody to write to, when that is about to be made anew.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static void swap_directory(void);

static bool is_in_directory(const char *name)
{
	const char *path = getenv("TRECR_SWAP_DIRECTORY");

	return path && !strncmp(name, path, strlen(path)) && name[strlen(path)] == '/';
}

int bind(int fd, const struct sockaddr *address, socklen_t size)
{
	int (*real)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "bind");
	const char *path = getenv("TRECR_SWAP"), *target = getenv("TRECR_SWAP_FOR");
	const struct sockaddr_un *name = (const struct sockaddr_un *)address;
	int r;

	/* Not where root tries it as the file's owner first. */
	if (address->sa_family == AF_UNIX && is_in_directory(name->sun_path) &&
		!setfsuid((uid_t)-1))
		swap_directory();
	r = real(fd, address, size);
	if (r || !path || !target || address->sa_family != AF_UNIX ||
		strcmp(name->sun_path, path))
		return r;
	if (unlink(path) || symlink(target, path))
		abort();
	return 0;
}

/* Whatever root directory a process has by then. */
static int root = -1;

static void __attribute__((constructor)) keep_root(void)
{
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Once: it is a link then. */
static void swap_directory(void)
{
	const char *path = getenv("TRECR_SWAP_DIRECTORY"), *target = getenv("TRECR_SWAP_FOR");
	char was[4096];
	struct stat st;

	if (!path || !target || fstatat(root, path + 1, &st, AT_SYMLINK_NOFOLLOW) ||
		S_ISLNK(st.st_mode))
		return;
	snprintf(was, sizeof(was), "%s.was", path);
	if (syscall(SYS_renameat, root, path + 1, root, was + 1) ||
		symlinkat(target, root, path + 1) ||
		fchownat(root, path + 1, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW))
		abort();
}

/* Whether @fd is the directory, or a file in it. */
static bool leads_there(int fd, bool itself)
{
	const char *path = getenv("TRECR_SWAP_DIRECTORY");
	char link[64], file[4096] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (!path || readlink(link, file, sizeof(file) - 1) < 0)
		return false;
	return itself ? !strcmp(file, path) : is_in_directory(file);
}

int fsync(int fd)
{
	int r = syscall(SYS_fsync, fd);

	if (leads_there(fd, false))
		swap_directory();
	return r;
}

DIR *fdopendir(int fd)
{
	DIR *(*real)(int) = dlsym(RTLD_NEXT, "fdopendir");

	if (leads_there(fd, true))
		swap_directory();
	return real(fd);
}

/* Of user 65534. */
static void make_file(const char *path)
{
	int fd = syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_EXCL | O_WRONLY, 0600);

	if (fd < 0)
		return;
	if (fchown(fd, 65534, 65534) || fchmod(fd, 0666) || close(fd))
		abort();
}

static bool is_temporary(const char *name)
{
	return !strncmp(name, ".trecr-", 7);
}

static void swap_temporary(int in, const char *name)
{
	const char *other = getenv("TRECR_SWAP_TEMPORARY");
	char was[256];

	snprintf(was, sizeof(was), "%s.was", name);
	if (!other || syscall(SYS_faccessat, in, other, F_OK))
		return;
	if (syscall(SYS_renameat, in, name, in, was) ||
		syscall(SYS_renameat, in, other, in, name))
		abort();
}

int mkfifoat(int in, const char *name, mode_t mode)
{
	const char *other = getenv("TRECR_SWAP_FIFO");
	int r = syscall(SYS_mknodat, in, name, S_IFIFO | mode, 0);

	if (r || !other || !is_temporary(name))
		return r;
	unsetenv("TRECR_SWAP_FIFO"); /* another is tried then */
	if (unlinkat(in, name, 0) || syscall(SYS_mknodat, AT_FDCWD, other, S_IFIFO | 0600, 0) ||
		chown(other, 65534, 65534) || chmod(other, 0666) ||
		linkat(AT_FDCWD, other, in, name, 0))
		abort();
	return 0;
}

int openat64(int in, const char *name, int flags, ...)
{
	const char *path = getenv("TRECR_SWAP_FILE");
	static unsigned opened;
	mode_t mode = 0;
	va_list ap;

	if (flags & (O_CREAT | __O_TMPFILE)) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	if (path && (flags & O_EXCL) && !strcmp(strrchr(path, '/') + 1, name))
		make_file(path);
	if (is_temporary(name) && flags & O_DIRECTORY && opened++)
		swap_temporary(in, name);
	return syscall(SYS_openat, in, name, flags, mode);
}

int rename(const char *from, const char *to)
{
	swap_directory();
	return syscall(SYS_rename, from, to);
}

int renameat(int in, const char *from, int to_in, const char *to)
{
	swap_directory();
	return syscall(SYS_renameat, in, from, to_in, to);
}
