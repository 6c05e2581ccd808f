/*
 * A signalfd with a signal waiting in it.
 */
#include <sys/signalfd.h>

#include "victim.h"

static int fd;

void victim_hurt(void)
{
	struct signalfd_siginfo i;

	(void)!read(fd, &i, sizeof(i));
}

static void take_signal(int signo, int value)
{
	struct signalfd_siginfo i = {0};

	CHECK(read(fd, &i, sizeof(i)) == sizeof(i) && (int)i.ssi_signo == signo &&
			i.ssi_int == value,
		"signal %u with value %d, not %d with %d", i.ssi_signo, i.ssi_int, signo,
		value);
}

static void queue(int signo, int value)
{
	CHECK(!sigqueue(getpid(), signo, (union sigval){.sival_int = value}), "sigqueue: %m");
}

int main(void)
{
	struct signalfd_siginfo i;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGRTMIN + 3);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_NONBLOCK);
	queue(SIGRTMIN + 3, 31);
	queue(SIGRTMIN + 3, 32);
	victim_ready();
	victim_wait();
	take_signal(SIGRTMIN + 3, 31);
	take_signal(SIGRTMIN + 3, 32);
	CHECK(read(fd, &i, sizeof(i)) < 0 && errno == EAGAIN, "more than there was");
	queue(SIGUSR2, 5);
	take_signal(SIGUSR2, 5);
	return victim_done();
}
