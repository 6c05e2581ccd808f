/*
 * Processes that share the memory of the first and nothing else (CLONE_VM): each with
 * descriptors, a directory, a group or session, a terminal and children of its own.
 */
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>

#include "tree.h"

/* Numbers that nothing else has. */
enum { EPOLL = 100, EVENT, LOCK, PAIR, PEER, SELF, MASTER, SLAVE };

#define DATA 0x1234567812345678

static pid_t zombie;

/* What all can see. */
static struct {
	_Atomic int count;
	pid_t pid[8];
} * all;

static void place(int fd, int at)
{
	MUST(fd >= 0 && dup2(fd, at) == at);
	close(fd);
}

/* Until @count of them stand, one of whom is made after the other. */
static void await_standing(int count)
{
	uint64_t limit = victim_limit();

	while (all->count < count) {
		MUST(victim_now() < limit);
		usleep(1000);
	}
}

static pid_t sharer(int (*live)(void *arg), int count)
{
	pid_t pid = clone(live, victim_anon(64 * KIB) + 64 * KIB, CLONE_VM | SIGCHLD, NULL);

	MUST(pid > 0);
	await_standing(count);
	return pid;
}

static void __attribute__((noreturn)) stand(void (*check)(void))
{
	pid_t pid = getpid(), parent = getppid(), group = getpgrp(), session = getsid(0);
	bool own = session != getsid(tree_root);

	all->pid[all->count] = pid;
	all->count++;
	tree_pass();
	CHECK(getpid() == pid, "process id was %d, is %d", pid, getpid());
	CHECK(getppid() == parent, "process %d: parent was %d, is %d", pid, parent, getppid());
	CHECK(getpgrp() == group, "process %d: group was %d, is %d", pid, group, getpgrp());
	/* The first one's may have another number. */
	if (!own)
		session = getsid(tree_root);
	CHECK(getsid(0) == session, "process %d: session was %d, is %d", pid, session,
		getsid(0));
	check();
	tree_tell(victim_failures ? 'x' : 'k');
	/* The end of one would change what others are to find. */
	for (;;)
		pause();
}

static void nothing(void)
{
}

/* ---- one with files of its own, which adopts ---- */

static void make_files(void)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = DATA};
	struct flock lock = {.l_type = F_WRLCK, .l_start = 10, .l_len = 5};
	struct f_owner_ex self = {F_OWNER_PID, getpid()};
	int pair[2];

	MUST(!mkdir("sub", 0700) && !chdir("sub"));
	umask(027);
	place(epoll_create1(0), EPOLL);
	place(eventfd(0, 0), EVENT);
	MUST(!epoll_ctl(EPOLL, EPOLL_CTL_ADD, EVENT, &event));
	place(open("locked", O_RDWR | O_CREAT, 0600), LOCK);
	MUST(!fcntl(LOCK, F_SETLK, &lock));
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	place(pair[0], PAIR);
	place(pair[1], PEER);
	MUST(!fcntl(PAIR, F_SETOWN_EX, &self) && !fcntl(PAIR, F_SETSIG, SIGUSR1));
	MUST(!fcntl(PAIR, F_SETFL, fcntl(PAIR, F_GETFL) | O_ASYNC));
	place(pidfd_open(getpid(), 0), SELF);
}

static void check_epoll(void)
{
	struct epoll_event event = {0};
	int n = epoll_wait(EPOLL, &event, 1, 0);
	uint64_t one = 1;

	CHECK(n == 0, "epoll: %d events", n);
	MUST(write(EVENT, &one, sizeof(one)) == sizeof(one));
	n = epoll_wait(EPOLL, &event, 1, 0);
	CHECK(n == 1 && event.data.u64 == DATA, "epoll: %d events, %lx", n,
		(unsigned long)event.data.u64);
}

static void check_owner(void)
{
	const struct timespec limit = {20, 0};
	struct f_owner_ex who = {0};
	siginfo_t info = {0};
	sigset_t set;
	int got;

	MUST(!fcntl(PAIR, F_GETOWN_EX, &who));
	CHECK(who.type == F_OWNER_PID && who.pid == getpid(), "owner %d %d", who.type, who.pid);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	MUST(write(PEER, "", 1) == 1);
	got = sigtimedwait(&set, &info, &limit);
	CHECK(got == SIGUSR1 && info.si_fd == PAIR, "signal %d, of %d", got, info.si_fd);
}

