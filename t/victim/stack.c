/* The main stack: deep recursion before and after, and a grown MAP_GROWSDOWN mapping. */
#include "victim.h"

static volatile uint64_t sink;
static char *floor_of_map;

void victim_hurt(void)
{
	floor_of_map[-8] ^= 1;
}

static __attribute__((noinline)) uint64_t deep(int n, bool stop)
{
	volatile uint64_t frame[64];
	uint64_t sum;

	for (int i = 0; i < 64; i++)
		frame[i] = victim_word(n, i);
	if (n == 0 && stop) {
		victim_ready();
		victim_wait();
	}
	sum = n ? deep(n - 1, stop) : 0;
	for (int i = 0; i < 64; i++)
		if (frame[i] != victim_word(n, i)) {
			CHECK(0, "frame %d, word %d", n, i);
			break;
		}
	sink = sum;
	return sum + frame[3];
}

int main(void)
{
	struct victim_vma v, w;
	char *room, *map;
	uint64_t before;

	/* Free room below, so that the mapping can grow. */
	room = victim_map(4 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
	MUST(!munmap(room, 4 * MIB));
	map = mmap(room + 4 * MIB - 64 * KIB, 64 * KIB, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED, -1, 0);
	MUST(map != MAP_FAILED);
	map[-100] = 1; /* grows by a page */
	floor_of_map = map;
	victim_fill(map - 64, 64, 7);
	deep(500, false);
	MUST(victim_vma(&v, &v));
	before = deep(1500, true);
	CHECK(deep(1500, false) == before, "the same recursion gives something else");
	/* Beyond what was ever used: the stack must still grow by itself. */
	deep(9000, false);
	CHECK(victim_vma(&v, &w) && w.start < v.start && strstr(w.path, "[stack]"),
		"stack is %lx-%lx %s", w.start, w.end, w.path);
	SAME(map - 64, 64, 7, "part of MAP_GROWSDOWN memory that grew");
	CHECK(victim_vmflag(map, "gd"), "MAP_GROWSDOWN is lost");
	for (size_t i = 1; i < 100; i++)
		map[-(long)(i * 4096)] = 2;
	return victim_done();
}
