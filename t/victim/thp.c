/* Transparent huge pages: memory with MADV_HUGEPAGE gets them again when used on, and
 * PR_SET_THP_DISABLE holds. */
#include <sys/prctl.h>

#include "victim.h"

static char *p;

void victim_hurt(void)
{
	prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	p[4096] ^= 1;
}

int main(int argc, char **argv)
{
	bool off = argc > 1 && !strcmp(argv[1], "disable");
	bool advised = argc > 1 && !strcmp(argv[1], "unless-advised");
	int setting;
	char *room = victim_anon(12 * MIB), *more;
	struct victim_vma v;

	p = (char *)(((uintptr_t)room + 2 * MIB - 1) & ~(2 * MIB - 1));
	MUST(!madvise(p, 8 * MIB, MADV_HUGEPAGE));
	victim_fill(p, 8 * MIB, 1);
	if (victim_vma(p, &v) && !v.anon_huge_kb)
		victim_skip("no transparent huge pages here");
	if (off)
		MUST(!prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
	/* Since Linux 6.18: but where it is advised, which is what PR_GET tells. */
	if (advised && prctl(PR_SET_THP_DISABLE, 1, 2 /* EXCEPT_ADVISED */, 0, 0))
		victim_skip("this kernel does not know of advice");
	setting = prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0);
	victim_ready();
	victim_wait();
	SAME(p, 8 * MIB, 1, "huge pages");
	CHECK(victim_vmflag(p, "hg"), "MADV_HUGEPAGE is lost");
	CHECK(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == setting && !setting == !(off || advised),
		"PR_GET_THP_DISABLE is %d, was %d", prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0),
		setting);
	/* Not to be merged with its neighbour, whose huge pages would count. */
	more = victim_map(12 * MIB + 64 * KIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS);
	MUST(!mprotect(more, 12 * MIB, PROT_READ | PROT_WRITE));
	madvise(more, 12 * MIB, MADV_HUGEPAGE);
	memset(more, 1, 12 * MIB);
	MUST(victim_vma(more, &v));
	CHECK(!v.anon_huge_kb == off, "new memory has %lu KiB of huge pages", v.anon_huge_kb);
	memset(p, 2, 8 * MIB);
	return victim_done();
}
