/*
 * heap.c - ranges, blocks and shared blocks, in the order in which the driver tries them.
 */
#include "t/sim/heap.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCK (2ul << 20)

/* Newest first. */
struct range {
	uint64_t start, end;
	int managed, lent;
	unsigned char *taken; /* a byte a block */
	struct range *next;
};

/* That is shared. Oldest first. */
struct block {
	enum heap heap;
	void *context;
	uint64_t start;
	unsigned char *taken; /* a byte a step */
	uint64_t *since;      /* where a hole begins: when it came to be */
	struct block *next;
};

static struct range *ranges;
static struct block *blocks;
static uint64_t now;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t round_up(uint64_t n, uint64_t step)
{
	return (n + step - 1) & ~(step - 1);
}

static uint64_t step_of(enum heap heap)
{
	return heap == HEAP_VARIABLES ? 256 : 512;
}

static uint64_t steps_of(enum heap heap)
{
	return BLOCK / step_of(heap);
}

static struct range *add_range(uint64_t start, uint64_t end, int managed, int lent)
{
	struct range *r = calloc(1, sizeof(*r));

	*r = (struct range){
		start, end, managed, lent, calloc((end - start) / BLOCK, 1), ranges};
	ranges = r;
	return r;
}

/* By asking for more and giving back what alignment leaves over. */
static struct range *new_range(uint64_t size, int managed)
{
	uint64_t room = size + HEAP_RANGE - 4096, lead;
	char *p = mmap(NULL, room, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	lead = -(uintptr_t)p & (HEAP_RANGE - 1);
	if (lead)
		munmap(p, lead);
	if (room - lead > size)
		munmap(p + lead + size, room - lead - size);
	return add_range((uint64_t)p + lead, (uint64_t)p + lead + size, managed, 0);
}

/* Where the smallest row of @count free ones or more in @taken begins, the lowest of such; @total: there is
 * none. */
static uint64_t best_fit(const unsigned char *taken, uint64_t total, uint64_t count)
{
	uint64_t run = 0, best = total, size = UINT64_MAX;

	for (uint64_t i = 0; i <= total; i++) {
		if (i < total && !taken[i]) {
			run++;
			continue;
		}
		if (run >= count && run < size) {
			best = i - run;
			size = run;
		}
		run = 0;
	}
	return best;
}

static uint64_t total_of(const struct range *r)
{
	return (r->end - r->start) / BLOCK;
}

/* A range that has room for @count blocks, at block *@at. */
static struct range *find_range(uint64_t count, int managed, uint64_t *at)
{
	struct range *r = ranges;

