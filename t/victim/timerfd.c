/* timerfd: what is left, the interval, ticks not yet read, clocks and flags, an appointment at
 * a time of day. */
#include <sys/timerfd.h>

#include "victim.h"

static int far, ticking, due, realtime, idle, appointment;
static struct itimerspec at_time;

void victim_hurt(void)
{
	uint64_t ticks;

	if (read(ticking, &ticks, 8) == 8)
		timerfd_settime(ticking, 0, &(struct itimerspec){.it_value = {100, 0}}, NULL);
}

static int make_timer(int clock, int flags, double value, double interval)
{
	int fd = timerfd_create(clock, flags);
	struct itimerspec s = {
		.it_value = {(long)value, (long)((value - (long)value) * 1e9)},
		.it_interval = {(long)interval, (long)((interval - (long)interval) * 1e9)},
	};

	MUST(fd >= 0 && !timerfd_settime(fd, 0, &s, NULL));
	return fd;
}

static void check_timer(int fd, long left, long interval_ns, const char *what)
{
	struct itimerspec s = {0};

	CHECK(!timerfd_gettime(fd, &s), "%s: %s", what, strerror(errno));
	CHECK(s.it_value.tv_sec <= left && s.it_value.tv_sec + 100 >= left,
		"%s: %ld.%09ld left", what, s.it_value.tv_sec, s.it_value.tv_nsec);
	CHECK(s.it_interval.tv_sec * (long)SEC + s.it_interval.tv_nsec == interval_ns,
		"%s: interval %ld.%09ld", what, s.it_interval.tv_sec, s.it_interval.tv_nsec);
}

/* A number in fdinfo, behind @key (man proc_pid_fdinfo). */
static int shown(int fd, const char *key, int base)
{
	char text[512], *p;

	victim_fdinfo(fd, text, sizeof(text));
	p = strstr(text, key);
	return p ? (int)strtol(p + strlen(key), NULL, base) : -1;
}

static void make_appointment(void)
{
	appointment = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC);
	MUST(appointment >= 0 && !clock_gettime(CLOCK_REALTIME, &at_time.it_value));
	at_time.it_value.tv_sec += 1000;
	MUST(!timerfd_settime(
		appointment, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at_time, NULL));
}

/* What is left, and when that was: the time of day is the same whenever it is looked at. */
static void check_appointment(void)
{
	uint64_t then = at_time.it_value.tv_sec * SEC + at_time.it_value.tv_nsec, left;
	uint64_t before = victim_clock(CLOCK_REALTIME), after;
	struct itimerspec s = {0};

	CHECK(!timerfd_gettime(appointment, &s), "%s", strerror(errno));
	after = victim_clock(CLOCK_REALTIME);
	left = s.it_value.tv_sec * SEC + s.it_value.tv_nsec;
	CHECK(before + left <= then && then <= after + left, "the appointment is %lld us late",
		(long long)(before + left - then) / 1000);
	CHECK(shown(appointment, "settime flags:", 8) ==
			(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET),
		"flags %o", shown(appointment, "settime flags:", 8));
}

int main(void)
{
	uint64_t ticks = 0, start;
	int n;

	far = make_timer(CLOCK_MONOTONIC, 0, 1000, 3.5);
	realtime = make_timer(CLOCK_REALTIME, TFD_CLOEXEC, 2000, 0);
	ticking = make_timer(CLOCK_MONOTONIC, TFD_NONBLOCK, 0.001, 1000);
	idle = make_timer(CLOCK_BOOTTIME, TFD_NONBLOCK, 0, 0);
	start = victim_now();
	due = make_timer(CLOCK_MONOTONIC, 0, 1.5, 0);
	make_appointment();
	usleep(10000);
	victim_ready();
	victim_wait();
	check_appointment();
	CHECK(shown(realtime, "clockid:", 10) == CLOCK_REALTIME &&
			shown(idle, "clockid:", 10) == CLOCK_BOOTTIME &&
			shown(far, "clockid:", 10) == CLOCK_MONOTONIC,
		"clocks");
	check_timer(far, 1000, 3500 * (long)MSEC, "monotonic");
	check_timer(realtime, 2000, 0, "real time");
	check_timer(ticking, 1000, 1000 * (long)SEC, "the one that has ticked");
	n = read(ticking, &ticks, 8);
	CHECK(n == 8 && ticks == 1, "%d bytes, %lld ticks", n, (long long)ticks);
	CHECK(read(ticking, &ticks, 8) < 0 && errno == EAGAIN, "more ticks, or blocking");
	CHECK(read(idle, &ticks, 8) < 0 && errno == EAGAIN, "an unarmed one ticks");
	CHECK(fcntl(realtime, F_GETFD) == FD_CLOEXEC && !fcntl(far, F_GETFD), "close-on-exec");
	n = read(due, &ticks, 8);
	CHECK(n == 8 && ticks == 1, "%d bytes, %lld ticks", n, (long long)ticks);
	CHECK(victim_now() - start >= 1500 * MSEC, "due after %llu ms",
		(long long)((victim_now() - start) / MSEC));
	return victim_done();
}
