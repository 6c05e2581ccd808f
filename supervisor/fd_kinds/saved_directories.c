/*
 * saved_directories.c - by what such directories are known, and what is in them.
 */
#include "supervisor/fd_kinds/saved_directories.h"

#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/image.h"
#include "lib/util.h"
#include "supervisor/fd_kinds/set_file_aside.h"

/* ---- which directories ---- */

static bool begins_with(const char *s, const char *begin)
{
	return !strncmp(s, begin, strlen(begin));
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n >= k && !strcmp(s + n - k, end);
}

static bool has_file(const char *directory, const char *name)
{
	cleanup_free char *path = xasprintf("%s/%s", directory, name);

	return !access(path, F_OK);
}

/*
 * By the name of a file in the directory itself, and of another one there:
 *
 * Redis 7 appends to an increment; which increments and which base count is in a manifest, and all are made
 * anew at each rewrite. LevelDB and RocksDB append to a manifest, whose name is in the file CURRENT; tables and
 * logs are made and removed by the manifest. MariaDB and MySQL have a catalogue of all tables in ibdata1, and files
 * for each table.
 */
static const struct {
	const char *begin, *end, *other;
} marks[] = {
	{"", ".incr.aof", "."},
	{"MANIFEST-", "", "CURRENT"},
	{"ibdata1", "", "mysql"},
};

static bool is_mark(const char *directory, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (begins_with(name, marks[i].begin) && ends_with(name, marks[i].end) &&
			has_file(directory, marks[i].other))
			return true;
	return false;
}

/*
 * By two that are there:
 *
 * PostgreSQL opens the segments of its tables as it needs them, and a page that is newer than the log is
 * an error to it. InfluxDB moves data from logs to tables, which it maps.
 */
static const char *const beneath[][2] = {
	{"global/pg_control", "PG_VERSION"},
	{"meta/meta.db", "wal"},
};

static bool has_beneath(const char *directory)
{
	for (size_t i = 0; i < ARRAY_SIZE(beneath); i++)
		if (has_file(directory, beneath[i][0]) && has_file(directory, beneath[i][1]))
			return true;
	return false;
}

/* Where anybody may make files, as in /tmp, another user could make those by which a set is known. */
bool fd_set_is_own(const char *directory, uid_t owner)
{
	struct stat st;

	return !stat(directory, &st) && S_ISDIR(st.st_mode) && !(st.st_mode & S_IWOTH) &&
	       (st.st_uid == geteuid() || !st.st_uid || st.st_uid == owner);
}

/* How far below the directory such a file may be. */
#define LEVELS 6

char *fd_set_of(const char *path, uid_t owner)
{
	char *directory = xstrdup(path), *end = strrchr(directory, '/');

	for (int level = 0; end && end > directory && level < LEVELS; level++) {
		*end = 0;
		if (((!level && is_mark(directory, end + 1)) || has_beneath(directory)) &&
			fd_set_is_own(directory, owner))
			return directory;
		end = strrchr(directory, '/');
	}
	free(directory);
	return NULL;
}

/* ---- what is in them ---- */

/* The first of them is unfinished when it is looked for. */
static bool is_checkpoint(int in, const char *name)
{
	struct stat st;
	unsigned number;

	return sscanf(name, "ckpt-%6u", &number) == 1 && !fstatat(in, name, &st, 0) &&
	       S_ISDIR(st.st_mode);
}

/* ckpt/store_dir.h */
static bool holds_checkpoints(DIR *dir)
{
	const struct dirent *entry;
	bool lock = false, checkpoint = false;

	while ((entry = readdir(dir))) {
		lock |= !strcmp(entry->d_name, "lock");
		checkpoint |= is_checkpoint(dirfd(dir), entry->d_name);
	}
	rewinddir(dir);
	return lock && checkpoint;
}

