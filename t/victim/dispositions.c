/* What each signal does: default, ignored, handlers with all kinds of flags and masks. */
#include "victim.h"

struct kernel_action {
	void *handler;
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};

static struct kernel_action was[65];
static volatile int got, got_value;
static volatile uint64_t mask_inside;

void victim_hurt(void)
{
	signal(SIGCHLD, SIG_DFL);
}

static void plain(int n)
{
	got = n;
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask_inside, 8);
}

static void info(int n, siginfo_t *i, void *context)
{
	got = n;
	got_value = i->si_value.sival_int;
}

static void look_at_action(int n, struct kernel_action *a)
{
	memset(a, 0, sizeof(*a));
	syscall(SYS_rt_sigaction, n, NULL, a, 8);
}

static void set(int n, void *handler, int flags, int masked)
{
	struct sigaction a = {.sa_handler = handler, .sa_flags = flags};

	if (masked)
		sigaddset(&a.sa_mask, masked);
	MUST(!sigaction(n, &a, NULL));
}

int main(void)
{
	struct kernel_action is;

	signal(SIGHUP, SIG_IGN);
	set(SIGUSR2, info, SA_SIGINFO | SA_RESTART, SIGHUP);
	set(SIGTERM, plain, SA_NODEFER, SIGINT);
	set(SIGINT, plain, SA_RESETHAND | SA_ONSTACK, 0);
	set(SIGCHLD, plain, SA_NOCLDSTOP | SA_NOCLDWAIT | SA_RESTART, SIGRTMAX);
	set(SIGRTMIN + 3, info, SA_SIGINFO, 0);
	set(SIGTRAP, plain, SA_RESTART, SIGHUP);
	for (int n = 1; n <= 64; n++)
		look_at_action(n, &was[n]);
	victim_ready();
	victim_wait();
	for (int n = 1; n <= 64; n++) {
		look_at_action(n, &is);
		CHECK(is.handler == was[n].handler, "signal %d: handler %p, was %p", n,
			is.handler, was[n].handler);
		CHECK(is.flags == was[n].flags, "signal %d: flags %lx, were %lx", n, is.flags,
			was[n].flags);
		CHECK(is.restorer == was[n].restorer, "signal %d: restorer", n);
		CHECK(is.mask == was[n].mask, "signal %d: mask %llx, was %llx", n,
			(long long)is.mask, (long long)was[n].mask);
	}
	raise(SIGHUP);
	sigqueue(getpid(), SIGUSR2, (union sigval){.sival_int = 1234});
	CHECK(got == SIGUSR2 && got_value == 1234, "got %d with %d", got, got_value);
	raise(SIGTERM);
	CHECK(got == SIGTERM && mask_inside & 1ull << (SIGINT - 1) &&
			!(mask_inside & 1ull << (SIGTERM - 1)),
		"got %d with mask %llx", got, (long long)mask_inside);
	raise(SIGINT);
	CHECK(got == SIGINT, "got %d", got);
	CHECK(signal(SIGINT, SIG_DFL) == SIG_DFL, "SA_RESETHAND is lost");
	return victim_done();
}
