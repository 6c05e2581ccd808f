/* F_SETOWN, F_SETSIG and O_ASYNC of a pipe: the signal comes after a restart too. */
#include "victim.h"

static int p[2];

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
	MUST(!pipe(p));
	MUST(!fcntl(p[0], F_SETOWN, getpid()) && !fcntl(p[0], F_SETSIG, SIGRTMIN + 4));
	MUST(!fcntl(p[0], F_SETFL, O_ASYNC));
	victim_ready();
	victim_wait();
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
