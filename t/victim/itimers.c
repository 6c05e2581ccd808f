/* alarm and the three kinds of setitimer: what is left, the interval, and that they fire. */
#include <sys/time.h>

#include "victim.h"

void victim_hurt(void)
{
	struct itimerval none = {0};

	setitimer(ITIMER_PROF, &none, NULL);
	alarm(1); /* comes too early for the timer that fires */
}

int main(int argc, char **argv)
{
	static const int kinds[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};
	struct itimerval set = {.it_interval = {77, 123000}, .it_value = {1000, 0}}, now;
	sigset_t alarm_set;
	uint64_t start = victim_now(), limit;

	if (argc > 1 && !strcmp(argv[1], "fire")) {
		/* An expiration: never early, by the clock that the program sees. */
		sigemptyset(&alarm_set);
		sigaddset(&alarm_set, SIGALRM);
		sigprocmask(SIG_BLOCK, &alarm_set, NULL);
		set.it_interval = (struct timeval){0, 0};
		set.it_value = (struct timeval){2, 0};
		MUST(!setitimer(ITIMER_REAL, &set, NULL));
		victim_ready();
		victim_wait();
		while (sigwaitinfo(&alarm_set, NULL) != SIGALRM)
			;
		CHECK(victim_now() - start >= 2 * SEC, "fired after %llu ms",
			(long long)((victim_now() - start) / MSEC));
		CHECK(victim_now() - start < 60 * SEC, "fired after %llu ms",
			(long long)((victim_now() - start) / MSEC));
		return victim_done();
	}
	for (int i = 0; i < 3; i++)
		MUST(!setitimer(kinds[i], &set, NULL));
	victim_ready();
	victim_wait();
	for (int i = 0; i < 3; i++) {
		MUST(!getitimer(kinds[i], &now));
		CHECK(now.it_interval.tv_sec == 77 && now.it_interval.tv_usec >= 123000 &&
				now.it_interval.tv_usec < 130000,
			"timer %d: interval %ld.%06ld", i, now.it_interval.tv_sec,
			now.it_interval.tv_usec);
		CHECK(now.it_value.tv_sec >= 900 && now.it_value.tv_sec <= 1000,
			"timer %d: %ld.%06ld s are left of 1000", i, now.it_value.tv_sec,
			now.it_value.tv_usec);
	}
	CHECK(alarm(0) >= 900, "alarm");
	signal(SIGVTALRM, SIG_IGN);
	set.it_value = (struct timeval){0, 10000};
	MUST(!setitimer(ITIMER_VIRTUAL, &set, NULL));
	limit = victim_limit();
	do {
		MUST(!getitimer(ITIMER_VIRTUAL, &now));
	} while (now.it_value.tv_sec < 70 && victim_now() < limit);
	CHECK(now.it_value.tv_sec >= 70, "a virtual timer does not run");
	return victim_done();
}
