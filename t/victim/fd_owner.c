/* F_SETOWN, F_SETSIG and O_ASYNC of a pipe: the signal comes after a restart too. Owners that
 * are another process, a process that has ended and was not waited for, a process group, the
 * launcher's, and a single thread. And O_ASYNC of files of other kinds. */
#include <netinet/in.h>
#include <pty.h>
#include <sys/inotify.h>
#include <sys/socket.h>

#include "tree.h"

static int p[2], of_child[2], of_group[2], of_thread[2], of_ours[2], of_zombie[2];
static pid_t child, zombie;
static atomic_int thread;

static void found_group(void)
{
	MUST(!setpgid(0, 0));
}

void victim_hurt(void)
{
	fcntl(p[0], F_SETOWN, 0);
}

static void *wait_for_ever(void *arg)
{
	thread = victim_tid();
	for (;;)
		pause();
	return NULL;
}

static bool is_owner(int fd, int type, pid_t pid)
{
	struct f_owner_ex owner;

	return !fcntl(fd, F_GETOWN_EX, &owner) && (int)owner.type == type && owner.pid == pid;
}

static void set_owner(int fd, int type, pid_t pid)
{
	struct f_owner_ex owner = {type, pid};

	MUST(!fcntl(fd, F_SETOWN_EX, &owner));
}

/* SIGRTMIN + 4, which all block. */
static void check_thread(void)
{
	char path[64], line[256];
	unsigned long pending = 0;
	FILE *f;

	CHECK(is_owner(of_thread[0], F_OWNER_TID, thread), "the thread is no owner");
	MUST(write(of_thread[1], "x", 1) == 1);
	snprintf(path, sizeof(path), "/proc/self/task/%d/status", thread);
	MUST((f = fopen(path, "r")));
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "SigPnd: %lx", &pending) == 1)
			break;
	fclose(f);
	CHECK(pending & 1ul << (SIGRTMIN + 4 - 1), "the thread has no signal: %lx", pending);
}

/* ---- other kinds: something to be read, and its writer ---- */

enum { PAIR, DATAGRAM, TERMINAL, WATCH, KINDS };

#define OF_KIND (SIGRTMIN + 5)

static const char *const kinds[] = {"a socket", "UDP", "a terminal", "inotify"};
static int reader[KINDS], writer[KINDS];

