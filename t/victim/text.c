/*
 * Memory that can be compressed, and some that cannot, of all kinds that go into an image:
 * private, read-only and shared memory, huge pages, a private mapping of a file, the stack.
 */
#include "victim.h"

#define SIZE (8 * MIB)

static char *text, *fixed, *shared, *huge, *mixed, *file;

void victim_hurt(void)
{
	text[SIZE / 2 + 3] ^= 1;
}

static void write_text(char *p, size_t size, unsigned seed)
{
	char line[128] = "";

	for (size_t at = 0; at < size; at += 64) {
		snprintf(line, sizeof(line),
			"line %-10zu of text number %-6u says little %10zu\n", at / 64, seed,
			at * seed % 1009);
		memcpy(p + at, line, 64);
	}
}

static bool is_text(const char *p, size_t size, unsigned seed, const char *what)
{
	char *want = malloc(size);
	bool same;

	MUST(want);
	write_text(want, size, seed);
	same = !memcmp(p, want, size);
	free(want);
	CHECK(same, "%s has changed", what);
	return same;
}

/* Every third block is random, every seventh zero. */
static void write_mixed(void)
{
	write_text(mixed, SIZE, 5);
	for (size_t at = 0; at < SIZE; at += 4096)
		if (at / 4096 % 3 == 0)
			victim_fill(mixed + at, 4096, at);
		else if (at / 4096 % 7 == 0)
			memset(mixed + at, 0, 4096);
}

static void check_mixed(void)
{
	char *was = malloc(SIZE);

	MUST(was);
	memcpy(was, mixed, SIZE);
	write_mixed();
	CHECK(!memcmp(was, mixed, SIZE), "memory of several kinds has changed");
	free(was);
}

int main(void)
{
	char stack[64 * KIB];
	int fd;

	text = victim_anon(SIZE);
	write_text(text, SIZE, 1);
	fixed = victim_anon(64 * KIB);
	write_text(fixed, 64 * KIB, 2);
	MUST(!mprotect(fixed, 64 * KIB, PROT_READ));
	shared = victim_map(SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
	write_text(shared, SIZE, 3);
	huge = victim_anon(SIZE);
	(void)madvise(huge, SIZE, MADV_HUGEPAGE); /* where there are any */
	write_text(huge, SIZE, 4);
	mixed = victim_anon(SIZE);
	write_mixed();
	fd = victim_file("file", 256 * KIB, 6);
	file = mmap(NULL, 256 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	MUST(file != MAP_FAILED);
	write_text(file + 64 * KIB, 64 * KIB, 7);
	write_text(stack, sizeof(stack), 8);
	victim_ready();
	victim_wait();
	is_text(text, SIZE, 1, "private memory");
	is_text(fixed, 64 * KIB, 2, "read-only memory");
	is_text(shared, SIZE, 3, "shared memory");
	is_text(huge, SIZE, 4, "memory of huge pages");
	check_mixed();
	SAME(file, 64 * KIB, 6, "what is the file's");
	is_text(file + 64 * KIB, 64 * KIB, 7, "a private mapping of a file");
	is_text(stack, sizeof(stack), 8, "the stack");
	return victim_done();
}
