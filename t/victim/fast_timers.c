/* Timers that expire again while they are being read: of timer_create(2) and setitimer(2),
 * whose signals are handled, blocked, or none. All go on. */
#include <sys/time.h>

#include "victim.h"

enum { EVERY_NS = 20000, SILENT = 30 };

static volatile unsigned long handled[2];
static int ids[2], silent[SILENT];

void victim_hurt(void)
{
	syscall(SYS_timer_delete, ids[0]);
}

static void handle(int signo)
{
	handled[signo == SIGALRM]++;
}

static int start(int notify, int signo)
{
	struct sigevent e = {.sigev_notify = notify, .sigev_signo = signo};
	struct itimerspec s = {{0, EVERY_NS}, {0, EVERY_NS}};
	int id = -1;

	MUST(!syscall(SYS_timer_create, CLOCK_MONOTONIC, &e, &id));
	MUST(!syscall(SYS_timer_settime, id, 0, &s, NULL));
	return id;
}

static void goes_on(int i)
{
	unsigned long before = handled[i];

	for (int ms = 0; ms < 20000 && handled[i] == before; ms++)
		usleep(1000);
	CHECK(handled[i] != before, "timer %d has come to rest", i);
}

int main(void)
{
	struct itimerval often = {{0, EVERY_NS / 1000}, {0, EVERY_NS / 1000}};
	const struct timespec now = {0};
	struct itimerspec left = {0};
	sigset_t blocked;
	siginfo_t info;

	signal(SIGRTMIN, handle);
	signal(SIGALRM, handle);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGRTMIN + 1);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	ids[0] = start(SIGEV_SIGNAL, SIGRTMIN);
	ids[1] = start(SIGEV_SIGNAL, SIGRTMIN + 1);
	for (int i = 0; i < SILENT; i++)
		silent[i] = start(SIGEV_NONE, 0);
	MUST(!setitimer(ITIMER_REAL, &often, NULL));
	victim_ready();
	victim_wait();
	goes_on(0);
	goes_on(1);
	CHECK(!syscall(SYS_timer_gettime, ids[2], &left) &&
			left.it_interval.tv_nsec == EVERY_NS,
		"the timer without a signal has an interval of %ld ns",
		left.it_interval.tv_nsec);
	CHECK(sigtimedwait(&blocked, &info, &now) == SIGRTMIN + 1 && info.si_code == SI_TIMER,
		"the blocked signal is not queued");
	return victim_done();
}
