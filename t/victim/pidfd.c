/*
 * pidfds of the process itself, of a child, of a zombie, of one that was waited for; one shared
 * with a child, and one that is watched by epoll; and of a thread, where the kernel has them.
 */
#include <sys/epoll.h>
#include <sys/pidfd.h>

#include "tree.h"

#ifndef PIDFD_NONBLOCK
#define PIDFD_NONBLOCK O_NONBLOCK
#endif
#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

static int of_thread = -1;
static pid_t thread_id;
static int self, of_child, of_zombie, of_nobody, nobody_again, other_nobody, poller, impatient,
	copy;
static pid_t child, zombie;

static int open_pidfd(pid_t pid)
{
	int fd = syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		victim_skip("no pidfds");
	return fd;
}

static bool have_inodes; /* pidfs: one for each process */

static ino_t inode(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_ino;
}

static int send(int fd, int signal)
{
	return syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0);
}

static bool has_ended(int fd)
{
	struct timeval now = {0};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return select(fd + 1, &set, NULL, NULL, &now) == 1;
}

static void check_child(void)
{
	/* Its parent's. */
	CHECK(!send(self, 0) && !has_ended(self), "%s", strerror(errno));
	for (;;)
		pause();
}

static void *thread(void *arg)
{
	thread_id = victim_tid();
	tree_tell('t');
	for (;;)
		pause();
	return NULL;
}

/* "Pid:" of fdinfo (man proc_pid_fdinfo). */
static int shown_id(int fd)
{
	char text[512], *p;

	victim_fdinfo(fd, text, sizeof(text));
	p = strstr(text, "Pid:");
	return p ? atoi(p + 4) : -1;
}

void victim_hurt(void)
{
	kill(child, SIGKILL);
}

int main(void)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = 77};
	siginfo_t info = {0};
	pid_t gone;

	self = open_pidfd(getpid());
	child = tree_child(NULL, check_child);
	tree_await(1);
	zombie = fork();
	if (!zombie)
		_exit(9);
	of_zombie = open_pidfd(zombie);
	tree_until_state(zombie, 'Z');
	gone = fork();
	if (!gone)
		_exit(0);
	of_nobody = open_pidfd(gone);
	nobody_again = open_pidfd(gone);
	MUST(waitpid(gone, NULL, 0) == gone);
	gone = fork();
	if (!gone)
		_exit(0);
	other_nobody = open_pidfd(gone);
	MUST(waitpid(gone, NULL, 0) == gone);
	have_inodes = inode(self) != inode(of_nobody);
	of_child = open_pidfd(child);
	impatient = syscall(SYS_pidfd_open, child, PIDFD_NONBLOCK);
	copy = dup(of_child);
	MUST(impatient >= 0 && copy >= 0);
	poller = epoll_create1(0);
	MUST(!epoll_ctl(poller, EPOLL_CTL_ADD, of_child, &event));
	victim_thread(thread, NULL);
	MUST(tree_hear() == 't');
	of_thread = syscall(SYS_pidfd_open, thread_id, PIDFD_THREAD);
	victim_ready();
	victim_wait();
	if (of_thread >= 0)
		CHECK(shown_id(of_thread) == thread_id && fcntl(of_thread, F_GETFL) & O_EXCL &&
				!has_ended(of_thread),
			"pidfd of thread %d, not %d", shown_id(of_thread), thread_id);
	CHECK(fcntl(impatient, F_GETFL) & O_NONBLOCK &&
			!(fcntl(of_child, F_GETFL) & O_NONBLOCK),
		"PIDFD_NONBLOCK");
	CHECK(!fcntl(copy, F_SETFL, O_NONBLOCK) && fcntl(of_child, F_GETFL) & O_NONBLOCK &&
			!fcntl(copy, F_SETFL, 0),
		"duplicates are two");
	CHECK(!has_ended(self) && !has_ended(of_child), "ended");
	CHECK(!send(of_child, 0), "%s", strerror(errno));
	CHECK(has_ended(of_zombie) && has_ended(of_nobody), "not ended");
	CHECK(!have_inodes || (inode(of_nobody) == inode(nobody_again) &&
				      inode(of_nobody) != inode(other_nobody)),
		"which have ended the same way");
	CHECK(send(of_nobody, 0) < 0 && errno == ESRCH, "%s", strerror(errno));
	CHECK(!waitid(P_PIDFD, of_zombie, &info, WEXITED) && info.si_pid == zombie &&
			info.si_status == 9,
		"zombie %d: %d", info.si_pid, info.si_status);
	tree_open(1);
	CHECK(!epoll_wait(poller, &event, 1, 50), "epoll");
	CHECK(!send(of_child, SIGKILL), "%s", strerror(errno));
	event.data.u64 = 0;
	CHECK(epoll_wait(poller, &event, 1, 20000) == 1 && event.data.u64 == 77, "epoll");
	tree_reap(child, SIGKILL);
	return victim_done();
}
