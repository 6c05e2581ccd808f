/*
 * malloc for the libraries down here. Each size has places of its own, of which the lowest free
 * one is taken: so the address of a block depends on what blocks of that very size there were
 * before, and on nothing else. The driver's contexts, whose handles the program holds, thereby
 * get the addresses that they had, whatever else is done in another order, or by other threads,
 * after a restart. The libc's malloc gives each thread an arena.
 *
 * The first places of all small classes are next to each other, on one huge page, as what a
 * call of the driver's touches may be the first block of each of many sizes.
 *
 * What is too large or too many, and what must be aligned, is left to the libc's.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "lower/heap.h"
#include "shared/raw.h"
#include "shared/address_windows.h"

#define REGION    (16ul << 20)
#define STEP      16ul
#define SMALL     (64ul << 10) /* up to here in steps of 16 bytes, */
#define LARGE     (8ul << 20)  /* and up to here of pages */
#define PAGE      4096ul
#define CLASSES   (SMALL / STEP + (LARGE - SMALL) / PAGE)
#define COMMIT    (64ul << 10)
#define HEAP_KEPT 32         /* contexts, of which a restart makes this many at most */
#define COLOUR    (5ul * 64) /* an odd number of lines of the cache */

#define HUGE       (2ul << 20)
#define FRONT      (LOWER_HEAP + CLASSES * REGION)
#define FRONT_SIZE (8192ul - 64) /* bytes of one class there: again an odd number of lines */
#define FRONTS     256ul         /* classes that have such */

_Static_assert(CLASSES *REGION + HUGE <= LOWER_HEAP_SIZE, "");
_Static_assert(FRONTS *FRONT_SIZE <= HUGE && FRONTS * STEP <= FRONT_SIZE, "");
_Static_assert(FRONT % HUGE == 0, "");

/* The libc's own. */
void *__libc_malloc(size_t size);
void __libc_free(void *block);
void *__libc_realloc(void *block, size_t size);

/* A region begins with its map, a bit for each place; the places begin behind the map, unless
 * they are in the front. */
struct class
{
	uint32_t lock;
	uint32_t lowest;  /* no word of the map before this one has a free bit */
	uint32_t size;    /* of a place; 0: the class has not been used yet */
	uint32_t front;   /* of places, how many are in the front */
	uint32_t count;   /* of places */
	uint64_t inverse; /* of size / STEP, times 1 << INVERSE */
	uint64_t ready;   /* bytes of the region that can be written to */
	char *places;
};

/* Offsets in a region are below 2^20 steps, so is a size, and their product with its inverse's
 * error below 2^42: the quotient is exact. */
#define INVERSE 42
_Static_assert(REGION / STEP <= 1ul << 20, "");

static struct class classes[CLASSES];
static uint32_t reserve_lock;
static uint32_t reserved; /* 1: yes, 2: there is no room for it */

