/*
 * A program whose clocks go on from the checkpoint, wherever it is brought back: none of them
 * has gone back or leapt, absolute timers and sleeps end when they are to. Meant for a time
 * namespace whose clocks are far from the machine's (t/clock.t).
 */
#include <sys/timerfd.h>

#include "victim.h"

/* Two restarts take no longer, and what is waited for comes after them. */
#define MOST  (100 * SEC)
#define LATER (4 * SEC)

static const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_BOOTTIME};
static uint64_t before[2], due[2];
static int timers[2];
static timer_t posix;
static _Atomic int asleep;
static atomic_bool over;

/* A timer's expiry without the vdso, which has the shifts from a page of its own. */
static uint64_t ask_kernel(clockid_t clock)
{
	struct timespec t;

	syscall(SYS_clock_gettime, clock, &t);
	return t.tv_sec * SEC + t.tv_nsec;
}

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = ns / SEC, .tv_nsec = ns % SEC};
}

static void *sleep_until(void *arg)
{
	struct timespec until = to_timespec(due[0]);

	asleep = victim_tid();
	CHECK(!clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL), "sleep");
	CHECK(victim_now() >= due[0], "a sleep ended %ld ms early",
		(long)(due[0] - victim_now()) / 1000000);
	CHECK(victim_now() < due[0] + MOST, "a sleep ended late");
	over = true;
	return NULL;
}

static void check_clock(int i)
{
	uint64_t now = victim_clock(clocks[i]), kernel = ask_kernel(clocks[i]);
	uint64_t after = victim_clock(clocks[i]);

	CHECK(now >= before[i], "clock %d has gone back %.3f s", i, (before[i] - now) / 1e9);
	CHECK(now < before[i] + MOST, "clock %d has leapt %.3f s", i, (now - before[i]) / 1e9);
	CHECK(now <= kernel && kernel <= after, "clock %d: the vdso says %llu, the kernel %llu",
		i, (long long)now, (long long)kernel);
}

static void check_timer(int i)
{
	uint64_t ticks = 0;

	CHECK(read(timers[i], &ticks, sizeof(ticks)) == sizeof(ticks) && ticks == 1,
		"timerfd %d: %lld ticks", i, (long long)ticks);
	CHECK(victim_clock(clocks[i]) >= due[i], "timerfd %d is early", i);
	CHECK(victim_clock(clocks[i]) < due[i] + MOST, "timerfd %d is late", i);
}

/* Armed anew for a time of day of the clock as it is now. */
static void check_posix(void)
{
	struct itimerspec t = {.it_value = to_timespec(victim_now() + 50 * MSEC)};
	struct timespec limit = {.tv_sec = 20};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	CHECK(!timer_settime(posix, TIMER_ABSTIME, &t, NULL), "timer_settime: %s",
		strerror(errno));
	CHECK(sigtimedwait(&set, NULL, &limit) == SIGALRM, "no SIGALRM");
}

void victim_hurt(void)
{
	before[0] += 1000 * SEC;
}

int main(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
	pthread_t sleeper;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < 2; i++) {
		struct itimerspec t = {0};

		before[i] = victim_clock(clocks[i]);
		due[i] = before[i] + LATER;
		t.it_value = to_timespec(due[i]);
		timers[i] = timerfd_create(clocks[i], TFD_CLOEXEC);
		MUST(timers[i] >= 0 &&
			!timerfd_settime(timers[i], TFD_TIMER_ABSTIME, &t, NULL));
	}
	MUST(!timer_create(CLOCK_MONOTONIC, &event, &posix));
	sleeper = victim_thread(sleep_until, NULL);
	while (!asleep)
		sched_yield();
	while (!over && victim_sleeps_in(asleep) != SYS_clock_nanosleep)
		usleep(500);
	victim_ready();
	victim_wait();
	for (int i = 0; i < 2; i++)
		check_clock(i);
	check_posix();
	for (int i = 0; i < 2; i++)
		check_timer(i);
	pthread_join(sleeper, NULL);
	return victim_done();
}
