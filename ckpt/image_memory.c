/*
 * image_memory.c - shared memory comes in mappings that many pieces are cut from, one behind the other: each mapping that
 * a process has is copied with it as well. A mapping goes with the last of its pieces.
 */
#include "ckpt/image_memory.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/util.h"

/* Of one that is not for one large piece alone. What is not used of it takes no memory. */
#define MAPPING_SIZE ((size_t)16 << 20)

struct mapping {
	char *start;
	size_t size, used, pieces;
};

/* Before each piece: what it is part of, which each process counts for itself; NULL: it is malloc(3)'s. */
struct head {
	alignas(max_align_t) struct mapping *mapping;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool shared;
static struct mapping *current; /* where the next piece is cut from; NULL: there is none */

void image_memory_share(bool on)
{
	pthread_mutex_lock(&lock);
	shared = on;
	current = NULL;
	pthread_mutex_unlock(&lock);
}

static struct mapping *new_mapping(size_t size)
{
	struct mapping *m = xcalloc(1, sizeof(*m));

	m->size = size > MAPPING_SIZE ? size : MAPPING_SIZE;
	m->start = mmap(NULL, m->size, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m->start != MAP_FAILED)
		return m;
	free(m);
	return NULL;
}

/* With the lock held. */
static struct head *cut_piece(size_t size)
{
	struct head *h;

	if (!current || size > current->size - current->used) {
		struct mapping *m = new_mapping(size);

		if (!m)
			return NULL;
		current = m;
	}
	h = (struct head *)(current->start + current->used);
	current->used += size;
	current->pieces++;
	return h;
}

/* NULL: it is not to be shared, or cannot be, which only takes time. */
static struct head *shared_piece(size_t size)
{
	struct head *h = NULL;

	pthread_mutex_lock(&lock);
	if (shared)
		h = cut_piece(size);
	if (h)
		h->mapping = current;
	pthread_mutex_unlock(&lock);
	return h;
}

void *image_memory_get(size_t size)
{
	size_t whole = align_up(sizeof(struct head) + size, alignof(struct head));
	struct head *h = whole < size ? NULL : shared_piece(whole);

	if (!h && whole >= size) {
		h = malloc(whole);
		if (h)
			h->mapping = NULL;
	}
	return h ? h + 1 : NULL;
}

void image_memory_free(void *memory)
{
	struct head *h = memory ? (struct head *)memory - 1 : NULL;
	struct mapping *m = h ? h->mapping : NULL;

	if (!m) {
		free(h);
		return;
	}
	pthread_mutex_lock(&lock);
	if (!--m->pieces) {
		if (m == current)
			current = NULL;
		(void)munmap(m->start, m->size);
		free(m);
	}
	pthread_mutex_unlock(&lock);
}
