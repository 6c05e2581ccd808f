/*
 * place_fillers.h - fillers in places, and fillers of the driver's room beside the places.
 */
#ifndef LOWER_CUDA_PLACE_FILLERS_H
#define LOWER_CUDA_PLACE_FILLERS_H

#include "lower/cuda/saved_places.h"

/* Fillers of blocks that are shared are no larger. */
#define PLACES_PIECE (1ul << 20)

/* So often the driver may find room elsewhere. */
#define FILLER_TRIES 1024

struct filler_list {
	struct listed_filler {
		struct filler filler;
		unsigned turn; /* of a place, see there; 0 */
	} * list;
	size_t count, room;
};

/* All of these return 0, or -1 by agent_fail(). */

/* filler_take() in @context. */
int filler_take_in(enum filler_heap heap, void *context, uint64_t size, struct filler *f);
/* A filler at @address: where the driver finds room before, that is filled. */
int filler_take_at(enum filler_heap heap, void *context, uint64_t size, uint64_t address,
	struct filler *f);

int filler_list_add(struct filler_list *l, const struct filler *f, unsigned turn);
/* Without giving them back. */
void filler_list_free(struct filler_list *l);

/* Hold @f, which lies beside the places; give all such back. */
int extra_keep(const struct filler *f);
int extras_give(void);

int place_add_filler(struct place *p, const struct filler *f);
/* Fill @start to @end of it. */
int place_take(struct place *p, uint64_t start, uint64_t end);
/* Give its fillers back; place_loosen(): to fill it again later. */
int place_empty(struct place *p);
int place_loosen(struct place *p);

/* That @address is in and that is empty; NULL: none. */
const struct place *place_empty_at(uint64_t address);
/* @first to @last are all that is in a range, or in a block. */
int places_all_loose(size_t first, size_t last);
int block_is_same(uint64_t address, uint64_t other);

#endif
