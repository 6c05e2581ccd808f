/*
 * Shared memory that cannot be mapped once more, as the process may have no more memory (RLIMIT_AS);
 * nor does a descriptor lead to it.
 *
 *	hidden_limited			it is mapped in part
 *	hidden_limited private		and privately as a whole
 */
#include <sys/resource.h>

#include "victim.h"

enum { PAGE = 4096, ALL = 64 * MIB };

static char *shared, *whole;

void victim_hurt(void)
{
	shared[1] ^= 1;
}

static void limit_memory(void)
{
	unsigned long pages;
	struct rlimit limit;
	FILE *f = fopen("/proc/self/statm", "r");

	MUST(f && fscanf(f, "%lu", &pages) == 1 && !fclose(f));
	limit.rlim_cur = limit.rlim_max = pages * PAGE + ALL / 2;
	MUST(!setrlimit(RLIMIT_AS, &limit));
}

int main(int argc, char **argv)
{
	int fd = memfd_create("limited", 0);

	MUST(fd >= 0 && !ftruncate(fd, ALL) && pwrite(fd, "file", 4, 0) == 4 &&
		pwrite(fd, "file", 4, ALL / 2) == 4);
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(shared != MAP_FAILED);
	if (argc > 1) {
		whole = mmap(NULL, ALL, PROT_READ, MAP_PRIVATE, fd, 0);
		MUST(whole != MAP_FAILED);
	}
	MUST(!close(fd));
	limit_memory();
	victim_ready();
	victim_wait();
	CHECK(!memcmp(shared, "file", 4), "what is shared");
	CHECK(!whole || !memcmp(whole + ALL / 2, "file", 4), "what is mapped privately");
	memcpy(shared, "FILE", 4);
	CHECK(!whole || !memcmp(whole, "FILE", 4), "what is written is not seen");
	return victim_done();
}