/* 1, or 2: the program may have memory there. */
static uint32_t map_heap(void)
{
	long r = raw(SYS_mmap, LOWER_HEAP, LOWER_HEAP_SIZE, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (r != (long)LOWER_HEAP)
		return 2;
	heap_mapped(LOWER_HEAP, LOWER_HEAP_SIZE);
	if (raw_failed(raw(SYS_mprotect, FRONT, HUGE, PROT_READ | PROT_WRITE)))
		return 2;
	raw(SYS_madvise, FRONT, HUGE, MADV_HUGEPAGE); /* where there are any */
	return 1;
}

static int reserve_heap(void)
{
	uint32_t state = __atomic_load_n(&reserved, __ATOMIC_ACQUIRE);

	if (state)
		return state == 1;
	raw_lock(&reserve_lock);
	if (!reserved)
		__atomic_store_n(&reserved, map_heap(), __ATOMIC_RELEASE);
	raw_unlock(&reserve_lock);
	return reserved == 1;
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
	return ((REGION + FRONT_SIZE) / size / 8 + PAGE) & ~(PAGE - 1);
}

static int is_ours(const void *block)
{
	return (uintptr_t)block - LOWER_HEAP < LOWER_HEAP_SIZE;
}

static int is_in_front(const void *block)
{
	return (uintptr_t)block >= FRONT;
}

/* Of a block that is ours. */
static unsigned class_number(const void *block)
{
	return is_in_front(block) ? ((uintptr_t)block - FRONT) / FRONT_SIZE
				  : ((uintptr_t)block - LOWER_HEAP) / REGION;
}

static char *front_of(unsigned class)
{
	return (char *)FRONT + class * FRONT_SIZE;
}

/* Let the first @size bytes of the region be written to. */
static int commit_region(struct class *c, char *region, size_t size)
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

/* Under the class's lock: its first use. Places of different classes begin at different lines
 * of a page, as all that a call of the driver's touches may be the first of its size: in the
 * same line of their pages, they would drive each other out of the processor's cache. */
static int begin_region(struct class *c, unsigned class)
{
	size_t size = size_of(class), first = map_size(size) + class * COLOUR % PAGE;

	if (commit_region(c, region_of(class), first) < 0)
		return -1;
	c->size = size;
	c->front = class < FRONTS ? FRONT_SIZE / size : 0;
	c->count = c->front + (REGION - first) / size;
	c->inverse = ((1ul << INVERSE) + size / STEP - 1) / (size / STEP);
	c->places = region_of(class) + first;
	return 0;
}

static char *block_at(const struct class *c, unsigned class, size_t place)
{
	return place < c->front ? front_of(class) + place * c->size
				: c->places + (place - c->front) * c->size;
}

/* Under the class's lock. */
static void *take_block(struct class *c, unsigned class)
{
	uint64_t *map = (uint64_t *)region_of(class);
	size_t words, place;
	char *block;

	if (!c->size && begin_region(c, class) < 0)
		return NULL;
	words = (c->count + 63) / 64;
	while (c->lowest < words && map[c->lowest] == ~0ul)
		c->lowest++;
	if (c->lowest == words)
		return NULL;
	place = c->lowest * 64ul + __builtin_ctzl(~map[c->lowest]);
	if (place >= c->count)
		return NULL;
	block = block_at(c, class, place);
	if (place >= c->front &&
		commit_region(c, (char *)map, block + c->size - (char *)map) < 0)
		return NULL;
	map[c->lowest] |= 1ul << place % 64;
	return block;
}

/* Which place it is that begins @offset bytes behind the first one. */
static uint64_t block_number(const struct class *c, uint64_t offset)
{
	return offset / STEP * c->inverse >> INVERSE;
}

/* Of a block that is ours. */
static uint64_t place_of(const struct class *c, unsigned class, const void *block)
{
	return is_in_front(block) ? block_number(c, (const char *)block - front_of(class))
				  : c->front + block_number(c, (const char *)block - c->places);
}

/* ---- blocks at places of the caller's ---- */

static struct {
	void *from, *to;
} next_move;

/* Places that are taken for a block that is still to come, */
static struct kept_place {
	char *block;
	uint32_t places; /* and a block that is there: how many it takes. 0: it is to come */
} kept_places[HEAP_KEPT];
static uint32_t kept_count;

static struct kept_place *find_kept(const void *block)
{
	for (uint32_t i = 0; i < kept_count; i++)
		if (kept_places[i].block == block)
			return &kept_places[i];
	return NULL;
}

static void set_place(uint64_t *map, size_t place, int taken)
{
	if (taken)
		map[place / 64] |= 1ul << place % 64;
	else
		map[place / 64] &= ~(1ul << place % 64);
}

/* 0: @block is the place of a block in its class. Under the class's lock. */
static int begin_at(struct class *c, unsigned class, const char *block)
{
	uint64_t place;

	if (!c->size && begin_region(c, class) < 0)
		return -1;
	if (!is_in_front(block) && block < c->places)
		return -1;
	place = place_of(c, class, block);
	return place < c->count && (place < c->front) == is_in_front(block) &&
			       block_at(c, class, place) == block
		       ? 0
		       : -1;
}

int heap_keep(void *block)
{
	unsigned class = class_number(block);
	struct class *c = &classes[class];
	int r = -1;

	if (!is_ours(block) || class >= CLASSES || kept_count == HEAP_KEPT || !reserve_heap())
		return -1;
	raw_lock(&c->lock);
	if (!begin_at(c, class, block)) {
		uint64_t *map = (uint64_t *)region_of(class), place = place_of(c, class, block);

		if (!(map[place / 64] >> place % 64 & 1)) {
			set_place(map, place, 1);
			kept_places[kept_count++] = (struct kept_place){block, 0};
			r = 0;
		}
	}
	raw_unlock(&c->lock);
	return r;
}

void *heap_block(void *address)
{
	unsigned class = class_number(address);
	struct class *c = &classes[class];

	if (!is_ours(address) || class >= CLASSES || !c->size ||
		(!is_in_front(address) && (char *)address < c->places))
		return NULL;
	return block_at(c, class, place_of(c, class, address));
}

/* Take the place that is kept, and as many of those behind it as @size takes. Under the class's
 * lock. */
static int claim_places(struct class *c, unsigned class, struct kept_place *k, size_t size)
{
	uint64_t *map = (uint64_t *)region_of(class), place = place_of(c, class, k->block);
	size_t n = (size + c->size - 1) / c->size;

	if (k->places || place + n > c->count || (place < c->front && place + n > c->front))
		return -1;
	for (size_t i = 1; i < n; i++)
		if (map[(place + i) / 64] >> (place + i) % 64 & 1)
			return -1;
	if (place >= c->front &&
		commit_region(c, (char *)map, k->block + n * c->size - (char *)map) < 0)
		return -1;
	for (size_t i = 1; i < n; i++)
		set_place(map, place + i, 1);
	k->places = n;
	return 0;
}

/* @block, which has just been taken, or what is to be in its place. */
static void *move_block(void *block, size_t size)
{
	struct kept_place *k = find_kept(next_move.to);
	unsigned class = k ? class_number(k->block) : 0;
	int r;

	next_move.from = NULL;
	if (!k)
		return block;
	raw_lock(&classes[class].lock);
	r = claim_places(&classes[class], class, k, size);
	raw_unlock(&classes[class].lock);
	if (r < 0)
		return block;
	free(block);
	return k->block;
}

void heap_move_next(void *from, void *to)
{
	next_move.to = to;
	next_move.from = from;
}

/* How many places it takes, which are one but for blocks that were moved. Its place is kept for
 * another when it is freed. */
static size_t end_kept(const void *block)
{
	struct kept_place *k = kept_count ? find_kept(block) : NULL;
	size_t n = k ? k->places : 0;

	if (k)
		k->places = 0;
	return n;
}

static size_t room_of(const void *block)
{
	const struct kept_place *k = kept_count ? find_kept(block) : NULL;

	return size_of(class_number(block)) * (k && k->places ? k->places : 1);
}

/* ---- */

__thread int heap_aside;

void *malloc(size_t size)
{
	unsigned class = class_of(size);
	struct class *c = &classes[class];
	void *block;

	if (size > LARGE || heap_aside || !reserve_heap())
		return __libc_malloc(size);
	raw_lock(&c->lock);
	block = take_block(c, class);
	raw_unlock(&c->lock);
	if (!block)
		return __libc_malloc(size);
	return block == next_move.from ? move_block(block, size) : block;
}

void free(void *block)
{
	unsigned class = class_number(block);
	uint64_t *map, place;
	struct class *c;

	if (!is_ours(block)) {
		__libc_free(block);
		return;
	}
	c = &classes[class];
	map = (uint64_t *)region_of(class);
	place = place_of(c, class, block);
	raw_lock(&c->lock);
	for (size_t n = end_kept(block); n > 1; n--)
		set_place(map, place + n - 1, 0);
	if (!kept_count || !find_kept(block))
		map[place / 64] &= ~(1ul << place % 64);
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
	old = room_of(block);
	if (size <= LARGE && (size_of(class_of(size)) == old ||
				     (kept_count && find_kept(block) && size <= old)))
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
		return room_of(block);
	if (!libcs)
		libcs = (size_t(*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
	return libcs ? libcs(block) : 0;
}
