/*
 * malloc for the libraries down here. Each size has a region of its own, where the lowest free
 * place is taken: so the address of a block depends on what blocks of that very size there were
 * before, and on nothing else. The driver's contexts, whose handles the program holds, thereby
 * come to lie where they lay, whatever else is done in another order, or by other threads,
 * after a restart. The libc's malloc gives each thread an arena.
 *
 * What is too large or too many, and what must be aligned, is left to the libc's.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "loader/lower/raw.h"
#include "loader/windows.h"

#define REGION  (16ul << 20)
#define STEP    16ul
#define SMALL   (64ul << 10) /* up to here in steps of 16 bytes, */
#define LARGE   (8ul << 20)  /* and up to here of pages */
#define PAGE    4096ul
#define CLASSES (SMALL / STEP + (LARGE - SMALL) / PAGE)
#define COMMIT  (64ul << 10)

_Static_assert(CLASSES *REGION <= LOWER_HEAP_SIZE, "");

/* The libc's own. */
void *__libc_malloc(size_t size);
void __libc_free(void *block);
void *__libc_realloc(void *block, size_t size);

/* Its map, a bit for each place, begins the region; places begin at a page behind it. */
struct class
{
	uint32_t lock;
	uint32_t lowest; /* no word of the map before this one has a free bit */
	uint64_t ready;  /* bytes of the region that can be written to */
};

static struct class classes[CLASSES];
static uint32_t reserved; /* 1: yes, 2: there is no room for it */

static int reserve(void)
{
	uint32_t state = __atomic_load_n(&reserved, __ATOMIC_ACQUIRE), none = 0;
	long r;

	if (state)
		return state == 1;
	r = raw(SYS_mmap, LOWER_HEAP, LOWER_HEAP_SIZE, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	/* Another thread may have been faster, with the same. */
	state = r == (long)LOWER_HEAP || r == -EEXIST ? 1 : 2;
	__atomic_compare_exchange_n(
		&reserved, &none, state, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	return __atomic_load_n(&reserved, __ATOMIC_ACQUIRE) == 1;
}

static unsigned class_of(size_t size)
{
	if (size <= SMALL)
		return size ? (size - 1) / STEP : 0;
	return SMALL / STEP + (size - SMALL - 1) / PAGE;
}

static size_t size_of(unsigned class)
{
	return class < SMALL / STEP ? (class + 1) * STEP
				    : SMALL + (class + 1 - SMALL / STEP) * PAGE;
}

static char *region_of(unsigned class)
{
	return (char *)LOWER_HEAP + class * REGION;
}

static size_t map_size(size_t size)
{
	return (REGION / size / 8 + PAGE) & ~(PAGE - 1);
}

static size_t place_count(size_t size)
{
	return (REGION - map_size(size)) / size;
}

static int is_ours(const void *block)
{
	return (uintptr_t)block - LOWER_HEAP < LOWER_HEAP_SIZE;
}

/* Let the first @size bytes of the region be written to. */
static int commit(struct class *c, char *region, size_t size)
{
	size_t ready = (size + COMMIT - 1) & ~(COMMIT - 1);

	if (size <= c->ready)
		return 0;
	if (ready > REGION)
		ready = REGION;
	if (raw_failed(raw(SYS_mprotect, region, ready, PROT_READ | PROT_WRITE)))
		return -1;
	c->ready = ready;
	return 0;
}

/* Under the class's lock. */
static void *take(struct class *c, char *region, size_t size)
{
	uint64_t *map = (uint64_t *)region;
	size_t count = place_count(size), words = (count + 63) / 64, place;

	if (commit(c, region, map_size(size)) < 0)
		return NULL;
	while (c->lowest < words && map[c->lowest] == ~0ul)
		c->lowest++;
	if (c->lowest == words)
		return NULL;
	place = c->lowest * 64ul + __builtin_ctzl(~map[c->lowest]);
	if (place >= count || commit(c, region, map_size(size) + (place + 1) * size) < 0)
		return NULL;
	map[c->lowest] |= 1ul << place % 64;
	return region + map_size(size) + place * size;
}

void *malloc(size_t size)
{
	unsigned class = class_of(size);
	struct class *c = &classes[class];
	void *block;

	if (size > LARGE || !reserve())
		return __libc_malloc(size);
	raw_lock(&c->lock);
	block = take(c, region_of(class), size_of(class));
	raw_unlock(&c->lock);
	return block ? block : __libc_malloc(size);
}

void free(void *block)
{
	unsigned class = ((uintptr_t)block - LOWER_HEAP) / REGION;
	struct class *c = &classes[class];
	char *region = region_of(class);
	size_t size, place;

	if (!is_ours(block)) {
		__libc_free(block);
		return;
	}
	size = size_of(class);
	place = ((char *)block - region - map_size(size)) / size;
	raw_lock(&c->lock);
	((uint64_t *)region)[place / 64] &= ~(1ul << place % 64);
	if (place / 64 < c->lowest)
		c->lowest = place / 64;
	raw_unlock(&c->lock);
}

void *calloc(size_t count, size_t each)
{
	size_t size;
	void *block;

	if (__builtin_mul_overflow(count, each, &size)) {
		errno = ENOMEM;
		return NULL;
	}
	block = malloc(size);
	return block ? memset(block, 0, size) : NULL;
}

void *realloc(void *block, size_t size)
{
	size_t old;
	void *new;

	if (!block)
		return malloc(size);
	if (!is_ours(block))
		return __libc_realloc(block, size);
	if (!size) {
		free(block);
		return NULL;
	}
	old = size_of(((uintptr_t)block - LOWER_HEAP) / REGION);
	if (size <= LARGE && size_of(class_of(size)) == old)
		return block;
	new = malloc(size);
	if (!new)
		return NULL;
	memcpy(new, block, old < size ? old : size);
	free(block);
	return new;
}

size_t malloc_usable_size(void *block)
{
	static size_t (*libcs)(void *);

	if (!block)
		return 0;
	if (is_ours(block))
		return size_of(((uintptr_t)block - LOWER_HEAP) / REGION);
	if (!libcs)
		libcs = (size_t(*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
	return libcs ? libcs(block) : 0;
}