	for (; r; r = r->next) {
		*at = best_fit(r->taken, total_of(r), count);
		if (r->managed == managed && *at < total_of(r))
			break;
	}
	return r;
}

static uint64_t take_from(struct range *r, uint64_t at, uint64_t count, int protection)
{
	memset(r->taken + at, 1, count);
	mmap((void *)(r->start + at * BLOCK), count * BLOCK, protection,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	return r->start + at * BLOCK;
}

static uint64_t take_blocks(enum heap heap, uint64_t size)
{
	int managed = heap != HEAP_VARIABLES;
	uint64_t count = round_up(size, BLOCK) / BLOCK, at;
	struct range *r = find_range(count, managed, &at);

	if (!r) {
		r = new_range(round_up(size, HEAP_RANGE), managed);
		at = 0;
	}
	return r ? take_from(r, at, count, PROT_READ | PROT_WRITE) : 0;
}

static void drop_range(struct range *r)
{
	struct range **p = &ranges;

	while (*p != r)
		p = &(*p)->next;
	*p = r->next;
	if (!r->lent)
		munmap((void *)r->start, r->end - r->start);
	free(r->taken);
	free(r);
}

static int is_empty(const struct range *r)
{
	return best_fit(r->taken, total_of(r), total_of(r)) == 0;
}

static void give_blocks(uint64_t address, uint64_t size)
{
	struct range *r = ranges;

	while (address < r->start || address >= r->end)
		r = r->next;
	memset(r->taken + (address - r->start) / BLOCK, 0, round_up(size, BLOCK) / BLOCK);
	if (is_empty(r) && !r->lent)
		drop_range(r);
}

struct hole {
	uint64_t at, size, since;
};

static int is_better(const struct hole *a, const struct hole *b)
{
	return a->size < b->size || (a->size == b->size && a->since < b->since);
}

/* The smallest hole of @count steps or more, the oldest of such; @best is the best one so far.
 */
static int better_hole(const struct block *b, uint64_t count, struct hole *best)
{
	uint64_t total = steps_of(b->heap), run = 0;
	int found = 0;

	for (uint64_t i = 0; i <= total; i++) {
		struct hole h = {i - run, run, 0};

		if (i < total && !b->taken[i]) {
			run++;
			continue;
		}
		run = 0;
		if (h.size < count || !h.size)
			continue;
		h.since = b->since[h.at];
		if (is_better(&h, best)) {
			*best = h;
			found = 1;
		}
	}
	return found;
}

static struct block *new_block(enum heap heap, void *context)
{
	struct block *b = calloc(1, sizeof(*b)), **end = &blocks;

	*b = (struct block){heap, context, take_blocks(heap, BLOCK), calloc(steps_of(heap), 1),
		calloc(steps_of(heap), sizeof(*b->since)), NULL};
	b->since[0] = ++now;
	while (*end)
		end = &(*end)->next;
	*end = b;
	return b;
}

static uint64_t take_shared(enum heap heap, void *context, uint64_t size)
{
	uint64_t count = round_up(size, step_of(heap)) / step_of(heap);
	struct hole hole = {0, UINT64_MAX, UINT64_MAX};
	struct block *best = NULL;
	uint64_t at;

	for (struct block *b = blocks; b; b = b->next)
		if (b->heap == heap && b->context == context && better_hole(b, count, &hole))
			best = b;
	if (!best)
		best = new_block(heap, context);
	if (!best->start)
		return 0;
	at = hole.at;
	memset(best->taken + at, 1, count);
	if (at + count < steps_of(heap))
		best->since[at + count] = ++now;
	memset((char *)best->start + at * step_of(heap), 0, size);
	return best->start + at * step_of(heap);
}

static void give_shared(struct block *b, uint64_t address, uint64_t size)
{
	uint64_t at = (address - b->start) / step_of(b->heap);
	struct block **p = &blocks;

	memset(b->taken + at, 0, round_up(size, step_of(b->heap)) / step_of(b->heap));
	while (at && !b->taken[at - 1])
		at--;
	b->since[at] = ++now;
	if (best_fit(b->taken, steps_of(b->heap), steps_of(b->heap)))
		return;
	while (*p != b)
		p = &(*p)->next;
	*p = b->next;
	give_blocks(b->start, BLOCK);
	free(b->taken);
	free(b->since);
	free(b);
}

uint64_t heap_take(enum heap heap, void *context, uint64_t size)
{
	uint64_t r;

	pthread_mutex_lock(&lock);
	r = size < BLOCK ? take_shared(heap, context, size) : take_blocks(heap, size);
	pthread_mutex_unlock(&lock);
	return r;
}

uint64_t heap_take_blocks(enum heap heap, uint64_t size)
{
	uint64_t r;

	pthread_mutex_lock(&lock);
	r = take_blocks(heap, size);
	pthread_mutex_unlock(&lock);
	return r;
}

void heap_give(enum heap heap, uint64_t address, uint64_t size)
{
	struct block *b;

	pthread_mutex_lock(&lock);
	for (b = blocks; b && (b->heap != heap || address - b->start >= BLOCK); b = b->next)
		;
	if (b)
		give_shared(b, address, size);
	else
		give_blocks(address, size);
	pthread_mutex_unlock(&lock);
}

uint64_t heap_reserve(uint64_t size)
{
	uint64_t at, address = 0;
	struct range *r;

	pthread_mutex_lock(&lock);
	r = find_range(size / BLOCK, 0, &at);
	if (r)
		address = take_from(r, at, size / BLOCK, PROT_NONE);
	pthread_mutex_unlock(&lock);
	return address;
}

int heap_unreserve(uint64_t address, uint64_t size)
{
	const struct range *r;

	pthread_mutex_lock(&lock);
	for (r = ranges; r && (address < r->start || address >= r->end); r = r->next)
		;
	if (r)
		give_blocks(address, size);
	pthread_mutex_unlock(&lock);
	return r ? 0 : -1;
}

void heap_lend(uint64_t start, uint64_t end)
{
	pthread_mutex_lock(&lock);
	if (start < end)
		add_range(start, end, 0, 1);
	pthread_mutex_unlock(&lock);
}

int heap_take_back(uint64_t start, uint64_t end)
{
	struct range *r;
	int busy;

	pthread_mutex_lock(&lock);
	for (r = ranges; r && (r->start != start || r->end != end); r = r->next)
		;
	busy = r && !is_empty(r);
	if (r && !busy)
		drop_range(r);
	pthread_mutex_unlock(&lock);
	return busy;
}
