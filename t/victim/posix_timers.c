/* timer_create: several clocks, ids with gaps, values, SIGEV_THREAD_ID, SIGEV_NONE, and one
 * that has already overrun. */
#include "victim.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static int ids[12];
static char listed[2][4096];
static pthread_barrier_t before, after;
static pid_t tid;

void victim_hurt(void)
{
	syscall(SYS_timer_delete, ids[4]);
}

/* Ids, signals, values, whom they are for, clocks. */
static void list(char *text, size_t size)
{
	int fd = open("/proc/self/timers", O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && read(fd, text, size - 1) < 0)
		*text = 0;
	close(fd);
}

/* The kernel's own ids, which glibc hides. */
static int make_timer(int clock, int notify, int signo, int value)
{
	struct sigevent e = {.sigev_notify = notify, .sigev_signo = signo};
	int id = -1;

	e.sigev_value.sival_int = value;
	if (notify == SIGEV_THREAD_ID)
		e.sigev_notify_thread_id = tid;
	MUST(!syscall(SYS_timer_create, clock, &e, &id));
	return id;
}

static void arm(int id, uint64_t value, uint64_t interval)
{
	struct itimerspec s = {.it_value = {value / SEC, value % SEC},
		.it_interval = {interval / SEC, interval % SEC}};

	MUST(!syscall(SYS_timer_settime, id, 0, &s, NULL));
}

static void check_timer(int id, uint64_t value, uint64_t interval, const char *what)
{
	struct itimerspec s = {0};

	CHECK(!syscall(SYS_timer_gettime, id, &s), "%s: timer %d: %s", what, id,
		strerror(errno));
	CHECK(s.it_interval.tv_sec * SEC + s.it_interval.tv_nsec == interval,
		"%s: interval %ld.%09ld", what, s.it_interval.tv_sec, s.it_interval.tv_nsec);
	CHECK((uint64_t)s.it_value.tv_sec <= value / SEC &&
			(value == 0 ? !s.it_value.tv_sec && !s.it_value.tv_nsec
				    : (uint64_t)s.it_value.tv_sec + 100 >= value / SEC),
		"%s: %ld.%09ld s are left of %llu", what, s.it_value.tv_sec, s.it_value.tv_nsec,
		(long long)(value / SEC));
}

static bool take_signal(int signo, siginfo_t *i)
{
	struct timespec limit = {20, 0};
	sigset_t set;
	int r;

	memset(i, 0, sizeof(*i));
	sigemptyset(&set);
	sigaddset(&set, signo);
	do
		r = sigtimedwait(&set, i, &limit);
	while (r < 0 && errno == EINTR);
	CHECK(r == signo, "signal %d does not come", signo);
	return r == signo;
}

static void *thread(void *arg)
{
	siginfo_t i;

	tid = victim_tid();
	pthread_barrier_wait(&before);
	pthread_barrier_wait(&after);
	arm(ids[5], 10 * MSEC, 0);
	if (take_signal(SIGRTMIN + 5, &i))
		CHECK(i.si_code == SI_TIMER && i.si_value.sival_int == 55, "code %d, value %d",
			i.si_code, i.si_value.sival_int);
	return NULL;
}

int main(void)
{
	uint64_t start;
	sigset_t set;
	siginfo_t i;
	pthread_t t;
	int id;

	sigfillset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	pthread_barrier_init(&before, NULL, 2);
	pthread_barrier_init(&after, NULL, 2);
	t = victim_thread(thread, NULL);
	pthread_barrier_wait(&before);
	for (int n = 0; n < 3; n++)
		ids[n] = make_timer(CLOCK_MONOTONIC, SIGEV_SIGNAL, SIGRTMIN + 1, n);
	syscall(SYS_timer_delete, ids[1]); /* the first gap */
	ids[3] = make_timer(CLOCK_REALTIME, SIGEV_SIGNAL, SIGRTMIN + 2, 33);
	ids[4] = make_timer(CLOCK_BOOTTIME, SIGEV_NONE, 0, 0);
	ids[5] = make_timer(CLOCK_MONOTONIC, SIGEV_THREAD_ID, SIGRTMIN + 5, 55);
	ids[6] = make_timer(CLOCK_PROCESS_CPUTIME_ID, SIGEV_SIGNAL, SIGRTMIN + 3, 66);
	for (int n = 0; n < 20; n++)
		syscall(SYS_timer_delete, make_timer(CLOCK_MONOTONIC, SIGEV_NONE, 0, 0));
	ids[7] = make_timer(CLOCK_MONOTONIC, SIGEV_SIGNAL, SIGRTMIN + 7, 77);
	ids[8] = make_timer(CLOCK_MONOTONIC, SIGEV_SIGNAL, SIGRTMIN + 8, 88);
	arm(ids[0], 1000 * SEC, 7 * SEC);
	arm(ids[3], 2000 * SEC, 0);
	arm(ids[4], 3000 * SEC, SEC / 8);
	arm(ids[6], 500 * SEC, 0);
	start = victim_now();
	arm(ids[7], 2 * SEC, 0);
	/* It fires into a blocked signal and overruns from then on. */
	arm(ids[8], MSEC, MSEC);
	usleep(20000);
	list(listed[0], sizeof(listed[0]));
	victim_ready();
	victim_wait();
	list(listed[1], sizeof(listed[1]));
	CHECK(!strcmp(listed[0], listed[1]), "timers were\n%sare\n%s", listed[0], listed[1]);
	/* How often it had overrun before a restart the kernel does not tell. */
	usleep(20000);
	check_timer(ids[0], 1000 * SEC, 7 * SEC, "monotonic");
	check_timer(ids[2], 0, 0, "not armed");
	check_timer(ids[3], 2000 * SEC, 0, "real time");
	check_timer(ids[4], 3000 * SEC, SEC / 8, "boot time");
	check_timer(ids[6], 500 * SEC, 0, "processor time");
	pthread_barrier_wait(&after);
	pthread_join(t, NULL);
	if (take_signal(SIGRTMIN + 7, &i)) {
		CHECK(victim_now() - start >= 2 * SEC, "fired early");
		CHECK(i.si_value.sival_int == 77, "value %d", i.si_value.sival_int);
	}
	if (take_signal(SIGRTMIN + 8, &i)) {
		CHECK(i.si_code == SI_TIMER && i.si_value.sival_int == 88, "code %d, value %d",
			i.si_code, i.si_value.sival_int);
		CHECK(i.si_overrun > 5, "overrun is %d", i.si_overrun);
	}
	CHECK(take_signal(SIGRTMIN + 8, &i), "an interval timer ticks only once");
	arm(ids[2], MSEC, 0);
	if (take_signal(SIGRTMIN + 1, &i))
		CHECK(i.si_value.sival_int == 2, "value %d", i.si_value.sival_int);
	id = make_timer(CLOCK_MONOTONIC, SIGEV_NONE, 0, 0);
	for (int n = 0; n < 9; n++)
		CHECK(n == 1 || id != ids[n], "id %d is given out twice", id);
	CHECK(syscall(SYS_timer_gettime, ids[1], &(struct itimerspec){0}) < 0 || id == ids[1],
		"a deleted timer is back");
	return victim_done();
}
