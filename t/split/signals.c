/* Signal handlers during calls: they see the program's storage, may call themselves, may leave
 * by longjmp; setxid works; the program sees the handlers it has set. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "t/split/setup.h"

static __thread int mine = 42;
static volatile int stop, handled, bad;
static sigjmp_buf way_out;

static void early(int signal)
{
}

static void handler(int signal)
{
	int version = 0;

	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
	if (mine != 42)
		bad = 1;
	for (int i = 0; i < 20; i++)
		cuDriverGetVersion(&version);
	if (version != 13000)
		bad = 1;
}

static void leave(int signal)
{
	if (mine != 42)
		bad = 1;
	siglongjmp(way_out, 1);
}

static void *call(void *argument)
{
	void *current;
	int version;

	cuCtxSetCurrent(context);
	while (!stop) {
		OK(cuDriverGetVersion(&version));
		OK(cuCtxGetCurrent(&current));
		CHECK(current == context && mine == 42);
	}
	return NULL;
}

/* The kernel's and the libc's word on who handles a signal. */
static void queries(void)
{
	struct sigaction now;

	sigaction(SIGUSR2, NULL, &now);
	CHECK(now.sa_handler == early && !(now.sa_flags & SA_SIGINFO));
	signal(SIGUSR2, SIG_IGN);
	sigaction(SIGUSR2, NULL, &now);
	CHECK(now.sa_handler == SIG_IGN);
	CHECK(signal(SIGUSR2, early) == SIG_IGN);
	CHECK(signal(SIGUSR2, SIG_DFL) == early);
	CHECK(sigaction(SIGKILL, &now, NULL) == -1);
}

static void storm(void)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct itimerval often = {{0, 300}, {0, 300}}, off = {0};
	pthread_t threads[6];

	sigaction(SIGALRM, &action, NULL);
	for (int i = 0; i < 6; i++)
		pthread_create(&threads[i], NULL, call, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (handled < 2000) {
		int version;

		cuDriverGetVersion(&version);
	}
	CHECK(seteuid(geteuid()) == 0);
	stop = 1;
	setitimer(ITIMER_REAL, &off, NULL);
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
}

static void jumps(void)
{
	struct itimerval once = {{0, 0}, {0, 50}};
	volatile int n = 0;

	signal(SIGALRM, leave);
	while (n < 2000) {
		if (!sigsetjmp(way_out, 1)) {
			setitimer(ITIMER_REAL, &once, NULL);
			for (;;) {
				int version;

				cuDriverGetVersion(&version);
			}
		}
		n++;
	}
	OK(cuCtxSynchronize());
}

int main(void)
{
	signal(SIGUSR2, early);
	set_up();
	queries();
	storm();
	CHECK(!bad);
	jumps();
	CHECK(!bad);
	printf("done\n");
	return wrong != 0;
}
