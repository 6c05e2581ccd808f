/*
 * split/staging.h - the buffer that device memory passes through, between the lower half and
 * us: shared memory of the lower half's, mapped here, too.
 *
 * What passes is a stream: memory that is listed before it is read, or the hashes of its blocks.
 * It is cut into pieces, of which one order of the lower half has one fetched. Readers ask for
 * memory in order as a rule, several at a time, and each at its own pace. So the buffer is cut
 * into slots: what one still reads from is not taken away by another, and the next piece is
 * fetched while there is work with the last.
 */
#ifndef SUPERVISOR_SPLIT_STAGING_H
#define SUPERVISOR_SPLIT_STAGING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/err.h"
#include "lib/util.h"
#include "shared/table.h"

struct process;

#define STAGING_SLOTS 8

struct staging_stream {
	enum lower_request request; /* LOWER_SAVE or LOWER_HASH */
	struct buf transfers;       /* struct lower_transfer, by address */
	struct buf pieces;          /* struct staging_piece */
	size_t furthest;            /* pieces from here on have not been asked for */
};

struct staging_slot {
	const struct staging_stream *stream; /* whose is in there; NULL: nothing */
	size_t piece;
	uint64_t used; /* when it was last, as staging.clock counts */
	unsigned readers;
	bool coming; /* an order is under way for it */
};

struct staging {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char *data; /* mapped here, NULL: not yet */
	uint64_t size;
	uint64_t clock; /* counts uses */
	bool ordering;  /* one at a time */
	struct staging_slot slots[STAGING_SLOTS];

	/* Of what has hashes, those, such as a snapshot has with it, and what of it is read; and all the
	 * rest. */
	struct staging_stream hashes, copied_hashes, wanted, others;
};

/* Whole blocks, or hashes of such, by address, without overlap. */
struct device_range {
	uint64_t start, end;
	uint32_t device;
};

void staging_init(struct staging *staging);
void staging_free(struct staging *staging);

/* Map the staging buffer of @p's lower half. */
int staging_map(struct process *p, struct err *e);

/* List @range, which lies behind all that @stream has; not while it is read. The buffer is
 * mapped. */
void staging_add(struct staging *staging, struct staging_stream *stream,
	const struct device_range *range);

/* Read memory [@address, @address + @size), or the hashes of the blocks that it has, into @data;
 * all of it is listed. For several threads at once. */
int staging_read(struct process *p, struct staging_stream *stream, uint64_t address, void *data,
	uint64_t size, struct err *e);

#endif
