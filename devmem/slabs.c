/*
 * Objects of a class are found by a bitmap, lowest address first. A class's slabs with room are
 * in a list; of slabs that become empty one is kept, so that a program which allocates and
 * frees one object again and again does not pay for a granule each time.
 */
#include "devmem/slabs.h"

/* Up to 4 KiB in units; then eight classes to a doubling; from 128 KiB on as many as a granule
 * can be divided into equal parts. */
#define FINE    8u
#define STEPPED (FINE + 5 * 8) /* 4 KiB to 128 KiB */
#define PARTS   15u            /* 2 MiB / 16 is the last that is stepped */

uint32_t devmem_class(uint64_t size)
{
	uint32_t units = (size + DEVMEM_UNIT - 1) / DEVMEM_UNIT, log;

	if (units <= FINE)
		return units - 1;
	if (units > 256)
		return STEPPED + PARTS - (uint32_t)(DEVMEM_GRANULE / (units * DEVMEM_UNIT));
	log = 31 - __builtin_clz(units - 1);
	return FINE + (log - 3) * 8 + ((units - 1) >> (log - 3) & 7);
}

uint32_t slabs_object_size(uint32_t class)
{
	uint32_t step;

	if (class < FINE)
		return (class + 1) * DEVMEM_UNIT;
	if (class >= STEPPED)
		return DEVMEM_GRANULE / (STEPPED + PARTS - class) / DEVMEM_UNIT * DEVMEM_UNIT;
	step = class - FINE;
	return ((8 + step % 8 + 1) << step / 8) * DEVMEM_UNIT;
}

static void link_slab(struct devmem_device *d, struct devmem_slab *s)
{
	struct devmem_slab **head = &d->slabs[s->class];

	s->previous = NULL;
	s->next = *head;
	if (*head)
		(*head)->previous = s;
	*head = s;
	s->listed = 1;
}

static void unlink_slab(struct devmem_device *d, struct devmem_slab *s)
{
	if (s->next)
		s->next->previous = s->previous;
	if (s->previous)
		s->previous->next = s->next;
	else
		d->slabs[s->class] = s->next;
	s->listed = 0;
}

static uint32_t bitmap_words(const struct devmem_slab *s)
{
	return (s->count + 63) / 64;
}

static struct devmem_slab *make_slab(const struct devmem_driver *driver, uint32_t class)
{
	uint32_t size = slabs_object_size(class), count = DEVMEM_GRANULE / size;
	struct devmem_slab *s =
		driver->memory(sizeof(*s) + (count + 63) / 64 * 8 + count * 8ul);

	if (!s)
		return NULL;
	s->class = class;
	s->object_size = size;
	s->count = count;
	s->bitmap = (uint64_t *)(s + 1);
	s->objects = (struct devmem_allocation **)(s->bitmap + bitmap_words(s));
	return s;
}

int slabs_add(struct devmem *m, const struct devmem_driver *driver, struct devmem_device *d,
	uint32_t granule, uint32_t class)
{
	struct devmem_slab *s = m->spare_slabs[class];

	if (s)
		m->spare_slabs[class] = s->next;
	else
		s = make_slab(driver, class);
	if (!s)
		return DEVMEM_NO_MEMORY;
	s->address = devmem_address(d, granule);
	s->hint = 0;
	d->granules[granule].slab = s;
	link_slab(d, s);
	d->empty++;
	return 0;
}

int slabs_take(struct devmem_device *d, struct devmem_allocation *a)
{
	struct devmem_slab *s = d->slabs[a->class];
	uint32_t i, bit;

	if (!s)
		return 0;
	for (i = s->hint; !~s->bitmap[i]; i++)
		;
	s->hint = i;
	bit = i * 64 + __builtin_ctzl(~s->bitmap[i]);
	s->bitmap[i] |= 1ul << bit % 64;
	s->objects[bit] = a;
	a->address = s->address + (uint64_t)bit * s->object_size;
	if (!s->used++)
		d->empty--;
	if (s->used == s->count)
		unlink_slab(d, s);
	return 1;
}

static uint32_t index_of(const struct devmem_slab *s, uint64_t address)
{
	return (uint32_t)(address - s->address) / s->object_size;
}

/* An empty slab is none any more. Returns its granule. */
static uint32_t retire_slab(struct devmem *m, struct devmem_device *d, struct devmem_slab *s)
{
	uint32_t granule = (s->address - devmem_device_base(d->number)) / DEVMEM_GRANULE;

	unlink_slab(d, s);
	d->empty--;
	s->next = m->spare_slabs[s->class];
	m->spare_slabs[s->class] = s;
	d->granules[granule].slab = NULL;
	return granule;
}

uint32_t slabs_give_empty(struct devmem *m, struct devmem_device *d)
{
	for (uint32_t class = 0; class < DEVMEM_CLASSES; class ++)
		for (struct devmem_slab *s = d->slabs[class]; s; s = s->next)
			if (!s->used)
				return retire_slab(m, d, s);
	return DEVMEM_NONE;
}

uint32_t slabs_give(struct devmem *m, struct devmem_device *d, struct devmem_allocation *a)
{
	uint32_t granule = (a->address - devmem_device_base(d->number)) / DEVMEM_GRANULE;
	struct devmem_slab *s = d->granules[granule].slab;
	uint32_t bit = index_of(s, a->address);

	s->bitmap[bit / 64] &= ~(1ul << bit % 64);
	s->objects[bit] = NULL;
	if (bit / 64 < s->hint)
		s->hint = bit / 64;
	if (!s->listed)
		link_slab(d, s);
	if (--s->used)
		return DEVMEM_NONE;
	d->empty++;
	if (!s->next && !s->previous)
		return DEVMEM_NONE;
	return retire_slab(m, d, s);
}

struct devmem_allocation *slabs_find(const struct devmem_slab *s, uint64_t address)
{
	uint32_t i = index_of(s, address);

	return i < s->count ? s->objects[i] : NULL; /* a rest may be too small for an object */
}
