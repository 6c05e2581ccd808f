/*
 * Threads inside system calls that wait: none of them may notice the checkpoint, neither as
 * EINTR nor by returning early, and a time-out continues with the time that was left.
 *
 *	blocked [KIND...]	one thread for each kind (all that a restart supports)
 *	blocked alone KIND	the main thread, the only one
 *	blocked ended KIND...	other threads, when the main thread has ended
 *
 * The victim is ready when half of the time-out has passed. Never early is checked exactly.
 * An upper limit is set only to tell "what was left" from "all of it again": the time during
 * which a third thread could not run is taken off before.
 */
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>

#include "uring.h"

/* A call that is alone has to be asleep still when it is checkpointed for the second time, however
 * busy the machine. */
#define TIMEOUT_ALONE (8 * SEC)

static uint64_t timeout = 3 * SEC;

static int quiet[2]; /* a pipe that nobody writes to */
static int woken[2]; /* written to at the end */
static atomic_int go;
static struct timespec whole = {3, 0};

static struct timespec until(clockid_t clock)
{
	uint64_t t = victim_clock(clock) + timeout;

	return (struct timespec){t / SEC, t % SEC};
}

static long do_nanosleep(void)
{
	return nanosleep(&whole, NULL);
}

static long do_clock_nanosleep(void)
{
	return syscall(SYS_clock_nanosleep, CLOCK_BOOTTIME, 0, &whole, NULL);
}

/* With what is left written over the whole, as sleep(3) has it. */
static long do_sleep(void)
{
	struct timespec t = whole;

	return syscall(SYS_nanosleep, &t, &t);
}

static long do_clock_sleep(void)
{
	struct timespec t = whole, left;

	return syscall(SYS_clock_nanosleep, CLOCK_REALTIME, 0, &t, &left);
}

static long do_clock_nanosleep_abs(void)
{
	struct timespec t = until(CLOCK_MONOTONIC);

	return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static long do_poll(void)
{
	struct pollfd p = {quiet[0], POLLIN, 0};

	return syscall(SYS_poll, &p, 1, (int)(timeout / MSEC));
}

static long do_ppoll(void)
{
	struct timespec t = whole;
	struct pollfd p = {quiet[0], POLLIN, 0};

	return syscall(SYS_ppoll, &p, 1, &t, NULL, 0);
}

static long do_select(void)
{
	struct timeval t = {timeout / SEC, 0};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(quiet[0], &set);
	return syscall(SYS_select, quiet[0] + 1, &set, NULL, NULL, &t);
}

static long do_pselect(void)
{
	struct timespec t = whole;
	fd_set set;

	FD_ZERO(&set);
	FD_SET(quiet[0], &set);
	return syscall(SYS_pselect6, quiet[0] + 1, &set, NULL, NULL, &t, NULL);
}

static long do_futex_timed(void)
{
	int word = 0;

	return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &whole, NULL, 0);
}

static long do_futex_until(void)
{
	struct timespec t = until(CLOCK_MONOTONIC);
	int word = 0;

	return syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &t, NULL, ~0u);
}

static long do_sem_timedwait(void)
{
	struct timespec t = until(CLOCK_REALTIME);
	sem_t s;

	sem_init(&s, 0, 0);
	return sem_timedwait(&s, &t);
}

static long do_sigtimedwait(void)
{
	uint64_t set = 1ull << (SIGRTMIN + 10 - 1);

	return syscall(SYS_rt_sigtimedwait, &set, NULL, &whole, 8);
}

static long do_epoll_wait(void)
{
	struct epoll_event e;
	int fd = epoll_create1(EPOLL_CLOEXEC);

	return syscall(SYS_epoll_wait, fd, &e, 1, (int)(timeout / MSEC));
}

static long do_epoll_pwait2(void)
{
	struct timespec t = whole;
	struct epoll_event e;
	int fd = epoll_create1(EPOLL_CLOEXEC);

	return syscall(441 /* epoll_pwait2 */, fd, &e, 1, &t, NULL, 8);
}

