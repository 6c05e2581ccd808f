/* 64 GiB of MAP_NORESERVE with a few pages in it: neither time nor image grow with its size. */
#include "victim.h"

#define SIZE  (64 * GIB)
#define PAGES 64

static char *p;

void victim_hurt(void)
{
	p[SIZE / PAGES] ^= 1;
}

int main(void)
{
	struct victim_vma v;

	p = victim_map(
		SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
	/* Without huge pages, or each page written would stand for 2 MiB. */
	madvise(p, SIZE, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < PAGES; i++)
		victim_fill(p + i * (SIZE / PAGES), 4096, i);
	victim_ready();
	victim_wait();
	for (size_t i = 0; i < PAGES; i++) {
		SAME(p + i * (SIZE / PAGES), 4096, i, "page in a sparse mapping");
		ZERO(p + i * (SIZE / PAGES) + 4096, 4096, "page after it");
	}
	CHECK(victim_vma(p, &v) && v.end - v.start >= SIZE, "mapping is %lx-%lx", v.start,
		v.end);
	CHECK(victim_vmflag(p, "nr"), "MAP_NORESERVE is lost");
	CHECK(v.rss_kb < 4096, "%lu KiB are resident", v.rss_kb);
	p[SIZE - 1] = 1;
	return victim_done();
}
