/*
 * As many mappings as a process may have (vm.max_map_count), less a few.
 *
 *	mappings [LESS]
 */
#include "victim.h"

#define PAGE 4096ul

static char *area;
static size_t count;

static bool readable(size_t i)
{
	return !msync(area + 2 * i * PAGE, PAGE, MS_ASYNC) &&
	       area[2 * i * PAGE] == (char)(i + 1);
}

void victim_hurt(void)
{
	area[2 * (count / 2) * PAGE]++;
}

int main(int argc, char **argv)
{
	size_t less = argc > 1 ? strtoul(argv[1], NULL, 10) : 100, most;
	FILE *f = fopen("/proc/sys/vm/max_map_count", "r");

	MUST(f && fscanf(f, "%zu", &most) == 1);
	fclose(f);
	if (most > 200000)
		victim_skip("too many mappings are allowed here");
	/* Every other page is another mapping. */
	area = mmap(NULL, 2 * most * PAGE, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	MUST(area != MAP_FAILED);
	while (count < most &&
		!mprotect(area + 2 * count * PAGE, PAGE, PROT_READ | PROT_WRITE)) {
		area[2 * count * PAGE] = count + 1;
		count++;
	}
	/* Shared ones do not become one with their neighbours. */
	while (mmap(NULL, PAGE, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		;
	for (less /= 2; less; less--)
		MUST(!mprotect(area + 2 * --count * PAGE, PAGE, PROT_NONE));
	victim_ready();
	victim_wait();
	for (size_t i = 0; i < count; i++)
		CHECK(readable(i), "page %zu has changed", i);
	return victim_done();
}