/* For a completion that does not come. */
static long do_ring(void)
{
	struct io_uring_params params = {0};
	struct timespec t = whole;
	struct io_uring_getevents_arg argument = {.ts = (uintptr_t)&t};
	int fd = syscall(SYS_io_uring_setup, 4, &params);

	MUST(fd >= 0 && params.features & IORING_FEAT_EXT_ARG);
	return syscall(SYS_io_uring_enter, fd, 0, 1,
		IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &argument, sizeof(argument));
}

static long do_recv(void)
{
	struct timeval t = {timeout / SEC, 0};
	int pair[2];
	char c;

	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	MUST(!setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)));
	return syscall(SYS_recvfrom, pair[0], &c, 1, 0, NULL, NULL);
}

static int sems = -1, queue = -1;

static long do_semtimedop(void)
{
	struct sembuf op = {0, -1, 0};
	struct timespec t = whole;

	return syscall(SYS_semtimedop, sems, &op, 1, &t);
}

/* ---- without a time-out: these end when main says so ---- */

static long do_msgrcv(void)
{
	struct {
		long type;
		char text[8];
	} m;

	return syscall(SYS_msgrcv, queue, &m, 8, 0, 0);
}

static int spliced[2];

static long do_splice(void)
{
	struct timeval t = {1000, 0};
	int ends[2];

	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, spliced) && !pipe(ends));
	MUST(!setsockopt(spliced[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)));
	return syscall(SYS_splice, spliced[0], NULL, ends[1], NULL, 100, 0);
}

static long do_read(void)
{
	char c;

	return syscall(SYS_read, woken[0], &c, 1);
}

static long do_poll_forever(void)
{
	struct pollfd p = {woken[0], POLLIN, 0};

	return syscall(SYS_poll, &p, 1, -1);
}

