/* Stopped in a handler that has interrupted code of the vdso, where it returns to. */
#include <link.h>
#include <sys/auxv.h>
#include <sys/time.h>
#include <ucontext.h>

#include "victim.h"

static unsigned long start, end;
static volatile bool went;
static bool spoil;

void victim_hurt(void)
{
	spoil = true;
}

static void handler(int n, siginfo_t *info, void *context)
{
	unsigned long pc = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	if (went || pc < start || pc >= end)
		return;
	went = true;
	victim_ready();
	victim_wait();
}

int main(void)
{
	struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct itimerval often = {{0, 500}, {0, 500}};
	uint64_t limit = victim_now() + 60 * SEC, last = 0,
		 now; /* of waiting for the handler */
	struct victim_vma v;

	start = getauxval(AT_SYSINFO_EHDR);
	MUST(victim_vma((void *)start, &v));
	end = v.end;
	MUST(!sigaction(SIGALRM, &a, NULL));
	MUST(!setitimer(ITIMER_REAL, &often, NULL));
	while (!went) {
		now = victim_now();
		MUST(went || now < limit);
		CHECK(now >= last, "time went back by %llu", (long long)(last - now));
		last = now;
	}
	CHECK(!spoil && victim_now() >= last, "the clock after the handler");
	return victim_done();
}
