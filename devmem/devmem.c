/*
 * devmem.c - the allocator's calls: small sizes go to slabs (slabs.c), large ones to runs of
 * granules (runs.c), and both lie in extents (extents.c).
 */
#include "devmem/devmem.h"

#include "devmem/extents.h"
#include "devmem/runs.h"
#include "devmem/slabs.h"

/* Single granules are made several at a time once the program has shown that it wants many:
 * most of what mapping costs does not depend on how much is mapped (doc/gpu-memory.md). */
#define AHEAD_MAX  8u
#define AHEAD_PART 8 /* of what is in use */

static uint32_t granule_of(const struct devmem_device *d, uint64_t address)
{
	return (address - devmem_device_base(d->number)) / DEVMEM_GRANULE;
}

int devmem_open(
	struct devmem *m, const struct devmem_driver *driver, uint32_t device, uint64_t cache)
{
	struct devmem_device *d = &m->devices[device];
	int r;

	if (d->ready)
		return 0;
	d->granules = driver->memory(DEVMEM_GRANULES * sizeof(*d->granules));
	if (!d->granules)
		return DEVMEM_NO_MEMORY;
	d->number = device;
	r = driver->reserve(devmem_device_base(device), DEVMEM_DEVICE_SIZE);
	if (r)
		return r;
	for (uint32_t state = 0; state < 2; state++)
		for (uint32_t bin = 0; bin < DEVMEM_BINS; bin++)
			d->bins[state][bin] = DEVMEM_NONE;
	runs_give(d, DEVMEM_UNMAPPED, 0, DEVMEM_GRANULES);
	d->cache = cache / DEVMEM_GRANULE;
	d->ready = 1;
	return 0;
}

/* ---- granules ---- */

static int any_run(const struct devmem_device *d, uint32_t run, uint32_t count)
{
	return 1;
}

/* Free granules: @start in the run that begins at @run. */
struct place {
	uint32_t run, start;
};

/* Map @count granules more, in pieces. */
static int map_more(struct devmem_device *d, const struct devmem_driver *driver, uint32_t count,
	uint32_t piece, struct place *place)
{
	uint32_t run = runs_find(d, DEVMEM_UNMAPPED, count, any_run);
	int r;

	if (run == DEVMEM_NONE)
		return DEVMEM_NO_MEMORY;
	r = extents_map(d, driver, run, count, piece);
	if (r)
		return r;
	runs_take(d, run, run, count);
	if (run + count > d->top)
		d->top = run + count;
	d->free += count;
	place->start = run;
	place->run = runs_give(d, DEVMEM_FREE, run, count);
	return 0;
}

static int grow_as_needed(struct devmem_device *d, const struct devmem_driver *driver,
	uint32_t count, struct place *place)
{
	uint32_t ahead = d->used / AHEAD_PART;

	if (ahead > AHEAD_MAX)
		ahead = AHEAD_MAX;
	if (count == 1 && ahead > 1 && !map_more(d, driver, ahead, 1, place))
		return 0;
	return map_more(d, driver, count, EXTENT_MAX, place);
}

static int find_free(const struct devmem_device *d, uint32_t count,
	int (*fits)(const struct devmem_device *d, uint32_t run, uint32_t count),
	struct place *place)
{
	place->run = place->start = runs_find(d, DEVMEM_FREE, count, fits);
	return place->run == DEVMEM_NONE ? DEVMEM_NO_MEMORY : 0;
}

/* @count free granules, mapped if need be. */
static int find_granules(struct devmem *m, const struct devmem_driver *driver,
	struct devmem_device *d, uint32_t count, struct place *place)
{
	int r;

	if (!find_free(d, count, extents_spare, place))
		return 0;
	r = grow_as_needed(d, driver, count, place);
	if (r != DEVMEM_NO_MEMORY)
		return r;
	devmem_trim(m, driver, d->number);
	r = grow_as_needed(d, driver, count, place);
	return r == DEVMEM_NO_MEMORY ? find_free(d, count, any_run, place) : r;
}

static int take_granules(struct devmem *m, const struct devmem_driver *driver,
	struct devmem_device *d, uint32_t count, struct devmem_allocation *a, uint32_t *start)
{
	struct place place;
	int r = find_granules(m, driver, d, count, &place);

