/*
 * Shared memory without a name of which a part is not mapped at the checkpoint, and is mapped
 * again later: behind a mapping that was made smaller, between two mappings, in front of one.
 */
#include <sys/uio.h>

#include "victim.h"

enum { PAGE = 4096, PAGES = 64, ALL = PAGES * PAGE, SPARSE = 1 << 30 };

static char *small[3], *middle, *front, *beyond;

void victim_hurt(void)
{
	MUST(mremap(small[0], PAGE, ALL, MREMAP_MAYMOVE) != MAP_FAILED);
	small[0] = victim_map(PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
}

/* Shared memory of @fd; -1: anonymous. */
static char *map_shared(int fd, size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_NORESERVE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

	MUST(p != MAP_FAILED);
	if (size == ALL)
		victim_fill(p, ALL, 5);
	return p;
}

static char *make_small(int fd)
{
	char *p;

	MUST(fd < 0 || !ftruncate(fd, ALL));
	p = map_shared(fd, ALL);
	MUST(mremap(p, ALL, PAGE, 0) == p);
	MUST(fd < 0 || !close(fd));
	return p;
}

static int unlinked(void)
{
	int fd = open("unlinked", O_RDWR | O_CREAT, 0600);

	MUST(fd >= 0 && !unlink("unlinked"));
	return fd;
}

static char *grown(char *p, size_t from, size_t to)
{
	p = mremap(p, from, to, MREMAP_MAYMOVE);
	MUST(p != MAP_FAILED);
	return p;
}

/* What exists of the sparse memory, behind its first page too. */
static size_t resident(char *p)
{
	unsigned char *there = malloc(SPARSE / PAGE);
	size_t n = 0;

	MUST(there && !mincore(p, SPARSE, there));
	for (size_t i = 0; i < SPARSE / PAGE; i++)
		n += there[i] & 1;
	free(there);
	return n;
}

static char *make_sparse(void)
{
	char *p = map_shared(-1, SPARSE);

	for (size_t at = 0; at < SPARSE; at += SPARSE / 4)
		p[at] = 's';
	return p;
}

static void check_sparse(char *p, const char *which)
{
	for (size_t at = 0; at < SPARSE; at += SPARSE / 4)
		CHECK(p[at] == 's' && !p[at + PAGE], "%s sparse memory at %zx", which, at);
}

static bool can_read(char *p)
{
	char byte;
	struct iovec to = {&byte, 1}, from = {p, 1};

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1;
}

static void check_front(void)
{
	if (remap_file_pages(front, PAGE, 0, 0, 0))
		return; /* there is no such call here */
	for (size_t i = 0; i < PAGE / 8; i++)
		CHECK(((uint64_t *)front)[i] == victim_word(5, i), "in front, word %zu", i);
}

int main(void)
{
	char *whole, *cut;

	small[0] = make_small(-1);
	small[1] = make_small(memfd_create("small", 0));
	small[2] = make_small(unlinked());
	middle = map_shared(-1, ALL);
	MUST(!munmap(middle + PAGE, ALL - 2 * PAGE));
	front = map_shared(-1, ALL);
	MUST(!munmap(front, ALL / 2));
	front += ALL / 2;
	whole = make_sparse();
	cut = make_sparse();
	MUST(mremap(cut, SPARSE, PAGE, 0) == cut);
	beyond = grown(map_shared(-1, ALL), ALL, 2 * ALL);
	victim_ready();
	victim_wait();
	for (int i = 0; i < 3; i++)
		SAME(grown(small[i], PAGE, ALL), ALL, 5, "what was made smaller");
	SAME(grown(middle, PAGE, ALL), ALL, 5, "what was between two mappings");
	check_front();
	check_sparse(whole, "the");
	check_sparse(cut = grown(cut, PAGE, SPARSE), "the hidden");
	CHECK(resident(whole) < 16384 && resident(cut) < 16384, "%zu and %zu pages came to be",
		resident(whole), resident(cut));
	SAME(beyond, ALL, 5, "a mapping that continues behind the end");
	CHECK(!can_read(beyond + ALL), "it can be read there");
	return victim_done();
}