static long do_futex(void)
{
	return syscall(SYS_futex, &go, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static long do_sigwait(void)
{
	uint64_t set = 1ull << (SIGRTMIN + 11 - 1);

	return syscall(SYS_rt_sigtimedwait, &set, NULL, NULL, 8);
}

/* Until the process has used some of a processor, which it does not while it sleeps. */
static struct timespec cpu_time = {0, 400 * MSEC};

static long do_cpu_sleep(void)
{
	return syscall(SYS_clock_nanosleep, CLOCK_PROCESS_CPUTIME_ID, 0, &cpu_time, NULL);
}

static __thread volatile int handled;

static void handler(int n)
{
	handled++;
}

static long do_pause(void)
{
	long r = syscall(SYS_pause);

	return handled ? r : -2;
}

static long do_sigsuspend(void)
{
	uint64_t mask = ~(1ull << (SIGUSR2 - 1));
	long r = syscall(SYS_rt_sigsuspend, &mask, 8);

	return handled ? r : -2;
}

static struct kind {
	const char *name;
	long nr;
	long (*call)(void);
	bool timed;
	long result;
	int error; /* with result -1 */
	bool only_on_request;

	/* The thread's own */
	pid_t tid;
	pthread_t thread;
	bool used;
	uint64_t start;
	_Atomic uint64_t end;
	long got;
	int got_errno;
} kinds[] = {
	{"nanosleep", SYS_clock_nanosleep, do_nanosleep, true, 0, 0, false},
	{"clock_nanosleep", SYS_clock_nanosleep, do_clock_nanosleep, true, 0, 0, false},
	{"sleep", SYS_nanosleep, do_sleep, true, 0, 0, false},
	{"clock_sleep", SYS_clock_nanosleep, do_clock_sleep, true, 0, 0, false},
	{"clock_nanosleep_abs", SYS_clock_nanosleep, do_clock_nanosleep_abs, true, 0, 0, false},
	{"poll", SYS_poll, do_poll, true, 0, 0, false},
	{"ppoll", SYS_ppoll, do_ppoll, true, 0, 0, false},
	{"select", SYS_select, do_select, true, 0, 0, false},
	{"pselect", SYS_pselect6, do_pselect, true, 0, 0, false},
	{"futex_timed", SYS_futex, do_futex_timed, true, -1, ETIMEDOUT, false},
	{"futex_until", SYS_futex, do_futex_until, true, -1, ETIMEDOUT, false},
	{"sem_timedwait", SYS_futex, do_sem_timedwait, true, -1, ETIMEDOUT, false},
	{"sigtimedwait", SYS_rt_sigtimedwait, do_sigtimedwait, true, -1, EAGAIN, false},
	{"read", SYS_read, do_read, false, 1, 0, false},
	{"poll_forever", SYS_poll, do_poll_forever, false, 1, 0, false},
	{"futex", SYS_futex, do_futex, false, 0, 0, false},
	{"sigwait", SYS_rt_sigtimedwait, do_sigwait, false, 0, 0, false},
	{"pause", SYS_pause, do_pause, false, -1, EINTR, false},
	{"sigsuspend", SYS_rt_sigsuspend, do_sigsuspend, false, -1, EINTR, false},
	{"cpu_sleep", SYS_clock_nanosleep, do_cpu_sleep, false, 0, 0, false},
	{"epoll_wait", SYS_epoll_wait, do_epoll_wait, true, 0, 0, true},
	{"epoll_pwait2", 441, do_epoll_pwait2, true, 0, 0, true},
	{"recv", SYS_recvfrom, do_recv, true, -1, EAGAIN, true},
	{"io_uring", SYS_io_uring_enter, do_ring, true, -1, ETIME, true},
	{"semtimedop", SYS_semtimedop, do_semtimedop, true, -1, EAGAIN, true},
	{"splice", SYS_splice, do_splice, false, 1, 0, true},
	{"msgrcv", SYS_msgrcv, do_msgrcv, false, 2, 0, true},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

void victim_hurt(void)
{
	for (struct kind *k = kinds; k < kinds + KINDS; k++)
		if (k->used && k->timed)
			pthread_kill(k->thread, SIGUSR2);
}

static void run(struct kind *k)
{
	k->start = victim_now();
	k->got = k->call();
	k->got_errno = errno;
	k->end = victim_now();
}

static void *thread(void *arg)
{
	struct kind *k = arg;
	sigset_t set;

	sigfillset(&set);
	/* rt_sigsuspend lets it through by itself, the two that wait for others do not. */
	if (k->timed || k->nr == SYS_pause)
		sigdelset(&set, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
	k->tid = victim_tid();
	run(k);
	return NULL;
}

/* Time in which nothing could run: gaps between looks at the clock. */
static atomic_bool stop_watch;
static atomic_ullong stood_still;

static void *watch(void *arg)
{
	uint64_t last = victim_now();

	while (!stop_watch) {
		uint64_t t;

		usleep(5000);
		t = victim_now();
		if (t - last > 20 * MSEC)
			stood_still += t - last - 5 * MSEC;
		last = t;
	}
	return NULL;
}

static void check_call(struct kind *k)
{
	uint64_t took = k->end - k->start;

	CHECK(k->got == k->result && (k->got != -1 || k->got_errno == k->error),
		"%s returned %ld (%s) after %llu ms", k->name, k->got,
		k->got < 0 ? strerror(k->got_errno) : "-", (long long)(took / MSEC));
	if (!k->timed)
		return;
	/* The real-time clock may be adjusted meanwhile. */
	CHECK(took + (k->call == do_sem_timedwait ? 50 * MSEC : 0) >= timeout,
		"%s returned %lld us early", k->name, (long long)((timeout - took) / 1000));
	CHECK(took < timeout + stood_still + 2500 * MSEC,
		"%s waited %llu ms, of which the program stood still %llu", k->name,
		(long long)(took / MSEC), (long long)(stood_still / MSEC));
}

static void wake(struct kind *k)
{
	struct {
		long type;
		char text[8];
	} m = {1, "m"};
	union sigval v = {0};

	if (k->call == do_read || k->call == do_poll_forever) {
		MUST(write(woken[1], "x", 1) == 1);
	} else if (k->call == do_futex) {
		go = 1;
		syscall(SYS_futex, &go, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0);
	} else if (k->call == do_splice) {
		MUST(write(spliced[1], "x", 1) == 1);
	} else if (k->call == do_cpu_sleep) {
		CHECK(!k->end, "%s returned before the time was used", k->name);
		while (!k->end)
			;
	} else if (k->call == do_sigwait) {
		k->result = SIGRTMIN + 11;
		pthread_sigqueue(k->thread, SIGRTMIN + 11, v);
	} else if (k->call == do_msgrcv) {
		MUST(!msgsnd(queue, &m, 2, 0));
	} else {
		pthread_kill(k->thread, SIGUSR2);
	}
}

static int alone(struct kind *k)
{
	victim_ready();
	run(k);
	CHECK(k->got == k->result && (k->got != -1 || k->got_errno == k->error),
		"%s returned %ld (%s)", k->name, k->got, strerror(k->got_errno));
	CHECK(k->end - k->start >= timeout, "%s returned after %llu ms", k->name,
		(long long)((k->end - k->start) / MSEC));
	return victim_done();
}

static int block(int argc, char **argv)
{
	bool by_itself = argc == 3 && !strcmp(argv[1], "alone");
	struct kind *chosen = NULL;
	struct sigaction a = {.sa_handler = handler};
	struct {
		long type;
		char text[2];
	} m = {1, "m"};
	pthread_t watcher;
	uint64_t start;

	MUST(!pipe(quiet) && !pipe(woken));
	sigaction(SIGUSR2, &a, NULL);
	for (struct kind *k = kinds; k < kinds + KINDS; k++) {
		k->used = argc == 1 && !k->only_on_request;
		for (int i = 1; i < argc; i++)
			if (!strcmp(argv[i], k->name))
				k->used = true, chosen = k;
		if (k->used && k->call == do_ring)
			uring_skip_if_refused();
	}
	if (by_itself) {
		timeout = TIMEOUT_ALONE;
		whole.tv_sec = timeout / SEC;
		return alone(chosen);
	}
	sems = semget(IPC_PRIVATE, 1, 0600);
	queue = msgget(IPC_PRIVATE, 0600);
	/* A queue that nobody has used is left where it is by a restart in a namespace of its own
	 * (t/victim/sysv.c has one). */
	MUST(!msgsnd(queue, &m, 2, 0) && msgrcv(queue, &m, 2, 0, 0) == 2);
	watcher = victim_thread(watch, NULL);
	for (struct kind *k = kinds; k < kinds + KINDS; k++)
		if (k->used)
			k->thread = victim_thread(thread, k);
	start = victim_now();
	for (struct kind *k = kinds; k < kinds + KINDS; k++) {
		while (k->used && !k->tid)
			usleep(100);
		if (k->used)
			victim_until_blocked(k->tid, k->nr);
	}
	while (victim_now() < start + timeout / 2)
		usleep(1000);
	victim_ready();
	victim_wait();
	for (struct kind *k = kinds; k < kinds + KINDS; k++)
		if (k->used && !k->timed)
			wake(k);
	for (struct kind *k = kinds; k < kinds + KINDS; k++)
		if (k->used)
			pthread_join(k->thread, NULL);
	stop_watch = true;
	pthread_join(watcher, NULL);
	for (struct kind *k = kinds; k < kinds + KINDS; k++)
		if (k->used)
			check_call(k);
	semctl(sems, 0, IPC_RMID);
	msgctl(queue, IPC_RMID, NULL);
	return victim_done();
}

static struct {
	int argc;
	char **argv;
	pthread_t first;
} words;

static void *run_without_first(void *arg)
{
	MUST(!pthread_join(words.first, NULL));
	exit(block(words.argc, words.argv));
}

int main(int argc, char **argv)
{
	if (argc < 2 || strcmp(argv[1], "ended"))
		return block(argc, argv);
	words.argc = argc - 1;
	words.argv = argv + 1;
	words.first = pthread_self();
	/* Half of it is more than the upper limit leaves. */
	timeout = 20 * SEC;
	whole.tv_sec = timeout / SEC;
	victim_thread(run_without_first, NULL);
	pthread_exit(NULL);
}
