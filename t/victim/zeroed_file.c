/* Pages of a private file mapping that were zeroed must not show the file again, nor pages
 * behind a shortened file appear. */
#include "victim.h"

static char *p;

void victim_hurt(void)
{
	madvise(p + 4096, 4096, MADV_DONTNEED);
}

int main(void)
{
	int fd = victim_file("zeroed", 64 * KIB, 1);

	p = mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	MUST(p != MAP_FAILED);
	memset(p + 4096, 0, 4096);
	memset(p + 5 * 4096, 0, 3 * 4096);
	victim_ready();
	victim_wait();
	SAME(p, 4096, 1, "page of the file");
	ZERO(p + 4096, 4096, "zeroed page");
	ZERO(p + 5 * 4096, 3 * 4096, "zeroed pages");
	CHECK(*(uint64_t *)(p + 2 * 4096) == victim_word(1, 1024), "page 2 is not the file's");
	CHECK(*(uint64_t *)(p + 8 * 4096) == victim_word(1, 4096), "page 8 is not the file's");
	madvise(p + 4096, 4096, MADV_DONTNEED);
	CHECK(*(uint64_t *)(p + 4096) == victim_word(1, 512), "the file does not come back");
	return victim_done();
}
