/*
 * split/staging.h - the buffer that device memory passes through, between the lower half and
 * us: shared memory of the lower half's, mapped here, too.
 *
 * Readers ask for pieces of a range in order as a rule, several at a time, and each at
 * its own pace. So the buffer is cut into slots: what one still reads from is not taken away by
 * another, and the next piece is fetched while there is work with the last.
 */
#ifndef SUPERVISOR_SPLIT_STAGING_H
#define SUPERVISOR_SPLIT_STAGING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/err.h"

struct process;

#define STAGING_SLOTS 8

struct staging_slot {
	uint64_t address, filled; /* what is in there; 0 bytes: nothing */
	uint64_t used;            /* when it was last, as staging.clock counts */
	unsigned readers;
	bool coming; /* an order is under way for it */
};

struct staging {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char *data; /* mapped here, NULL: not yet */
	uint64_t size;
	uint64_t clock, furthest; /* counts uses; where what was fetched so far ends */
	bool ordering;            /* one at a time */
	struct staging_slot slots[STAGING_SLOTS];
};

/* Whole blocks, by address, without overlap. */
struct device_range {
	uint64_t start, end;
	uint32_t device;
};

void staging_init(struct staging *staging);
void staging_free(struct staging *staging);

/* Map the staging buffer of @p's lower half. */
int staging_map(struct process *p, struct err *e);

/* Read [@address, @address + @size) of @range into @data; for several threads at once. */
int staging_read(struct process *p, const struct device_range *range, uint64_t address,
	void *data, size_t size, struct err *e);

#endif
