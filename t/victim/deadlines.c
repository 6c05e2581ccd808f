/*
 * Threads that wait until a time of CLOCK_MONOTONIC or CLOCK_BOOTTIME in all calls that take
 * one. Wherever the program is brought back, and whatever its clocks show there, they wait for
 * as long as they would have, and what they wait for is left where a loop could add to it
 * (t/clock.t).
 */
#include <linux/futex.h>

#include "victim.h"

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
struct futex_waitv {
	uint64_t val, uaddr;
	uint32_t flags, reserved;
};
#endif

/* Two restarts take no longer, and what is waited for comes after the checkpoint. */
#define MOST  (100 * SEC)
#define LATER (5 * SEC)

struct waiter {
	clockid_t clock;
	long nr;
	int (*wait)(struct waiter *w);
	struct timespec *until;
	struct timespec own;
	uint64_t before, due;
	_Atomic uint64_t end; /* 0: it waits */
	_Atomic int tid;
	pthread_t thread;
};

static uint32_t word, held; /* that nobody wakes */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static int wait_asleep(struct waiter *w)
{
	return clock_nanosleep(w->clock, TIMER_ABSTIME, w->until, NULL) ? -1 : 0;
}

static int timed_out(long result)
{
	return result < 0 && errno == ETIMEDOUT ? 0 : -1;
}

static int wait_bitset(struct waiter *w)
{
	return timed_out(
		syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, w->until, NULL, 1));
}

static int wait_lock(struct waiter *w)
{
	return timed_out(syscall(SYS_futex, &held, FUTEX_LOCK_PI2, 0, w->until, NULL, 0));
}

static int wait_vector(struct waiter *w)
{
	struct futex_waitv v = {.uaddr = (uintptr_t)&word, .flags = 2 /* 32 bits */};

	return timed_out(syscall(SYS_futex_waitv, &v, 1, 0, w->until, w->clock));
}

static int wait_cond(struct waiter *w)
{
	int result;

	pthread_mutex_lock(&mutex);
	result = pthread_cond_clockwait(&cond, &mutex, w->clock, w->until);
	pthread_mutex_unlock(&mutex);
	return result == ETIMEDOUT ? 0 : -1;
}

static struct waiter waiters[] = {
	{CLOCK_MONOTONIC, SYS_clock_nanosleep, wait_asleep, NULL},
	{CLOCK_BOOTTIME, SYS_clock_nanosleep, wait_asleep, NULL},
	{CLOCK_MONOTONIC, SYS_futex, wait_bitset, NULL},
	/* The same time as the one before: moved once. */
	{CLOCK_MONOTONIC, SYS_futex, wait_bitset, &waiters[2].own},
	{CLOCK_MONOTONIC, SYS_futex, wait_cond, NULL},
	{CLOCK_MONOTONIC, SYS_futex, wait_lock, NULL},
	{CLOCK_MONOTONIC, SYS_futex_waitv, wait_vector, NULL},
};
#define COUNT (sizeof(waiters) / sizeof(*waiters))

static uint64_t to_ns(const struct timespec *t)
{
	return t->tv_sec * SEC + t->tv_nsec;
}

static void *run(void *arg)
{
	struct waiter *w = arg;

	w->tid = victim_tid();
	CHECK(!w->wait(w), "waiter %zu: %s", w - waiters, strerror(errno));
	w->end = victim_clock(w->clock);
	return NULL;
}

static void start(struct waiter *w)
{
	w->before = victim_clock(w->clock);
	w->due = w->before + LATER;
	if (!w->until) {
		w->until = &w->own;
		w->own = (struct timespec){w->due / SEC, w->due % SEC};
	} else {
		w->due = to_ns(w->until);
	}
	w->thread = victim_thread(run, w);
	while (!w->tid)
		sched_yield();
	while (!w->end && victim_sleeps_in(w->tid) != w->nr)
		usleep(500);
}

/* What has been added to its time makes up for what its clock has leapt. */
static void check_waiter(const struct waiter *w)
{
	int64_t moved = to_ns(w->until) - w->due;
	int64_t passed = victim_clock(w->clock) - moved - w->before;

	/* The checkpoint has come too late to find it waiting. */
	if (!moved && w->end >= w->due && w->end < w->before + MOST)
		return;
	CHECK(passed >= 0 && passed < (int64_t)MOST,
		"waiter %zu: its time has been moved by %.3f s, its clock by %.3f s",
		w - waiters, moved / 1e9, (moved + passed) / 1e9);
}

static void finish(const struct waiter *w)
{
	pthread_join(w->thread, NULL);
	CHECK(w->end >= to_ns(w->until), "waiter %zu: %.3f s early", w - waiters,
		(to_ns(w->until) - w->end) / 1e9);
	CHECK(w->end < to_ns(w->until) + MOST, "waiter %zu: late", w - waiters);
}

void victim_hurt(void)
{
	waiters[0].due += 1000 * SEC;
}

int main(void)
{
	held = victim_tid();
	for (size_t i = 0; i < COUNT; i++)
		start(&waiters[i]);
	victim_ready();
	victim_wait();
	for (size_t i = 0; i < COUNT; i++)
		check_waiter(&waiters[i]);
	for (size_t i = 0; i < COUNT; i++)
		finish(&waiters[i]);
	return victim_done();
}
