/* Thousands of mappings, each page another one than its neighbour. */
#include "victim.h"

#define PAGES 6000

static char *p;

void victim_hurt(void)
{
	mprotect(p, 8192, PROT_READ | PROT_WRITE);
}

int main(void)
{
	struct victim_vma v;

	p = victim_anon(PAGES * 4096ul);
	for (size_t i = 0; i < PAGES; i++)
		*(uint64_t *)(p + i * 4096) = victim_word(1, i);
	for (size_t i = 0; i < PAGES; i += 2)
		MUST(!mprotect(p + i * 4096, 4096, PROT_READ));
	victim_ready();
	victim_wait();
	for (size_t i = 0; i < PAGES; i++)
		if (*(uint64_t *)(p + i * 4096) != victim_word(1, i)) {
			CHECK(0, "page %zu", i);
			break;
		}
	for (size_t i = 0; i < PAGES; i += 1000)
		CHECK(victim_vma(p + i * 4096, &v) && !strcmp(v.prot, "r--p") &&
				v.end - v.start == 4096,
			"page %zu: %lx-%lx %s", i, v.start, v.end, v.prot);
	/* Neighbours of the same kind merge again. */
	CHECK(!mprotect(p, PAGES * 4096ul, PROT_READ | PROT_WRITE), "%s", strerror(errno));
	MUST(victim_vma(p, &v));
	CHECK(v.end - v.start >= PAGES * 4096ul, "mapping is %lx-%lx", v.start, v.end);
	return victim_done();
}
