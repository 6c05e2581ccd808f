/* mlockall(MCL_CURRENT | MCL_FUTURE): what is mapped, and what will be; with "onfault" as it is
 * used. */
#include "victim.h"

static char *p;

void victim_hurt(void)
{
	munlockall();
}

int main(int argc, char **argv)
{
	bool onfault = argc > 1;
	struct victim_vma v = {0};
	char *after;

	p = victim_anon(64 * KIB);
	if (mlockall(MCL_CURRENT | MCL_FUTURE | (onfault ? MCL_ONFAULT : 0)))
		victim_skip("memory cannot be locked here");
	victim_ready();
	victim_wait();
	CHECK(victim_vmflag(p, "lo"), "what was there is not locked");
	CHECK(victim_vmflag(&after, "lo"), "the stack is not locked");
	after = victim_anon(16 * KIB);
	CHECK(victim_vmflag(after, "lo"), "what is mapped later is not locked");
	/* Not to be merged with a neighbour. */
	after = victim_map(
		16 * KIB, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS);
	CHECK(victim_vma(after, &v) && v.rss_kb == (onfault ? 0 : 16),
		"%lu KiB are there before they are used", v.rss_kb);
	return victim_done();
}
