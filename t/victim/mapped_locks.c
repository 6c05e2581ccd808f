/*
 * Locks on files that are mapped as well, as databases have them: POSIX, flock and open file
 * description locks, by processes with descriptors of their own and in common.
 */
#include <sched.h>
#include <sys/file.h>

#include "tree.h"

static int shared, read_only, private, memory, whole;

static void lock(int fd, int how, int type, off_t start, off_t length)
{
	struct flock l = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};

	MUST(!fcntl(fd, how, &l));
}

static int file(const char *name, int flags)
{
	int fd = open(name, O_RDWR | O_CREAT, 0600);

	MUST(fd >= 0 && !ftruncate(fd, 4096));
	MUST(mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, fd, 0) != MAP_FAILED);
	return fd;
}

/* Which process is in the way of writing byte @at: asked by a process that holds no POSIX lock. */
static void check_holder(int fd, off_t at, int type, pid_t holder)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};

	CHECK(!fcntl(fd, F_OFD_GETLK, &l) && l.l_type == type &&
			(type == F_UNLCK || l.l_pid == holder),
		"byte %ld: type %d, held by %d, not %d", (long)at, l.l_type, l.l_pid, holder);
}

static void lock_second(void)
{
	int fd = open("shared", O_RDWR);

	MUST(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED);
	lock(fd, F_SETLK, F_RDLCK, 123, 1);
	lock(fd, F_SETLK, F_WRLCK, 200, 8);
}

/* It has the first one's descriptors, and a mapping that the first one has not. */
static int live_in_common(void *arg)
{
	MUST(mmap(NULL, 4096, PROT_READ, MAP_SHARED, read_only, 0) != MAP_FAILED);
	MUST(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, private, 0) != MAP_FAILED);
	tree_live(NULL, NULL);
}

static pid_t in_common(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	pid_t pid = clone(live_in_common, stack + sizeof(stack), CLONE_FILES | SIGCHLD, NULL);

	MUST(pid > 0);
	return pid;
}

void victim_hurt(void)
{
	close(read_only);
}

int main(void)
{
	pid_t second, third;

	shared = file("shared", MAP_SHARED);
	private = file("private", MAP_PRIVATE);
	whole = file("whole", MAP_SHARED);
	memory = memfd_create("memory", 0);
	MUST(!ftruncate(memory, 4096) &&
		mmap(NULL, 4096, PROT_READ, MAP_SHARED, memory, 0) != MAP_FAILED);
	MUST((read_only = open("shared", O_RDONLY)) >= 0);
	lock(shared, F_SETLK, F_WRLCK, 100, 10);
	lock(read_only, F_SETLK, F_RDLCK, 123, 1);
	lock(private, F_SETLK, F_WRLCK, 0, 0);
	lock(memory, F_SETLK, F_WRLCK, 7, 1);
	MUST(!flock(whole, LOCK_EX));
	lock(whole, F_OFD_SETLK, F_WRLCK, 50, 1);
	second = tree_child(lock_second, NULL);
	third = in_common();
	tree_await(2);
	victim_ready();
	victim_wait();
	check_holder(shared, 99, F_UNLCK, 0);
	check_holder(shared, 100, F_WRLCK, tree_root);
	check_holder(shared, 109, F_WRLCK, tree_root);
	check_holder(shared, 110, F_UNLCK, 0);
	check_holder(shared, 200, F_WRLCK, second);
	check_holder(private, 4095, F_WRLCK, tree_root);
	check_holder(memory, 7, F_WRLCK, tree_root);
	lock(shared, F_SETLK, F_UNLCK, 123, 1);
	check_holder(shared, 123, F_RDLCK, second);
	CHECK(flock(open("whole", O_RDWR), LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK,
		"whole is not locked");
	check_holder(open("whole", O_RDWR), 50, F_WRLCK, -1);
	tree_finish(2);
	tree_reap(second, 0);
	tree_reap(third, 0);
	return victim_done();
}
