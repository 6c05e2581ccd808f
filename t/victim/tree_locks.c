/*
 * Locks between processes: of a shared open file (flock, OFD) and POSIX locks of several of its
 * processes; leases.
 */
#include <sys/file.h>

#include "tree.h"

static int shared, leased, read_leased;
static pid_t child;
static volatile sig_atomic_t broken;

static void lock(int how, int type, off_t start, off_t length)
{
	struct flock l = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};

	MUST(!fcntl(shared, how, &l));
}

/* Which process is in the way of writing byte @at. */
static void check_holder(int fd, off_t at, int type, pid_t holder)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};

	CHECK(!fcntl(fd, F_GETLK, &l) && l.l_type == type &&
			(type == F_UNLCK || l.l_pid == holder),
		"byte %ld: type %d, held by %d, not %d", (long)at, l.l_type, l.l_pid, holder);
}

static void on_break(int signal, siginfo_t *info, void *context)
{
	broken = info->si_fd;
}

static void lock_second(void)
{
	lock(F_SETLK, F_WRLCK, 10, 10);
}

static void check_second(void)
{
	check_holder(shared, 0, F_WRLCK, tree_root);
	check_holder(shared, 9, F_WRLCK, tree_root);
	check_holder(shared, 10, F_UNLCK, 0); /* its own is in nobody's way */
	check_holder(shared, 30, F_RDLCK, -1);
}

void victim_hurt(void)
{
	lock(F_SETLK, F_UNLCK, 0, 10);
}

int main(void)
{
	struct sigaction sa = {.sa_sigaction = on_break, .sa_flags = SA_SIGINFO};
	int other;

	shared = open("shared", O_RDWR | O_CREAT, 0600);
	leased = open("leased", O_RDWR | O_CREAT, 0600);
	read_leased = open("read", O_RDONLY | O_CREAT, 0600);
	MUST(shared >= 0 && leased >= 0 && read_leased >= 0 && !flock(shared, LOCK_EX));
	lock(F_SETLK, F_WRLCK, 0, 10);
	lock(F_OFD_SETLK, F_RDLCK, 30, 5);
	child = tree_child(lock_second, check_second);
	tree_await(1);
	sigaction(SIGRTMIN, &sa, NULL);
	if (fcntl(leased, F_SETSIG, SIGRTMIN) || fcntl(read_leased, F_SETLEASE, F_RDLCK))
		victim_skip("no leases here");
	/* The child has it open as well. */
	close(leased);
	leased = open("leased alone", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	MUST(leased >= 0 && !fcntl(leased, F_SETSIG, SIGRTMIN) &&
		!fcntl(leased, F_SETLEASE, F_WRLCK));
	victim_ready();
	victim_wait();
	check_holder(shared, 10, F_WRLCK, child);
	check_holder(shared, 19, F_WRLCK, child);
	check_holder(shared, 20, F_UNLCK, 0);
	other = open("shared", O_RDWR);
	CHECK(flock(other, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK, "no flock");
	check_holder(other, 32, F_RDLCK, -1);
	CHECK(fcntl(leased, F_GETLEASE) == F_WRLCK, "lease %d", fcntl(leased, F_GETLEASE));
	CHECK(fcntl(read_leased, F_GETLEASE) == F_RDLCK, "lease %d",
		fcntl(read_leased, F_GETLEASE));
	CHECK(open("leased alone", O_RDONLY | O_NONBLOCK) < 0 && errno == EWOULDBLOCK, "%s",
		strerror(errno));
	CHECK(broken == leased, "the signal names descriptor %d", broken);
	CHECK(!fcntl(leased, F_SETLEASE, F_UNLCK), "%s", strerror(errno));
	/* Closing other would have lost the POSIX locks: the child looks first. */
	tree_finish(1);
	tree_reap(child, 0);
	return victim_done();
}
