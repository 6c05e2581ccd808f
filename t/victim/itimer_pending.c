/* An interval timer that has fired while its signal was blocked stands still until that is
 * taken: it continues from there. */
#include <sys/time.h>

#include "victim.h"

static volatile sig_atomic_t taken;

static void handler(int signal)
{
	taken++;
}

void victim_hurt(void)
{
	struct itimerval none = {0};

	setitimer(ITIMER_REAL, &none, NULL);
}

int main(void)
{
	struct itimerval often = {{0, 5000}, {0, 5000}};
	struct timespec ms = {0, MSEC};
	sigset_t set, pending;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGALRM, handler);
	MUST(!setitimer(ITIMER_REAL, &often, NULL));
	do
		sigpending(&pending);
	while (!sigismember(&pending, SIGALRM));
	victim_ready();
	victim_wait();
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	for (int i = 0; i < 5000 && taken < 4; i++)
		nanosleep(&ms, NULL);
	CHECK(taken >= 4, "the timer has fired %d times", (int)taken);
	return victim_done();
}
