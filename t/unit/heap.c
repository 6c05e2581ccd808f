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

void heap_mapped(uintptr_t start, size_t size)
{
	(void)start, (void)size;
}

/* @b is the place behind @a. */
static int are_next(const char *a, const char *b, size_t size)
{
	return b == a + size || (is_in_front(a) && !is_in_front(b) && is_ours(b));
}

/* Three blocks of a size, of which the middle one goes and comes back. */
static unsigned check_three(size_t size)
{
	char *a = malloc(size), *b = malloc(size - 15), *c = malloc(size);
	unsigned wrong = !is_ours(a) || (uintptr_t)a % 16 || !are_next(a, b, size) ||
			 !are_next(b, c, size) || is_in_front(a) != (size <= 4096);

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
static void test_full(size_t size, unsigned at_least)
{
	static void *blocks[REGION / 16];
	unsigned n = 0, wrong = 0;

	for (;;) {
		blocks[n] = malloc(size);
		if (!is_ours(blocks[n]))
			break;
		n++;
		memset(blocks[n - 1], n, size);
	}
	free(blocks[n]);
	ok(n > at_least,
		"%zu bytes: the class has room for many, and the libc has the rest (%u)", size,
		n);
	for (unsigned i = 0; i < n; i++)
		wrong += *(unsigned char *)blocks[i] != (unsigned char)(i + 1) ||
			 ((unsigned char *)blocks[i])[size - 1] != (unsigned char)(i + 1);
	ok(!wrong, "none overlaps another");
	free(blocks[n - 1]);
	free(blocks[1]);
	free(blocks[200]);
	ok(malloc(size) == blocks[1], "the lowest free place is taken first,");
	ok(malloc(size) == blocks[200], "then the next,");
	ok(malloc(size) == blocks[n - 1], "then the last");
	for (unsigned i = 0; i < n; i++)
		free(blocks[i]);
	ok(malloc(size) == blocks[0], "and all of them have been given back");
	free(blocks[0]);
}

/* The front full with blocks of all sizes. */
static void test_front(void)
{
	static unsigned char *blocks[FRONTS * FRONT_SIZE / STEP];
	unsigned n = 0, wrong = 0;

	for (unsigned i = 0; i < FRONTS; i++) {
		unsigned before = n;

		while (is_in_front(blocks[n] = malloc(size_of(i))))
			memset(blocks[n++], i, size_of(i));
		free(blocks[n]);
		wrong += n == before;
	}
	for (unsigned i = 0; i < n; i++) {
		unsigned char class = class_of(heap_usable_size(blocks[i]));

		wrong += blocks[i][0] != class || blocks[i][size_of(class) - 1] != class;
		free(blocks[i]);
	}
	ok(!wrong, "small blocks of all sizes are next to each other (%u of %u wrong)", wrong,
		n);
}

/* A block of a larger class at the place of a smaller one that was there in another process. */
static void test_kept(void)
{
	char *a = malloc(5008), *wanted = malloc(5008), *next = malloc(5008),
	     *last = malloc(5008);
	char *larger = malloc(6000), *moved;

	free(next);
	free(wanted);
	ok(!heap_keep(wanted) && heap_keep(wanted) && heap_keep(wanted + 16) && heap_keep(a),
		"the place of a block is kept once, and only one that is free");
	ok(heap_block(wanted + 100) == wanted, "a block is found by an address in it");
	free(larger);
	heap_move_next(larger, wanted);
	moved = malloc(6000);
	memset(moved, 7, 6000);
	ok(moved == wanted && heap_usable_size(moved) == 2 * 5008,
		"a block is put there, and takes what it needs of the place behind it");
	ok(realloc(moved, 7000) == moved, "and has room there");
	free(next = malloc(5008));
	ok(next != wanted + 5008 && malloc(6000) == larger, "which are not given to others");
	free(larger);
	free(moved);
	next = malloc(5008);
	ok(next == wanted + 5008, "when it is freed, the place behind it is another's");
	heap_move_next(larger, wanted);
	ok(malloc(6000) == larger, "and where there is no room, the block stays where it is");
	heap_move_next(NULL, NULL);
	free(larger);
	free(next);
	free(last);
	free(a);
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
	test_full(5000, 3000);
	test_full(16, 1000000);
	test_full(4096, 4000);
	test_front();
	test_others();
	test_kept();
	return done_testing();
}
