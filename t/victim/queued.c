/* More signals than half of what their user may have waiting, in their order. */
#include <sys/resource.h>

#include "victim.h"

static int queued = 5000;

static sigset_t the_signal;

/* Whether the next signal is the one that is expected. */
static bool take_value(int value)
{
	struct timespec none = {0, 0};
	siginfo_t info;

	return sigtimedwait(&the_signal, &info, &none) == SIGRTMIN &&
	       info.si_value.sival_int == value;
}

void victim_hurt(void)
{
	take_value(0);
}

int main(int argc, char **argv)
{
	int i = 0;

	if (argc > 1)
		queued = atoi(argv[1]);

	sigemptyset(&the_signal);
	sigaddset(&the_signal, SIGRTMIN);
	MUST(!sigprocmask(SIG_BLOCK, &the_signal, NULL));
	for (; i < queued; i++)
		if (sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i}))
			victim_skip("the user may have fewer signals waiting");
	victim_ready();
	victim_wait();
	for (i = 0; i < queued && take_value(i);)
		i++;
	CHECK(i == queued, "signal %d is not the next one", i);
	CHECK(!take_value(i), "one more signal");
	return victim_done();
}
