/*
 * Pages of hugetlbfs, where the machine has any set aside.
 *
 *	hugetlb [shared | memfd | private-memfd]
 */
#include "victim.h"

#ifndef MFD_HUGETLB
#define MFD_HUGETLB 4u
#endif

static char *p;

void victim_hurt(void)
{
	p[4096] ^= 1;
}

static void *map(int flags, int fd)
{
	void *at = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (at == MAP_FAILED)
		victim_skip("no huge pages set aside");
	return at;
}

static void *map_memfd(int flags)
{
	int fd = memfd_create("huge", MFD_HUGETLB);

	if (fd < 0 || ftruncate(fd, 4 * MIB))
		victim_skip("no huge pages");
	return map(flags, fd);
}

static void *choose(const char *how)
{
	if (!strcmp(how, "shared"))
		return map(MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1);
	if (!strcmp(how, "memfd"))
		return map_memfd(MAP_SHARED);
	if (!strcmp(how, "private-memfd"))
		return map_memfd(MAP_PRIVATE);
	return map(MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
}

int main(int argc, char **argv)
{
	struct victim_vma v;

	p = choose(argc > 1 ? argv[1] : "");
	victim_fill(p, 2 * MIB, 1);
	victim_ready();
	victim_wait();
	SAME(p, 2 * MIB, 1, "huge page");
	ZERO(p + 2 * MIB, 2 * MIB, "untouched huge page");
	CHECK(victim_vma(p, &v) && v.page_kb == 2048, "pages of %lu KiB", v.page_kb);
	p[3 * MIB] = 1;
	return victim_done();
}