	if (r)
		return r;
	*start = place.start;
	runs_take(d, place.run, place.start, count);
	for (uint32_t i = *start; i < *start + count; i++) {
		d->granules[i].state = DEVMEM_USED;
		d->granules[i].allocation = a;
		d->granules[i].slab = NULL;
	}
	d->free -= count;
	d->used += count;
	return 0;
}

static void give_granules(struct devmem_device *d, const struct devmem_driver *driver,
	uint32_t start, uint32_t count)
{
	uint32_t run;

	d->used -= count;
	d->free += count;
	run = runs_give(d, DEVMEM_FREE, start, count);
	if (d->free > d->cache)
		extents_release(d, driver, run);
}

/* ---- allocations ---- */

static struct devmem_allocation *new_record(
	struct devmem *m, const struct devmem_driver *driver)
{
	struct devmem_allocation *a = m->spare;

	if (!a)
		return driver->memory(sizeof(*a));
	m->spare = a->next;
	*a = (struct devmem_allocation){0};
	return a;
}

static int place_small(struct devmem *m, const struct devmem_driver *driver,
	struct devmem_device *d, struct devmem_allocation *a)
{
	uint32_t granule;
	int r;

	if (slabs_take(d, a))
		return 0;
	r = take_granules(m, driver, d, 1, NULL, &granule);
	if (r)
		return r;
	r = slabs_add(m, driver, d, granule, a->class);
	if (r) {
		give_granules(d, driver, granule, 1);
		return r;
	}
	slabs_take(d, a);
	return 0;
}

static int place_large(struct devmem *m, const struct devmem_driver *driver,
	struct devmem_device *d, struct devmem_allocation *a)
{
	uint32_t start;
	int r = take_granules(m, driver, d, a->granules, a, &start);

	if (!r)
		a->address = devmem_address(d, start);
	return r;
}

int devmem_alloc(struct devmem *m, const struct devmem_driver *driver, uint32_t device,
	uint64_t size, struct devmem_allocation **allocation)
{
	struct devmem_device *d = &m->devices[device];
	struct devmem_allocation *a;
	int r;

	if (size > DEVMEM_DEVICE_SIZE)
		return DEVMEM_NO_MEMORY;
	a = new_record(m, driver);
	if (!a)
		return DEVMEM_NO_MEMORY;
	a->device = device;
	a->granules = devmem_granules(size);
	a->class = a->granules ? 0 : devmem_class(size);
	r = a->granules ? place_large(m, driver, d, a) : place_small(m, driver, d, a);
	if (r) {
		a->next = m->spare;
		m->spare = a;
		return r;
	}
	devmem_revive(m, a, size);
	*allocation = a;
	return 0;
}

uint32_t devmem_granules(uint64_t size)
{
	return size <= DEVMEM_SMALL ? 0 : (size + DEVMEM_GRANULE - 1) / DEVMEM_GRANULE;
}

void devmem_revive(struct devmem *m, struct devmem_allocation *a, uint64_t size)
{
	a->size = size;
	a->id = ++m->next_id;
	a->state = DEVMEM_LIVE;
}

uint64_t devmem_room(const struct devmem_allocation *a)
{
	return a->granules ? a->granules * DEVMEM_GRANULE : slabs_object_size(a->class);
}

void devmem_free(
	struct devmem *m, const struct devmem_driver *driver, struct devmem_allocation *a)
{
	struct devmem_device *d = &m->devices[a->device];
	uint32_t granule;

	if (a->granules) {
		give_granules(d, driver, granule_of(d, a->address), a->granules);
	} else {
		granule = slabs_give(m, d, a);
		if (granule != DEVMEM_NONE)
			give_granules(d, driver, granule, 1);
	}
	a->state = 0;
	a->next = m->spare;
	m->spare = a;
}

/* Whatever lies there, live or pending. */
static struct devmem_allocation *allocation_at(const struct devmem_device *d, uint64_t address)
{
	const struct devmem_granule *g = &d->granules[granule_of(d, address)];

	if (g->state != DEVMEM_USED)
		return NULL;
	return g->slab ? slabs_find(g->slab, address) : g->allocation;
}

struct devmem_allocation *devmem_find(const struct devmem *m, uint64_t address)
{
	uint32_t device = devmem_part(address);
	struct devmem_allocation *a;

