/* Guard regions (MADV_GUARD_INSTALL, kernel 6.13): touching one is still SIGSEGV. */
#include <setjmp.h>

#include "victim.h"

#define GUARD_INSTALL 102
#define GUARD_REMOVE  103

static char *p;
static sigjmp_buf back;

void victim_hurt(void)
{
	madvise(p, 64 * KIB, GUARD_REMOVE);
}

static void segv(int n)
{
	siglongjmp(back, 1);
}

static bool faults(volatile char *at)
{
	if (sigsetjmp(back, 1))
		return true;
	(void)*at;
	return false;
}

int main(void)
{
	char *part = victim_anon(64 * KIB);

	p = victim_anon(64 * KIB);
	victim_fill(part, 64 * KIB, 1);
	if (madvise(p, 64 * KIB, GUARD_INSTALL))
		victim_skip("this kernel has no guard regions");
	MUST(!madvise(part + 16 * KIB, 4096, GUARD_INSTALL));
	signal(SIGSEGV, segv);
	victim_ready();
	victim_wait();
	CHECK(faults(p) && faults(p + 60 * KIB), "a guard region is gone");
	CHECK(faults(part + 16 * KIB), "the guard page inside a mapping is gone");
	SAME(part, 16 * KIB, 1, "memory before the guard page");
	CHECK(!faults(part + 20 * KIB), "memory after the guard page is guarded");
	CHECK(!madvise(p, 64 * KIB, GUARD_REMOVE) && !faults(p), "a guard cannot be removed");
	return victim_done();
}
