/*
 * What has lost its name while it is in use: a FIFO with bytes in it and its ends in two
 * processes, open directories one in the other, a working directory, a device.
 */
#include <sys/file.h>
#include <sys/sysmacros.h>

#include "tree.h"

static int reader, writer, outer, inner, again, path, other, device;

void victim_hurt(void)
{
	char c;

	MUST(read(reader, &c, 1) == 1 && !chdir("/"));
}

static void look_from_child(void)
{
	struct stat st, here;

	CHECK(!fstat(inner, &st) && !stat(".", &here) && st.st_ino == here.st_ino,
		"the child works elsewhere");
	CHECK(write(writer, " again", 6) == 6, "the child writes: %s", strerror(errno));
}

/* The same directory, which has no name and mode @mode. */
static void check_directory(int fd, const struct stat *as, mode_t mode)
{
	char link[64], text[PATH_MAX] = "";
	struct stat st;

	CHECK(!fstat(fd, &st) && !st.st_nlink && (st.st_mode & 07777) == mode, "%u names, %o",
		(unsigned)st.st_nlink, st.st_mode);
	CHECK(!as || (as->st_ino == st.st_ino && as->st_dev == st.st_dev), "it is another");
	CHECK(openat(fd, "new", O_CREAT | O_WRONLY, 0600) < 0 && errno == ENOENT,
		"a file in it: %s", strerror(errno));
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	CHECK(readlink(link, text, sizeof(text) - 1) > 0 && strstr(text, " (deleted)"),
		"it shows as %s", text);
}

static void check_above(int fd, int above)
{
	int up = openat(fd, "..", O_PATH | O_DIRECTORY);
	struct stat a, b;

	CHECK(up >= 0 && !fstat(up, &a) && !fstat(above, &b) && a.st_ino == b.st_ino &&
			a.st_dev == b.st_dev,
		"what is above is another");
	close(up);
}

static void check_directories(int top)
{
	char name[PATH_MAX];
	struct stat st, it;

	MUST(!fstat(inner, &st));
	check_directory(inner, NULL, 0750);
	check_directory(again, &st, 0750);
	check_directory(outer, NULL, 01777);
	check_directory(other, NULL, 0700);
	CHECK(fcntl(path, F_GETFL) & O_PATH && !fstatat(path, "", &it, AT_EMPTY_PATH) &&
			!it.st_nlink,
		"O_PATH");
	check_above(inner, outer);
	check_above(outer, top);
	check_above(other, top);
	CHECK(!getcwd(name, sizeof(name)) && errno == ENOENT, "getcwd: %s", strerror(errno));
	check_directory(open(".", O_RDONLY | O_DIRECTORY), &st, 0750);
	/* A lock of ours is no obstacle to us alone. */
	CHECK(flock(inner, LOCK_EX | LOCK_NB) == 0, "its lock");
	CHECK(flock(again, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK, "no lock");
}

static void check_fifo(void)
{
	char data[32] = "";
	struct stat st;
	int n = read(reader, data, 5);

	CHECK(n == 5 && !strcmp(data, "hello"), "%d bytes: '%s'", n, data);
	CHECK(!fstat(reader, &st) && S_ISFIFO(st.st_mode) && !st.st_nlink &&
			(st.st_mode & 07777) == 0640,
		"mode %o, %u names", st.st_mode, (unsigned)st.st_nlink);
	CHECK(read(reader, data, 1) < 0 && errno == EAGAIN, "O_NONBLOCK");
	CHECK(fcntl(reader, F_GETPIPE_SZ) == 16384, "its capacity");
}

static void prepare_directories(void)
{
	MUST(!mkdir("outer", 0755) && !chmod("outer", 01777) && !mkdir("outer/inner", 0750) &&
		!mkdir("other", 0700));
	outer = open("outer", O_RDONLY | O_DIRECTORY);
	inner = open("outer/inner", O_RDONLY | O_DIRECTORY);
	again = open("outer/inner", O_RDONLY | O_DIRECTORY);
	other = open("other", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	path = open("other", O_PATH);
	MUST(outer >= 0 && inner >= 0 && again >= 0 && other >= 0 && path >= 0);
	MUST(!chdir("outer/inner") && !rmdir("../../other") && !rmdir("../../outer/inner") &&
		!unlinkat(outer, "../outer", AT_REMOVEDIR) && !flock(inner, LOCK_EX));
}

static void prepare_device(void)
{
	device = -1;
	if (mknod("node", S_IFCHR | 0600, makedev(1, 5)))
		return;
	device = open("node", O_RDONLY);
	MUST(!unlink("node"));
}

int main(void)
{
	int top = open(".", O_RDONLY | O_DIRECTORY);
	char byte = 1;
	pid_t child;

	MUST(top >= 0 && !mkfifo("fifo", 0600) && !chmod("fifo", 0640));
	reader = open("fifo", O_RDONLY | O_NONBLOCK);
	writer = open("fifo", O_WRONLY);
	MUST(reader >= 0 && writer >= 0 && !unlink("fifo"));
	MUST(fcntl(writer, F_SETPIPE_SZ, 16384) == 16384 && write(writer, "hello", 5) == 5);
	prepare_device();
	prepare_directories();
	child = tree_child(NULL, look_from_child);
	tree_await(1);
	close(writer);
	MUST(!mkdirat(top, "outer", 0700));
	victim_ready();
	victim_wait();
	check_directories(top);
	check_fifo();
	CHECK(device < 0 || (read(device, &byte, 1) == 1 && !byte), "the device");
	tree_finish(1);
	tree_reap(child, 0);
	CHECK(read(reader, (char[16]){0}, 16) == 6 && !read(reader, &byte, 1), "the other end");
	return victim_done();
}
