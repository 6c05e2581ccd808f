/* Signals that wait: of the process and of single threads, with their siginfo, several of the
 * same real-time signal in their order. */
#include "victim.h"

static pthread_barrier_t before, after;

static bool take_signal(int want, int code, int value, const char *what);

void victim_hurt(void)
{
	take_signal(SIGRTMIN + 2, SI_QUEUE, 100, "taken too early");
}

static bool take_signal(int want, int code, int value, const char *what)
{
	struct timespec none = {0, 0};
	siginfo_t i;
	sigset_t set;

	memset(&i, 0, sizeof(i));
	sigemptyset(&set);
	sigaddset(&set, want);
	if (sigtimedwait(&set, &i, &none) != want) {
		CHECK(0, "%s: signal %d does not wait", what, want);
		return false;
	}
	CHECK(i.si_code == code, "%s: signal %d has code %d, had %d", what, want, i.si_code,
		code);
	CHECK(code == SI_KERNEL || i.si_pid == getpid(), "%s: signal %d is from %d", what, want,
		i.si_pid);
	CHECK(code == SI_KERNEL || i.si_uid == getuid(), "%s: signal %d is from user %d", what,
		want, i.si_uid);
	if (code == SI_QUEUE)
		CHECK(i.si_value.sival_int == value, "%s: signal %d has value %d, had %d", what,
			want, i.si_value.sival_int, value);
	return true;
}

static void none_left(int n, const char *what)
{
	struct timespec none = {0, 0};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, n);
	CHECK(sigtimedwait(&set, NULL, &none) == -1 && errno == EAGAIN,
		"%s: one more signal %d", what, n);
}

static void *thread(void *arg)
{
	size_t n = (size_t)arg;
	union sigval v;

	for (int i = 0; i < 3; i++) {
		v.sival_int = n * 10 + i;
		MUST(!pthread_sigqueue(pthread_self(), SIGRTMIN + 1, v));
	}
	MUST(!pthread_kill(pthread_self(), SIGUSR2));
	if (n == 2)
		MUST(!pthread_kill(pthread_self(), SIGTRAP) &&
			!pthread_kill(pthread_self(), SIGCONT));
	pthread_barrier_wait(&before);
	pthread_barrier_wait(&after);
	for (int i = 0; i < 3; i++)
		take_signal(SIGRTMIN + 1, SI_QUEUE, n * 10 + i, "thread");
	none_left(SIGRTMIN + 1, "thread");
	/* SI_TKILL for the kernel, which the C library shows so. */
	take_signal(SIGUSR2, SI_USER, 0, "thread");
	if (n == 2) {
		take_signal(SIGTRAP, SI_USER, 0, "thread");
		take_signal(SIGCONT, SI_USER, 0, "thread");
	}
	pthread_barrier_wait(&before);
	return NULL;
}

int main(void)
{
	pthread_t t[3];
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	pthread_barrier_init(&before, NULL, 4);
	pthread_barrier_init(&after, NULL, 4);
	for (size_t i = 0; i < 3; i++)
		t[i] = victim_thread(thread, (void *)(i + 1));
	for (int i = 0; i < 5; i++)
		MUST(!sigqueue(getpid(), SIGRTMIN + 2, (union sigval){.sival_int = 100 + i}));
	MUST(!kill(getpid(), SIGTERM));
	MUST(!kill(getpid(), SIGTERM));
	MUST(!sigqueue(getpid(), SIGTRAP, (union sigval){.sival_int = 9}));
	MUST(!sigqueue(getpid(), SIGHUP, (union sigval){.sival_int = 7}));
	pthread_barrier_wait(&before);
	victim_ready();
	victim_wait();
	pthread_barrier_wait(&after);
	/* Not before the threads took their own: what is the process's is nobody's. */
	pthread_barrier_wait(&before);
	for (int i = 0; i < 5; i++)
		take_signal(SIGRTMIN + 2, SI_QUEUE, 100 + i, "process");
	none_left(SIGRTMIN + 2, "process");
	take_signal(SIGTERM, SI_USER, 0, "process");
	none_left(SIGTERM, "process");
	take_signal(SIGHUP, SI_QUEUE, 7, "process");
	take_signal(SIGTRAP, SI_QUEUE, 9, "process");
	none_left(SIGTRAP, "process");
	none_left(SIGCONT, "process");
	none_left(SIGSTOP, "process");
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	return victim_done();
}
