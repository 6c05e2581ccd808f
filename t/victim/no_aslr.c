/* A program that runs with ADDR_NO_RANDOMIZE. */
#include <sys/personality.h>

#include "victim.h"

void victim_hurt(void)
{
	personality(0);
}

int main(int argc, char **argv)
{
	char *p;

	if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
		personality(ADDR_NO_RANDOMIZE);
		execv("/proc/self/exe", argv);
		MUST(0);
	}
	p = victim_anon(MIB);
	victim_fill(p, MIB, 1);
	victim_ready();
	victim_wait();
	SAME(p, MIB, 1, "memory");
	CHECK(personality(0xffffffff) == ADDR_NO_RANDOMIZE, "personality is %x",
		personality(0xffffffff));
	memset(alloca(2 * MIB), 1, 2 * MIB);
	return victim_done();
}
