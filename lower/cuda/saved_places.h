/*
 * saved_places.h - where variables of modules and managed memory lay at the checkpoint, and
 * what lies between them: ranges of the driver's address space, cut into places without a gap.
 */
#ifndef LOWER_CUDA_SAVED_PLACES_H
#define LOWER_CUDA_SAVED_PLACES_H

#include <stddef.h>

#include "lower/cuda/filler.h"
#include "shared/cuda/memory_state.h"

#define PLACES_RANGE (32ul << 20)
#define PLACES_BLOCK (2ul << 20)
#define PLACES_LATE  (1u << 30) /* behind all turns */

/* An allocation, or several of one owner in a row; or what belongs to nobody. */
struct place {
	uint64_t start, end;
	void *context;   /* of its heap */
	void *loaded_in; /* of an owner's in one context, that */
	const struct object *owner;
	const struct memory_managed *memory;
	enum filler_heap heap;
	int large;     /* of whole blocks */
	int is_first;  /* it holds the owner's first variable */
	unsigned turn; /* of its first variable among the owner's, in the order they are
			  allocated in */
	int is_loose;  /* empty from `at` on, to be filled again */
	uint64_t at;
	int planned;            /* place_plan(): it is to be empty */
	unsigned plan_turn;     /* and its turn among what is */
	struct filler *fillers; /* in its stead; NULL: it is empty, or made */
	unsigned filler_count;
	struct range *range;
};

/* What is to be one range of the driver's. */
struct range {
	uint64_t start, end;
	size_t first, last; /* of places; behind the last */
	uint64_t age;       /* of the range that it was in: the oldest is 0 */
	int is_absent;      /* place_plan(): it is to be given back */
	int is_dropped;     /* nothing is in it, to be made again */
};

struct places {
	struct place *list; /* by address */
	size_t count, room;
	struct range *ranges; /* in the order that they are to be made in */
	size_t range_count, range_room;
};

/* The places of this restart, from placement_keep() to placement_end(). */
extern struct places saved_places;

/* All that @s holds. 0, or -1 by agent_fail(). */
int places_find(struct places *p, const struct cuda_state *s);
void places_free(struct places *p);

/* The context that @o was first loaded in: the list of its variables begins with what was found
 * last. NULL: it has none. */
void *places_first_context(const struct object *o);

static inline uint64_t places_down(uint64_t n, uint64_t step)
{
	return n & ~(step - 1);
}

static inline uint64_t places_up(uint64_t n, uint64_t step)
{
	return places_down(n + step - 1, step);
}

/* What is allocated in multiples of. */
static inline uint64_t places_step(enum filler_heap heap)
{
	return heap == FILLER_VARIABLES ? 256 : 512;
}

static inline uint64_t block_start(const struct place *p)
{
	return places_down(p->start, PLACES_BLOCK);
}

static inline uint64_t block_end(const struct place *p)
{
	return p->large ? p->end : block_start(p) + PLACES_BLOCK;
}

static inline int place_is_whole(const struct place *p)
{
	return p->start == p->range->start && p->end == p->range->end;
}

static inline int place_is_alike(const struct place *p, const struct place *q)
{
	return p->heap == q->heap && p->context == q->context;
}

/* Of what @owner has in @context, NULL: in all. */
static inline int place_is_of(
	const struct place *p, const struct object *owner, const void *context)
{
	return p->owner == owner && (!context || !p->loaded_in || p->loaded_in == context);
}

/* Whether that takes room of its own. */
int place_is_wanted(const struct cuda_global *g);

/* In which order the driver is taken to allocate the variables of a module, which differs between
 * modules and libraries and is not documented. */
enum place_order { AS_LISTED, MANAGED_LAST, MANAGED_FIRST, PLACE_ORDERS };
extern enum place_order places_order;

/* The turn of a place in that order. */
static inline unsigned place_turn(const struct place *p)
{
	enum place_order late = p->heap == FILLER_VARIABLES ? MANAGED_FIRST : MANAGED_LAST;

	return p->turn + (places_order == late ? PLACES_LATE : 0);
}

/* The turn of the first that @owner has in there; -1: it has none. */
long range_turn(const struct range *r, const struct object *owner, const void *context);

/* Bits of chance, the same for the same try; of two places each on their own, or some ways
 * would never come up. */
static inline unsigned places_chance(unsigned way, size_t i)
{
	uint64_t bits = ((uint64_t)way << 32 | i) * 0x9e3779b97f4a7c15;

	bits = (bits ^ bits >> 32) * 0x9e3779b97f4a7c15;
	return bits >> 40;
}

/* The first place behind @i that is in another block than that. */
size_t places_next_block(const struct places *p, size_t i);

#endif
