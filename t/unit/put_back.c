/*
 * What a restart makes in directories that others can write to: it takes nothing there for its
 * own that somebody else may have put there.
 */
#include <errno.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "lib/util.h"
#include "supervisor/fd/temporary_directories.h"
#include "supervisor/fd_kinds/rollback.h"
#include "supervisor/fd/shm_file.h"
#include "t/unit/scratch.h"
#include "t/unit/tap.h"

#define OTHER_USER 12345

static char shm[64];
static struct err e;

static int open_shm(void)
{
	e = (struct err)ERR_INIT;
	return fd_shm_file_open(NULL, shm, geteuid(), &e);
}

/* Whether it is refused, for @reason, and still has its bytes. */
static bool is_spared(const char *file, const char *reason)
{
	int fd = open_shm();
	struct stat st;

	if (fd >= 0) {
		close(fd);
		return false;
	}
	diag("%s", e.msg);
	return strstr(e.msg, reason) && !stat(file, &st) && st.st_size == 5;
}

static void write_five(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, "abcde", 5) != 5)
		diag("cannot write %s: %s", path, strerror(errno));
	close(fd);
}

static void test_shared_memory(void)
{
	char other[80];
	struct stat st;
	int fd, user;

	snprintf(shm, sizeof(shm), "/dev/shm/trecr-test-%d", getpid());
	snprintf(other, sizeof(other), "%s.other", shm);
	fd = open_shm();
	ok(fd >= 0 && !fstat(fd, &st) && (st.st_mode & 07777) == 0600, "a file is made");
	close(fd);
	write_five(shm);
	fd = open_shm();
	ok(fd >= 0 && !fstat(fd, &st) && !st.st_size, "the one that was left is emptied");
	close(fd);
	write_five(shm);
	user = open(shm, O_RDONLY);
	ok(is_spared(shm, "in use"), "one that is in use is not");
	close(user);
	if (!geteuid()) {
		ok(!chown(shm, OTHER_USER, OTHER_USER) && is_spared(shm, "another file"),
			"nor another user's");
	} else {
		ok(true, "another user's # SKIP needs root");
	}
	unlink(shm);
	write_five(other);
	ok(!symlink(other, shm) && is_spared(other, "cannot create"),
		"nor what a link leads to");
	unlink(shm);
	unlink(other);
}

static void test_no_memory(void)
{
	struct statfs fs;

	snprintf(shm, sizeof(shm), "%s/file", scratch_path);
	write_five(shm);
	if (!statfs(scratch_path, &fs) && fs.f_type == TMPFS_MAGIC)
		ok(true, "a file that is no memory # SKIP it is memory");
	else
		ok(is_spared(shm, "another file"), "nor a file that is no memory");
}

static char *make_temporary(void)
{
	e = (struct err)ERR_INIT;
	return fd_temporary_directory("temporary", &e);
}

static void test_temporary_directories(void)
{
	char path[80], *made, *again;
	struct stat st;

	setenv("TMPDIR", scratch_path, 1);
	snprintf(path, sizeof(path), "%s/temporary", scratch_path);
	made = make_temporary();
	again = make_temporary();
	ok(made && again && !stat(path, &st) && (st.st_mode & 07777) == 0711,
		"a directory is made, and used again");
	free(made);
	free(again);
	ok(!chmod(path, 0777) && !make_temporary(), "not one that others can write to");
	if (!geteuid())
		ok(!chmod(path, 0711) && !chown(path, OTHER_USER, OTHER_USER) &&
				!make_temporary(),
			"nor another user's");
	else
		ok(true, "another user's # SKIP needs root");
	ok(!rmdir(path) && !symlink("/", path) && !make_temporary(),
		"nor what a link leads to");
}

static int64_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? -1 : st.st_size;
}

/* Between the look at a file and the cut its name becomes a link to another one. */
static void test_rollback(void)
{
	char path[80], moved[80], other[80], wanted[96];
	char *tail = NULL;
	int fd;

	snprintf(path, sizeof(path), "%s/grown", scratch_path);
	snprintf(moved, sizeof(moved), "%s/moved", scratch_path);
	snprintf(other, sizeof(other), "%s/other", scratch_path);
	snprintf(wanted, sizeof(wanted), "%s.trecr-tail", path);
	write_five(path);
	write_five(other);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || rename(path, moved) || symlink(other, path))
		diag("cannot prepare: %s", strerror(errno));
	e = (struct err)ERR_INIT;
	ok(!fd_rollback(fd, path, 2, &tail, &e), "a file is cut though its name is a link now");
	ok(size_of(moved) == 2, "it is the one that was looked at");
	ok(size_of(other) == 5, "not the one that the link leads to");
	ok(tail && !strcmp(tail, wanted) && size_of(wanted) == 3, "what it had gained is kept");
	free(tail);
	close(fd);
}

int main(void)
{
	scratch_make();
	test_rollback();
	test_shared_memory();
	test_no_memory();
	test_temporary_directories();
	return done_testing();
}