/* Its own, which only another process can see. */
static void check_lock(void)
{
	int status = -1;
	pid_t pid = fork();

	MUST(pid >= 0);
	if (!pid) {
		struct flock lock = {.l_type = F_WRLCK};

		_exit(fcntl(LOCK, F_GETLK, &lock) || lock.l_type != F_WRLCK ||
			lock.l_start != 10 || lock.l_len != 5 || lock.l_pid != getppid());
	}
	MUST(waitpid(pid, &status, 0) == pid);
	CHECK(!status, "the lock is not what it was");
}

static void check_files(void)
{
	char path[4096] = "";
	siginfo_t info = {0};

	MUST(getcwd(path, sizeof(path)));
	CHECK(!strcmp(path + strlen(path) - 4, "/sub"), "directory %s", path);
	CHECK(umask(027) == 027, "another mask");
	check_epoll();
	check_owner();
	check_lock();
	CHECK(fcntl(MASTER, F_GETFD) < 0, "a descriptor of another");
	CHECK(waitid(P_PIDFD, SELF, &info, WEXITED | WNOHANG) && errno == ECHILD,
		"its pidfd leads to a child");
	CHECK(!pidfd_send_signal(SELF, 0, NULL, 0), "its pidfd leads nowhere");
	tree_reap(zombie, 7 << 8);
}

static int own_files(void *arg)
{
	pid_t between;

	MUST(!setpgid(0, 0) && !prctl(PR_SET_CHILD_SUBREAPER, 1));
	make_files();
	zombie = fork();
	if (!zombie)
		_exit(7);
	tree_until_state(zombie, 'Z');
	between = fork();
	if (!between) {
		pid_t maker = getpid(), orphan = fork();

		if (orphan)
			_exit(0);
		while (getppid() == maker)
			usleep(1000);
		stand(nothing);
	}
	MUST(waitpid(between, NULL, 0) == between);
	await_standing(1);
	stand(check_files);
}

/* ---- one with a session and its terminal, and two more in it ---- */

static void check_front(void)
{
	CHECK(tcgetpgrp(SLAVE) == getpid(), "group %d is in the foreground", tcgetpgrp(SLAVE));
}

static int in_front(void *arg)
{
	MUST(!setpgid(0, 0) && !tcsetpgrp(SLAVE, getpid()));
	stand(check_front);
}

static void check_none(void)
{
	CHECK(open("/dev/tty", O_RDWR) < 0 && errno == ENXIO, "it has a terminal again");
}

static int without_terminal(void *arg)
{
	int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);

	MUST(fd >= 0 && !ioctl(fd, TIOCNOTTY));
	close(fd);
	stand(check_none);
}

static void check_session(void)
{
	int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

	CHECK(fd >= 0, "it has no terminal");
	close(fd);
	CHECK(tcgetsid(SLAVE) == getpid(), "the terminal's session is %d", tcgetsid(SLAVE));
	CHECK(fcntl(EPOLL, F_GETFD) < 0, "a descriptor of another");
}

static int own_session(void *arg)
{
	MUST(setsid() == getpid());
	place(posix_openpt(O_RDWR | O_NOCTTY), MASTER);
	MUST(!grantpt(MASTER) && !unlockpt(MASTER));
	place(open(ptsname(MASTER), O_RDWR | O_NOCTTY), SLAVE);
	MUST(!ioctl(SLAVE, TIOCSCTTY, 0));
	sharer(without_terminal, 3);
	sharer(in_front, 4);
	stand(check_session);
}

void victim_hurt(void)
{
	zombie++;
}

int main(void)
{
	pid_t owner, leader;
	sigset_t block;

	all = victim_map(4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	sigaddset(&block, SIGTTOU);
	sigprocmask(SIG_BLOCK, &block, NULL);
	owner = sharer(own_files, 2);
	leader = sharer(own_session, 5);
	victim_ready();
	victim_wait();
	/* One at a time, as they share errno. */
	for (int i = 0; i < all->count; i++) {
		char c;

		tree_open(1);
		c = tree_hear();
		CHECK(c == 'k', "a process reports %d", c);
	}
	for (int i = 0; i < all->count; i++)
		kill(all->pid[i], SIGKILL);
	tree_reap(owner, SIGKILL);
	tree_reap(leader, SIGKILL);
	return victim_done();
}