static void make_kinds(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(a);
	struct termios raw;
	int pair[2];

	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	reader[PAIR] = pair[0];
	writer[PAIR] = pair[1];
	reader[DATAGRAM] = socket(AF_INET, SOCK_DGRAM, 0);
	writer[DATAGRAM] = socket(AF_INET, SOCK_DGRAM, 0);
	MUST(!bind(reader[DATAGRAM], (struct sockaddr *)&a, size) &&
		!getsockname(reader[DATAGRAM], (struct sockaddr *)&a, &size) &&
		!connect(writer[DATAGRAM], (struct sockaddr *)&a, size));
	MUST(!openpty(&writer[TERMINAL], &reader[TERMINAL], NULL, NULL, NULL));
	MUST(!tcgetattr(reader[TERMINAL], &raw));
	cfmakeraw(&raw);
	MUST(!tcsetattr(reader[TERMINAL], TCSANOW, &raw));
	reader[WATCH] = inotify_init1(IN_CLOEXEC);
	writer[WATCH] = open("written", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	MUST(inotify_add_watch(reader[WATCH], "written", IN_MODIFY) > 0);
	for (int i = 0; i < KINDS; i++)
		MUST(!fcntl(reader[i], F_SETOWN, getpid()) &&
			!fcntl(reader[i], F_SETSIG, OF_KIND) &&
			!fcntl(reader[i], F_SETFL, O_ASYNC));
}

static void check_kinds(const sigset_t *set)
{
	struct timespec limit = {20, 0}, now = {0};
	siginfo_t info;
	int r;

	CHECK(sigtimedwait(set, &info, &now) != OF_KIND, "a signal of nothing: descriptor %d",
		info.si_fd);
	for (int i = 0; i < KINDS; i++) {
		CHECK(fcntl(reader[i], F_GETOWN) == getpid() &&
				fcntl(reader[i], F_GETSIG) == OF_KIND &&
				fcntl(reader[i], F_GETFL) & O_ASYNC,
			"%s has another owner, signal or flags", kinds[i]);
		if (victim_failures)
			return;
		MUST(write(writer[i], "x", 1) == 1);
		do
			r = sigtimedwait(set, &info, &limit);
		while (r < 0 && errno == EINTR);
		CHECK(r == OF_KIND && info.si_fd == reader[i],
			"%s: signal %d about descriptor %d", kinds[i], r, info.si_fd);
		/* A socket signals more than one thing. */
		while (sigtimedwait(set, &info, &now) == OF_KIND)
			;
	}
}

int main(void)
{
	struct timespec limit = {20, 0};
	siginfo_t info;
	sigset_t set, more;
	int r;

	sigemptyset(&set);
	sigemptyset(&more);
	sigaddset(&set, SIGRTMIN + 4);
	sigaddset(&more, OF_KIND);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &more, NULL);
	MUST(!pipe(p) && !pipe(of_child) && !pipe(of_group) && !pipe(of_thread) &&
		!pipe(of_ours) && !pipe(of_zombie));
	child = tree_child(found_group, NULL);
	tree_await(1);
	MUST(!fcntl(of_child[0], F_SETOWN, child) && !fcntl(of_group[0], F_SETOWN, -child));
	MUST(!fcntl(p[0], F_SETOWN, getpid()) && !fcntl(p[0], F_SETSIG, SIGRTMIN + 4));
	MUST(!fcntl(p[0], F_SETFL, O_ASYNC));
	victim_thread(wait_for_ever, NULL);
	while (!thread)
		usleep(100);
	set_owner(of_thread[0], F_OWNER_TID, thread);
	MUST(!fcntl(of_thread[0], F_SETSIG, SIGRTMIN + 4));
	MUST(!fcntl(of_thread[0], F_SETFL, O_ASYNC));
	set_owner(of_ours[0], F_OWNER_PGRP, getpgrp());
	zombie = fork();
	if (!zombie)
		_exit(0);
	MUST(!waitid(P_PID, zombie, NULL, WEXITED | WNOWAIT));
	set_owner(of_zombie[0], F_OWNER_PID, zombie);
	make_kinds();
	victim_ready();
	victim_wait();
	check_kinds(&more);
	CHECK(fcntl(of_child[0], F_GETOWN) == child, "owner is %d",
		fcntl(of_child[0], F_GETOWN));
	CHECK(fcntl(of_group[0], F_GETOWN) == -child, "owner is %d",
		fcntl(of_group[0], F_GETOWN));
	CHECK(is_owner(of_ours[0], F_OWNER_PGRP, getpgrp()), "our group is no owner");
	CHECK(is_owner(of_zombie[0], F_OWNER_PID, zombie), "the zombie is no owner");
	CHECK(waitpid(zombie, NULL, 0) == zombie, "no zombie");
	check_thread();
	tree_finish(1);
	tree_reap(child, 0);
	CHECK(fcntl(p[0], F_GETOWN) == getpid(), "owner is %d", fcntl(p[0], F_GETOWN));
	CHECK(fcntl(p[0], F_GETSIG) == SIGRTMIN + 4, "signal is %d", fcntl(p[0], F_GETSIG));
	CHECK(fcntl(p[0], F_GETFL) & O_ASYNC, "O_ASYNC is lost");
	if (victim_failures)
		return victim_done();
	MUST(write(p[1], "x", 1) == 1);
	do
		r = sigtimedwait(&set, &info, &limit);
	while (r < 0 && errno == EINTR);
	CHECK(r == SIGRTMIN + 4 && info.si_fd == p[0], "signal %d about descriptor %d", r,
		info.si_fd);
	return victim_done();
}
