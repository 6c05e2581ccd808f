/* Names of anonymous mappings (PR_SET_VMA_ANON_NAME), which debuggers and smaps show. */
#include <sys/prctl.h>

#include "victim.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA           0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

static char *p;

void victim_hurt(void)
{
	prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, p, 64 * KIB, NULL);
}

int main(void)
{
	struct victim_vma v;

	p = victim_anon(64 * KIB);
	victim_fill(p, 64 * KIB, 1);
	if (prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, p, 64 * KIB, "trecr test"))
		victim_skip("this kernel has no names for anonymous memory");
	victim_ready();
	victim_wait();
	SAME(p, 64 * KIB, 1, "named memory");
	CHECK(victim_vma(p, &v) && strstr(v.path, "[anon:trecr test]"), "name is '%s'", v.path);
	return victim_done();
}
