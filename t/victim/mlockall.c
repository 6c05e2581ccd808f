/* mlockall(MCL_CURRENT | MCL_FUTURE): what is mapped, and what will be. */
#include "victim.h"

static char *p;

void victim_hurt(void)
{
	munlockall();
}

int main(void)
{
	char *after;

	p = victim_anon(64 * KIB);
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		victim_skip("memory cannot be locked here");
	victim_ready();
	victim_wait();
	CHECK(victim_vmflag(p, "lo"), "what was there is not locked");
	CHECK(victim_vmflag(&after, "lo"), "the stack is not locked");
	after = victim_anon(16 * KIB);
	CHECK(victim_vmflag(after, "lo"), "what is mapped later is not locked");
	return victim_done();
}
