/* malloc of the lower half (lower/heap.c): blocks of all sizes do not overlap, and what is
 * freed is found again, the lowest place first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/unit/tap.h"

static void *libc_malloc(size_t size)
{
	return malloc(size);
}

static void libc_free(void *block)
{
	free(block);
}

static void *libc_realloc(void *block, size_t size)
{
	return realloc(block, size);
}

#define __libc_malloc      libc_malloc
#define __libc_free        libc_free
#define __libc_realloc     libc_realloc
#define malloc             heap_malloc
#define free               heap_free
#define calloc             heap_calloc
#define realloc            heap_realloc
#define malloc_usable_size heap_usable_size
void *heap_malloc(size_t size);
void heap_free(void *block);
void *heap_calloc(size_t count, size_t each);
void *heap_realloc(void *block, size_t size);
size_t heap_usable_size(void *block);
#include "lower/heap.c"

/* Three blocks of a size, of which the middle one goes and comes back. */
static unsigned check_three(size_t size)
{
	char *a = malloc(size), *b = malloc(size - 15), *c = malloc(size);
	unsigned wrong = !is_ours(a) || (uintptr_t)a % 16 || b != a + size || c != b + size;

	wrong += heap_usable_size(b) != size;
	free(b);
	wrong += malloc(size) != b;
	free(a);
	free(c);
	wrong += malloc(size) != a;
	free(b);
	free(a);
	return wrong;
}

static unsigned check_one(size_t size)
{
	char *a = malloc(size);
	unsigned wrong = !is_ours(a) || heap_usable_size(a) != size;

	free(a);
	wrong += malloc(size) != a;
	free(a);
	return wrong;
}

static void test_sizes(void)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < CLASSES; i++) {
		size_t size = size_of(i);

		wrong += class_of(size) != i || class_of(size - 15) != i;
		wrong += size < REGION / 4 ? check_three(size) : check_one(size);
	}
	ok(!wrong, "blocks of each size, one behind the other (%u wrong)", wrong);
}

/* The last place of a class, and none behind it. */
static void test_full(void)
{
	static void *blocks[REGION / 4096];
	unsigned n = 0, wrong = 0;

	for (;;) {
		blocks[n] = malloc(5000);
		if (!is_ours(blocks[n]))
			break;
		n++;
		memset(blocks[n - 1], n, 5000);
	}
	free(blocks[n]);
	ok(n > 3000, "a class has room for thousands, and the libc has the rest (%u)", n);
	for (unsigned i = 0; i < n; i++)
		wrong += *(unsigned char *)blocks[i] != (unsigned char)(i + 1) ||
			 ((unsigned char *)blocks[i])[4999] != (unsigned char)(i + 1);
	ok(!wrong, "none overlaps another");
	free(blocks[n - 1]);
	free(blocks[7]);
	free(blocks[200]);
	ok(malloc(5000) == blocks[7], "the lowest free place is taken first,");
	ok(malloc(5000) == blocks[200], "then the next,");
	ok(malloc(5000) == blocks[n - 1], "then the last");
	for (unsigned i = 0; i < n; i++)
		free(blocks[i]);
	ok(malloc(5000) == blocks[0], "and all of them have been given back");
	free(blocks[0]);
}

static void test_others(void)
{
	volatile size_t many = 1ul << 33;
	char *p = malloc(100), *q, *large = malloc(LARGE + 1);

	memset(p, 5, 100);
	q = realloc(p, 3000);
	ok(q != p && q[99] == 5, "a block grows");
	ok(realloc(q, 2999) == q, "and stays when it need not move");
	free(q);
	p = calloc(10, 10);
	ok(!p[0] && !p[99] && !calloc(many, many), "calloc");
	free(p);
	ok(large && !is_ours(large), "what is too large is the libc's");
	free(large);
	free(NULL);
}

int main(void)
{
	test_sizes();
	test_full();
	test_others();
	return done_testing();
}
