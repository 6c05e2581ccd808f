/*
 * place_fillers.c - lists of fillers by place, how a place is emptied, and what was taken
 * beside the places.
 */
#include "lower/cuda/place_fillers.h"

#include <stdlib.h>

#include "lower/cuda/cuda.h"
#include "lower/cuda/growing_list.h"

/* Fillers of what the driver has beside the places. */
static struct filler_list extras;

int filler_list_add(struct filler_list *l, const struct filler *f, unsigned turn)
{
	if (list_reserve(&l->list, l->count, &l->room, sizeof(*l->list),
		    "for the places of variables"))
		return -1;
	l->list[l->count++] = (struct listed_filler){*f, turn};
	return 0;
}

void filler_list_free(struct filler_list *l)
{
	free(l->list);
	*l = (struct filler_list){0};
}

int filler_take_in(enum filler_heap heap, void *context, uint64_t size, struct filler *f)
{
	int r = CUDA(cuCtxSetCurrent, (void *))(context);

	return r ? cuda_failed("cuCtxSetCurrent", r) : filler_take(heap, size, context, f);
}

int extra_keep(const struct filler *f)
{
	return filler_list_add(&extras, f, 0);
}

int block_is_same(uint64_t address, uint64_t other)
{
	return places_down(address, PLACES_BLOCK) == places_down(other, PLACES_BLOCK);
}

/* Small holes in blocks that are not the one of @address. */
static int use_up_holes(enum filler_heap heap, void *context, uint64_t address)
{
	struct filler f;

	for (uint64_t size = PLACES_PIECE; size >= places_step(heap); size /= 2) {
		for (;;) {
			if (filler_take_in(heap, context, size, &f))
				return -1;
			if (block_is_same(f.address, address))
				break;
			if (extra_keep(&f))
				return -1;
		}
		if (filler_give(&f))
			return -1;
	}
	return 0;
}

int filler_take_at(
	enum filler_heap heap, void *context, uint64_t size, uint64_t address, struct filler *f)
{
	uint64_t first = 0;

	for (unsigned i = 0; i < FILLER_TRIES; i++) {
		if (filler_take_in(heap, context, size, f))
			return -1;
		if (f->address == address)
			return 0;
		first = first ? first : f->address;
		if (extra_keep(f))
			return -1;
		if (!i && size < PLACES_PIECE && use_up_holes(heap, context, address))
			return -1;
	}
	return agent_fail(
		"the driver returns %#lx instead of %#lx for %#lx bytes", first, address, size);
}

int place_add_filler(struct place *p, const struct filler *f)
{
	struct filler *more = realloc(p->fillers, (p->filler_count + 1) * sizeof(*p->fillers));

	if (!more)
		return agent_fail("no memory for the places of variables");
	p->fillers = more;
	p->fillers[p->filler_count++] = *f;
	return 0;
}

int place_take(struct place *p, uint64_t start, uint64_t end)
{
	struct filler f;

	if (filler_take_at(p->heap, p->context, end - start, start, &f))
		return -1;
	p->is_loose = 0;
	return place_add_filler(p, &f);
}

int place_empty(struct place *p)
{
	for (; p->filler_count; p->filler_count--)
		if (filler_give(&p->fillers[p->filler_count - 1]))
			return -1;
	free(p->fillers);
	p->fillers = NULL;
	return 0;
}

int place_loosen(struct place *p)
{
	p->is_loose = 1;
	p->at = p->start;
	return place_empty(p);
}

int extras_give(void)
{
	for (; extras.count; extras.count--)
		if (filler_give(&extras.list[extras.count - 1].filler))
			return -1;
	filler_list_free(&extras);
	return 0;
}

const struct place *place_empty_at(uint64_t address)
{
	for (size_t i = 0; i < saved_places.count; i++) {
		const struct place *p = &saved_places.list[i];

		if (p->is_loose && address >= p->start && address < p->end)
			return p;
	}
	return NULL;
}

int places_all_loose(size_t first, size_t last)
{
	for (; first < last; first++)
		if (!saved_places.list[first].is_loose)
			return 0;
	return 1;
}
