/* The heap grows on where it was, and shrinks. */
#include "victim.h"

static char *heap;

void victim_hurt(void)
{
	MUST(!brk(heap + 128 * KIB));
}

int main(void)
{
	struct victim_vma v;
	char *end, *big;

	/* The C library takes its share first, for what victim_vma() needs. */
	victim_vma(&v, &v);
	heap = sbrk(0);
	MUST(sbrk(MIB) == heap);
	victim_fill(heap, MIB, 1);
	end = sbrk(0);
	victim_ready();
	victim_wait();
	CHECK(sbrk(0) == end, "break is %p, was %p", sbrk(0), (void *)end);
	if (sbrk(0) != end)
		return victim_done();
	SAME(heap, MIB, 1, "heap");
	CHECK(victim_vma(heap, &v) && strstr(v.path, "[heap]"), "it is called '%s'", v.path);
	CHECK(sbrk(8 * MIB) == end, "cannot grow: %s", strerror(errno));
	ZERO(end, 8 * MIB, "new part of the heap");
	victim_fill(end, 8 * MIB, 2);
	SAME(heap, MIB, 1, "heap after growing");
	CHECK(!brk(end), "cannot shrink: %s", strerror(errno));
	big = malloc(100000);
	CHECK(big, "malloc");
	memset(big, 1, 100000);
	for (int i = 0; i < 1000; i++)
		CHECK(malloc(1 + i * 7), "malloc of %d", i * 7);
	SAME(heap, MIB, 1, "heap after malloc");
	return victim_done();
}
