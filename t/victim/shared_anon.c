/* MAP_SHARED | MAP_ANONYMOUS mapped twice (mremap with old size 0) stays one object. */
#include "victim.h"

static char *a, *b;

void victim_hurt(void)
{
	mmap(b, 128 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1,
		0);
	memcpy(b, a, 128 * KIB);
}

int main(void)
{
	char *other, *part;

	a = victim_map(128 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	b = mremap(a, 0, 128 * KIB, MREMAP_MAYMOVE);
	MUST(b != MAP_FAILED);
	victim_fill(a, 128 * KIB, 1);
	other = victim_map(128 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	victim_fill(other, 128 * KIB, 2);
	/* Only the second half of a third object is still mapped. */
	part = victim_map(128 * KIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	victim_fill(part, 128 * KIB, 3);
	MUST(!munmap(part, 64 * KIB));
	victim_ready();
	victim_wait();
	SAME(a, 128 * KIB, 1, "first mapping");
	SAME(b, 128 * KIB, 1, "second mapping");
	a[5000] = 'x';
	CHECK(b[5000] == 'x', "the two mappings are no longer one");
	SAME(other, 128 * KIB, 2, "another object");
	for (size_t i = 0; i < 64 * KIB / 8; i++)
		if (((uint64_t *)(part + 64 * KIB))[i] != victim_word(3, 64 * KIB / 8 + i)) {
			CHECK(0, "half an object, word %zu", i);
			break;
		}
	return victim_done();
}
