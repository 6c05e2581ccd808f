/*
 * Locks on files: flock(2), POSIX record locks, open file description locks.
 */
#include <sys/file.h>
#include <sys/wait.h>

#include "victim.h"

static int whole, common, records, description;

void victim_hurt(void)
{
	struct flock l = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 5};

	fcntl(records, F_SETLK, &l);
}

static int open_file(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT, 0600);

	CHECK(fd >= 0, "%s: %m", name);
	return fd;
}

static void lock(int fd, int how, int type, off_t start, off_t length)
{
	struct flock l = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};

	CHECK(!fcntl(fd, how, &l), "lock: %m");
}

/* Who would be in the way of a lock for writing on byte @at of @name: asked by a process that
 * holds none. */
static void check_holder(const char *name, off_t at, int type, pid_t holder)
{
	int status;
	pid_t child = fork();

	if (!child) {
		struct flock l = {
			.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
		int fd = open(name, O_RDWR);

		if (fcntl(fd, F_GETLK, &l) || l.l_type != type ||
			(type != F_UNLCK && l.l_pid != holder)) {
			victim_say("differs: byte %ld of %s: type %d, held by %d", (long)at,
				name, l.l_type, l.l_pid);
			_exit(1);
		}
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && !status, "byte %ld of %s", (long)at, name);
}

static void check_flock(const char *name)
{
	int other = open(name, O_RDWR);

	CHECK(flock(other, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK, "%s is not locked",
		name);
	CHECK(!flock(whole, LOCK_UN) && !flock(other, LOCK_SH | LOCK_NB), "%s: unlock: %m",
		name);
}

static void check_shared_flock(const char *name)
{
	int other = open(name, O_RDWR);

	CHECK(!flock(other, LOCK_SH | LOCK_NB), "%s is locked for one alone", name);
	CHECK(flock(other, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK, "%s is not locked",
		name);
}

int main(void)
{
	whole = open_file("whole");
	common = open_file("common");
	records = open_file("records");
	description = open_file("description");
	CHECK(!flock(whole, LOCK_EX) && !flock(common, LOCK_SH), "flock: %m");
	lock(records, F_SETLK, F_WRLCK, 10, 5);
	lock(records, F_SETLK, F_RDLCK, 20, 0);
	lock(description, F_OFD_SETLK, F_WRLCK, 0, 100);
	victim_ready();
	victim_wait();
	check_holder("records", 9, F_UNLCK, 0);
	check_holder("records", 10, F_WRLCK, getpid());
	check_holder("records", 14, F_WRLCK, getpid());
	check_holder("records", 15, F_UNLCK, 0);
	check_holder("records", 1000, F_RDLCK, getpid());
	check_holder("description", 99, F_WRLCK, -1);
	check_holder("description", 100, F_UNLCK, 0);
	check_flock("whole");
	check_shared_flock("common");
	return victim_done();
}