	if (device == DEVMEM_PARTS || !m->devices[device].ready)
		return NULL;
	a = allocation_at(&m->devices[device], address);
	return a && a->state == DEVMEM_LIVE && address - a->address < a->size ? a : NULL;
}

static void each_of_slab(const struct devmem_slab *s,
	void (*each)(void *argument, struct devmem_allocation *allocation), void *argument)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->objects[i])
			each(argument, s->objects[i]);
}

void devmem_each(struct devmem *m, uint32_t device,
	void (*each)(void *argument, struct devmem_allocation *allocation), void *argument)
{
	struct devmem_device *d = &m->devices[device];
	uint32_t step;

	for (uint32_t i = 0; i < d->top; i += step) {
		struct devmem_granule *g = &d->granules[i];

		step = 1;
		if (g->state != DEVMEM_USED)
			continue;
		if (g->slab) {
			each_of_slab(g->slab, each, argument);
		} else {
			step = g->allocation->granules;
			each(argument, g->allocation);
		}
	}
}

/* ---- memory as a whole ---- */

static void release_all(struct devmem_device *d, const struct devmem_driver *driver)
{
	uint32_t next;

	for (uint32_t i = 0; i < d->top; i = next) {
		next = i + 1;
		if (d->granules[i].state != DEVMEM_FREE)
			continue;
		next = i + d->granules[i].run;
		extents_release(d, driver, i);
	}
}

void devmem_trim(struct devmem *m, const struct devmem_driver *driver, uint32_t device)
{
	struct devmem_device *d = &m->devices[device];
	uint32_t granule;

	while ((granule = slabs_give_empty(m, d)) != DEVMEM_NONE)
		give_granules(d, driver, granule, 1);
	release_all(d, driver);
}

uint64_t devmem_cached(const struct devmem *m, uint32_t device)
{
	const struct devmem_device *d = &m->devices[device];

	return (d->free + d->empty) * DEVMEM_GRANULE;
}

/* Of granules from @start on that are mapped without a gap, how many. */
static uint32_t mapped_from(const struct devmem_device *d, uint32_t start)
{
	uint32_t i = start;

	while (i < d->top && d->granules[i].state != DEVMEM_UNMAPPED)
		i++;
	return i - start;
}

int devmem_set_peers(
	struct devmem *m, const struct devmem_driver *driver, uint32_t device, uint32_t peers)
{
	struct devmem_device *d = &m->devices[device];
	uint32_t gone = d->peers & ~peers, count;
	int r = 0;

	for (uint32_t i = 0; d->ready && i < d->top && !r; i += count + 1) {
		count = mapped_from(d, i);
		if (!count)
			continue;
		r = driver->access(devmem_address(d, i), count * DEVMEM_GRANULE, device, peers);
		for (uint32_t peer = 0; peer < DEVMEM_DEVICES && !r; peer++)
			if (gone >> peer & 1)
				r = driver->revoke(
					devmem_address(d, i), count * DEVMEM_GRANULE, peer);
	}
	if (!r)
		d->peers = peers;
	return r;
}

void devmem_forget(struct devmem *m, uint32_t device)
{
	release_all(&m->devices[device], NULL);
}

uint64_t devmem_needed(const struct devmem *m, uint32_t device)
{
	const struct devmem_device *d = &m->devices[device];

	return ((uint64_t)d->used + d->free) * DEVMEM_GRANULE;
}

/* Extents as they were, so that they go back to the driver as they would have; access for as
 * much as possible at a time, as that costs most. */
int devmem_remake(struct devmem *m, const struct devmem_driver *driver, uint32_t device)
{
	struct devmem_device *d = &m->devices[device];
	int r = driver->reserve(devmem_device_base(device), DEVMEM_DEVICE_SIZE);
	uint32_t count;

	for (uint32_t i = 0; i < d->top && !r; i += count + 1) {
		count = mapped_from(d, i);
		for (uint32_t j = i; j < i + count && !r; j += d->granules[j].length) {
			uint64_t size = d->granules[j].length * DEVMEM_GRANULE;

			r = driver->create(&d->granules[j].handle, device, size);
			if (!r)
				r = driver->map(
					devmem_address(d, j), size, d->granules[j].handle);
		}
		if (!r && count)
			r = driver->access(
				devmem_address(d, i), count * DEVMEM_GRANULE, device, d->peers);
	}
	return r;
}