/* One that has been copied is in no directory of checkpoints. */
static bool holds_image(int in)
{
	cleanup_fd int fd = openat(
		in, IMAGE_JOB_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	Elf64_Ehdr header;

	return fd >= 0 && pread(fd, &header, sizeof(header), 0) == sizeof(header) &&
	       !memcmp(header.e_ident, ELFMAG, SELFMAG) && header.e_type == ET_CORE;
}

/* supervisor/job/member_files.h: supervisors hold them locked, under these names. */
static bool holds_members(DIR *dir, const char *name)
{
	static const char begin[] = "member ";
	const struct dirent *entry;
	bool member = false;

	if (strcmp(name, "ranks") != 0)
		return false;
	while (!member && (entry = readdir(dir))) {
		char text[sizeof(begin) - 1];
		cleanup_fd int fd = -1;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		fd = openat(dirfd(dir), entry->d_name,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		member = fd >= 0 && pread(fd, text, sizeof(text), 0) == sizeof(text) &&
			 !memcmp(text, begin, sizeof(text));
	}
	rewinddir(dir);
	return member;
}

static void tell_skipped(const struct fd_set_walk *w, const char *path, const char *why)
{
	if (w->skipped)
		w->skipped(w->arg, path, why);
}

static int skip_or_fail(
	const struct fd_set_walk *w, const char *path, const char *what, struct err *e)
{
	if (!w->skipped)
		return err_set(e, errno, "cannot look %s %s", what, path);
	tell_skipped(w, path, strerror(errno));
	return 0;
}

static int walk_directory(const struct fd_set_walk *w, int fd, const char *directory,
	const struct fd_set_file *below, struct err *e);

/* Other programs may be faster than us. */
static int walk_entry(
	const struct fd_set_walk *w, int in, const char *name, const char *path, struct err *e)
{
	struct fd_set_file f = {.in = in, .name = name, .path = path};
	int fd;

	if (fstatat(in, name, &f.st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : skip_or_fail(w, path, "at", e);
	if (!S_ISDIR(f.st.st_mode))
		return w->found(w->arg, &f, e);
	fd = openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		return walk_directory(w, fd, path, &f, e);
	if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
		tell_skipped(w, path, strerror(errno));
	return 0;
}

/* What is in a directory of checkpoints. */
static bool is_of_store(int in, const char *name)
{
	return !strcmp(name, "lock") || !strcmp(name, "latest") ||
	       !strcmp(name, "latest.tmp") || is_checkpoint(in, name);
}

static int walk_all(
	const struct fd_set_walk *w, DIR *dir, const char *directory, bool store, struct err *e)
{
	const struct dirent *entry;

	while (errno = 0, (entry = readdir(dir))) {
		const char *name = entry->d_name;
		cleanup_free char *path = xasprintf("%s/%s", directory, name);

		if (strcmp(name, ".") && strcmp(name, "..") &&
			(w->with_asides || !fd_is_aside(name)) &&
			!(store && is_of_store(dirfd(dir), name)) &&
			walk_entry(w, dirfd(dir), name, path, e))
			return -1;
	}
	return errno ? skip_or_fail(w, directory, "into", e) : 0;
}

/* Checkpoints change as the program runs. */
static bool is_left_out(
	const struct fd_set_walk *w, DIR *dir, const struct fd_set_file *f, bool store)
{
	if (!store && !holds_image(dirfd(dir)) && !holds_members(dir, f->name))
		return false;
	if (w->left_out)
		w->left_out(w->arg, f->path);
	return true;
}

/* @below: what it is for the directory above; NULL: the walk begins here. */
static int walk_directory(const struct fd_set_walk *w, int fd, const char *directory,
	const struct fd_set_file *below, struct err *e)
{
	bool store;
	DIR *dir = fdopendir(fd);
	int failed;

	if (!dir) {
		close(fd);
		return err_set(e, errno, "cannot list %s", directory);
	}
	store = holds_checkpoints(dir);
	if (below &&
		(is_left_out(w, dir, below, store) || (w->enters && !w->enters(w->arg, below))))
		failed = 0;
	else
		failed = walk_all(w, dir, directory, store, e);
	closedir(dir);
	return failed;
}

int fd_set_walk(const struct fd_set_walk *w, int fd, const char *directory, struct err *e)
{
	return walk_directory(w, fd, directory, NULL, e);
}
