/* Pages of hugetlbfs, where the machine has any set aside. */
#include "victim.h"

static char *p;

void victim_hurt(void)
{
	p[4096] ^= 1;
}

int main(void)
{
	struct victim_vma v;

	p = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (p == MAP_FAILED)
		victim_skip("no huge pages set aside");
	victim_fill(p, 2 * MIB, 1);
	victim_ready();
	victim_wait();
	SAME(p, 2 * MIB, 1, "huge page");
	ZERO(p + 2 * MIB, 2 * MIB, "untouched huge page");
	CHECK(victim_vma(p, &v) && v.page_kb == 2048, "pages of %lu KiB", v.page_kb);
	p[3 * MIB] = 1;
	return victim_done();
}
