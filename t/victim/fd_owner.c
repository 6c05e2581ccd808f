/* F_SETOWN, F_SETSIG and O_ASYNC of a pipe: the signal comes after a restart too. Owners that
 * are another process, and a process group. */
#include "tree.h"

static int p[2], of_child[2], of_group[2];
static pid_t child;

static void found_group(void)
{
	MUST(!setpgid(0, 0));
}

void victim_hurt(void)
{
	fcntl(p[0], F_SETOWN, 0);
}

int main(void)
{
	struct timespec limit = {20, 0};
	siginfo_t info;
	sigset_t set;
	int r;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 4);
	sigprocmask(SIG_BLOCK, &set, NULL);
	MUST(!pipe(p) && !pipe(of_child) && !pipe(of_group));
	child = tree_child(found_group, NULL);
	tree_await(1);
	MUST(!fcntl(of_child[0], F_SETOWN, child) && !fcntl(of_group[0], F_SETOWN, -child));
	MUST(!fcntl(p[0], F_SETOWN, getpid()) && !fcntl(p[0], F_SETSIG, SIGRTMIN + 4));
	MUST(!fcntl(p[0], F_SETFL, O_ASYNC));
	victim_ready();
	victim_wait();
	CHECK(fcntl(of_child[0], F_GETOWN) == child, "owner is %d",
		fcntl(of_child[0], F_GETOWN));
	CHECK(fcntl(of_group[0], F_GETOWN) == -child, "owner is %d",
		fcntl(of_group[0], F_GETOWN));
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
