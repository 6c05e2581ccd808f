/*
 * The program's own address ranges and physical memory (cuMemAddressReserve, cuMemCreate,
 * cuMemMap and so on): passed on, and recorded so that the same memory can be put at the same
 * addresses again. Addresses that the program leaves to the driver are chosen here, where
 * nothing else will be in the way after a restart.
 */
#include "shared/raw.h"
#include "stubs/cuda/memory.h"
#include "stubs/cuda/objects.h"
#include "stubs/cuda/sharing.h"

/* ---- addresses ---- */

/* A free range in DEVMEM_RESERVED, the lowest; 0: none. */
static uint64_t choose_range(const struct memory_state *s, uint64_t size, uint64_t align)
{
	uint64_t at = (DEVMEM_RESERVED + align - 1) & ~(align - 1);

	for (const struct memory_reservation *r = s->reservations; r; r = r->next) {
		if (r->address + r->taken <= at)
			continue;
		if (r->address >= at + size)
			break;
		at = (r->address + r->taken + align - 1) & ~(align - 1);
	}
	return at + size > DEVMEM_RESERVED + DEVMEM_RESERVED_SIZE || at + size < at ? 0 : at;
}

static void insert_reservation(struct memory_state *s, struct memory_reservation *r)
{
	struct memory_reservation **p = &s->reservations;

	while (*p && (*p)->address < r->address)
		p = &(*p)->next;
	r->next = *p;
	*p = r;
}

/* Large ranges begin at large powers of two, which the driver grants most readily. */
static uint64_t range_alignment(uint64_t size, uint64_t align)
{
	uint64_t power = DEVMEM_GRANULE;

	while (power < size && power < DEVMEM_DEVICE_SIZE)
		power *= 2;
	return align > power ? align : power;
}

/* Addresses that the driver (580) has left over of its own go first, whatever is asked for,
 * and whether it has them again after a restart nobody knows: while those are taken, it grants
 * what is asked for. */
#define TRIES 1024

static int reserve_at(
	uint64_t *address, size_t size, size_t align, uint64_t wanted, uint64_t flags)
{
	uint64_t others[TRIES];
	unsigned n = 0;
	int r;

	for (;;) {
		r = real_cuMemAddressReserve(address, size, align, wanted, flags);
		if (r || *address == wanted || !in_lower_window(*address) || n == TRIES)
			break;
		others[n++] = *address;
	}
	while (n)
		real_cuMemAddressFree(others[--n], size); /* just made: goes */
	return r;
}

/* At an address of ours; should the driver not like that, at one of its own, which is recorded
 * then as if the program had asked for it. */
static int reserve_anywhere(
	struct memory_state *s, uint64_t *address, size_t size, size_t align, uint64_t flags)
{
	uint64_t at = 0;
	int r;

	if (size && !(align & (align - 1)))
		at = choose_range(s, size, range_alignment(size, align));
	r = at ? reserve_at(address, size, align, at, flags) : 0;
	if (at && !r && *address == at)
		return 0;
	if (at && !r)
		real_cuMemAddressFree(*address, size); /* just made: goes */
	return real_cuMemAddressReserve(address, size, align, 0, flags);
}

/* At the address that the program asks for, or, as it would be without us, elsewhere. */
static int reserve_wanted(struct memory_state *s, uint64_t *address, size_t size, size_t align,
	uint64_t wanted, uint64_t flags)
{
	int r = reserve_at(address, size, align, wanted, flags);

	if (r || !in_lower_window(*address))
		return r;
	real_cuMemAddressFree(*address, size); /* just made: goes */
	return reserve_anywhere(s, address, size, align, flags);
}

static int reserve_range(struct memory_state *s, uint64_t *address, size_t size, size_t align,
	uint64_t wanted, uint64_t flags)
{
	struct memory_reservation *record = MEMORY_RECORD(s->spare_reservations);
	size_t taken =
		size % DEVMEM_GRANULE ? size : (size + MEMORY_STEP - 1) & ~(MEMORY_STEP - 1);
	int r;

	if (!record)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = wanted && !in_arrays_window(wanted)
		    ? reserve_wanted(s, address, taken, align, wanted, flags)
		    : reserve_anywhere(s, address, taken, align, flags);
	record->address = r ? 0 : *address;
	record->size = size;
	record->taken = taken;
	if (r) {
		record->next = s->spare_reservations;
		s->spare_reservations = record;
	} else {
		insert_reservation(s, record);
	}
	return r;
}

int body_cuMemAddressReserve(
	uint64_t *address, size_t size, size_t align, uint64_t wanted, uint64_t flags)
{
	struct memory_state *s;
	int count, r = real_cuDeviceGetCount(&count);

	if (r)
		return r;
	if (!address)
		return CUDA_ERROR_INVALID_VALUE;
	s = memory_lock(1);
	if (!s)
		return CUDA_ERROR_UNKNOWN;
	r = reserve_range(s, address, size, align, wanted, flags);
	memory_unlock(s);
	return r;
}

static struct memory_reservation **find_reservation(
	struct memory_state *s, uint64_t address, size_t size)
{
	struct memory_reservation **p = &s->reservations;

	while (*p && ((*p)->address != address || (*p)->size != size))
		p = &(*p)->next;
	return p;
}

static int free_range(struct memory_state *s, uint64_t address, size_t size)
{
	struct memory_reservation **p = find_reservation(s, address, size), *record = *p;
	int r = real_cuMemAddressFree(address, record ? record->taken : size);

	if (!r && record) {
		*p = record->next;
		record->next = s->spare_reservations;
		s->spare_reservations = record;
	}
	return r;
}

int body_cuMemAddressFree(uint64_t address, size_t size)
{
	struct memory_state *s = memory_lock(0);
	int r;

	if (!s)
		return real_cuMemAddressFree(address, size);
	r = free_range(s, address, size);
	memory_unlock(s);
	return r;
}

int memory_reserve(struct memory_state *s, uint64_t *address, uint64_t size)
{
	return reserve_range(s, address, size, 0, 0, 0);
}

void memory_unreserve(struct memory_state *s, uint64_t address, uint64_t size)
{
	free_range(s, address, size); /* ours: it goes */
}

/* ---- physical memory ---- */

static struct memory_physical *physical_of(uint64_t handle)
{
	return handle && in_records_window(handle) ? (struct memory_physical *)handle : NULL;
}

static uint64_t real_handle(uint64_t handle)
{
	struct memory_physical *p = physical_of(handle);

	return p ? p->real : handle;
}

static struct memory_physical *add_physical(struct memory_state *s, uint64_t real)
{
	struct memory_physical *p = MEMORY_RECORD(s->spare_physicals);

	if (!p)
		return NULL;
	p->real = real;
	p->references = 1;
	p->id = object_sequence();
	p->next = s->physicals;
	if (p->next)
		p->next->previous = p;
	s->physicals = p;
	s->live++;
	return p;
}

/* Neither a handle nor a mapping is left, maybe. */
static void put_physical(struct memory_state *s, struct memory_physical *p)
{
	if (p->references || p->mappings)
		return;
	if (p->next)
		p->next->previous = p->previous;
	if (p->previous)
		p->previous->next = p->next;
	else
		s->physicals = p->next;
	s->live--;
	p->next = s->spare_physicals;
	s->spare_physicals = p;
}

/* A record for the handle @real that the driver has just given. NULL for @properties: it is not
 * to be made again. */
static int keep_physical(uint64_t *handle, uint64_t real, size_t size, uint64_t flags,
	const struct memory_properties *properties)
{
	struct memory_state *s = memory_lock(1);
	struct memory_physical *p = s ? add_physical(s, real) : NULL;

	if (p) {
		p->size = size;
		p->flags = flags;
		p->foreign = !properties;
		if (properties)
			p->properties = *properties;
		*handle = (uint64_t)p;
	}
	if (s)
		memory_unlock(s);
	if (p)
		return 0;
	real_cuMemRelease(real); /* just made: goes */
	return CUDA_ERROR_OUT_OF_MEMORY;
}

int body_cuMemCreate(uint64_t *handle, size_t size, const struct memory_properties *properties,
	uint64_t flags)
{
	struct memory_state *s;
	uint64_t real = 0;
	int r;

	if (!handle || !properties)
		return CUDA_ERROR_INVALID_VALUE;
	r = real_cuMemCreate(&real, size, properties, flags);
	/* What is kept for later allocations goes first. */
	if (r == DEVMEM_NO_MEMORY && properties->location < DEVMEM_DEVICES) {
		s = memory_lock(0);
		if (s && s->devmem.devices[properties->location].ready)
			devmem_trim(&s->devmem, &memory_driver, properties->location);
		if (s)
			memory_unlock(s);
		r = snapshot_create(&real, size, properties, flags);
	}
	return r ? r : keep_physical(handle, real, size, flags, properties);
}

int body_cuMemRelease(uint64_t handle)
{
	struct memory_physical *p = physical_of(handle);
	struct memory_state *s = p ? memory_lock(0) : NULL;
	int r = CUDA_ERROR_INVALID_VALUE;

	if (!s)
		return p ? r : real_cuMemRelease(handle);
	if (p->references) {
		r = real_cuMemRelease(p->real);
		if (!r) {
			p->references--;
			put_physical(s, p);
		}
	}
	memory_unlock(s);
	return r;
}

/* A file descriptor that stands for @p, which may be of another process itself. */
static int export_file(int *fd, const struct memory_physical *p)
{
	struct share_handle handle = p->from;
	int r = handle.magic ? 0 : share_make(&handle, SHARE_PHYSICAL, (uint64_t)p, p->id);

	return r ? r : share_to_file(&handle, fd);
}

int body_cuMemExportToShareableHandle(void *out, uint64_t handle, int type, uint64_t flags)
{
	struct memory_physical *p = physical_of(handle);
	int r;

	if (out && p && !p->foreign && type == HANDLE_TYPE_FILE && !flags &&
		p->properties.handle_types & HANDLE_TYPE_FILE)
		return export_file(out, p);
	r = real_cuMemExportToShareableHandle(out, real_handle(handle), type, flags);
	if (!r && p)
		p->foreign = 1;
	return r;
}

/* What a descriptor stands for that a process of the program has exported. */
static int import_shared(uint64_t *handle, const struct share_handle *from)
{
	struct memory_properties properties;
	struct share_reply reply;
	uint64_t real = 0;
	int r = share_import("cuMemImportFromShareableHandle", from, 0, &reply, &real);

	if (r)
		return r;
	raw_copy(&properties, reply.properties, sizeof(properties));
	if (properties.location_type == LOCATION_DEVICE &&
		share_device(&reply) < DEVMEM_DEVICES)
		properties.location = share_device(&reply);
	r = keep_physical(handle, real, reply.size, reply.created, &properties);
	if (!r)
		physical_of(*handle)->from = *from;
	return r;
}

int body_cuMemImportFromShareableHandle(uint64_t *handle, void *from, int type)
{
	struct share_handle shared;
	uint64_t real = 0;
	int r;

	if (handle && type == HANDLE_TYPE_FILE &&
		!share_from_file(from, SHARE_PHYSICAL, &shared))
		return import_shared(handle, &shared);
	r = handle ? real_cuMemImportFromShareableHandle(&real, from, type)
		   : CUDA_ERROR_INVALID_VALUE;
	return r ? r : keep_physical(handle, real, 0, 0, NULL);
}

int body_cuMemGetAllocationPropertiesFromHandle(
	struct memory_properties *properties, uint64_t handle)
{
	return real_cuMemGetAllocationPropertiesFromHandle(properties, real_handle(handle));
}

/* ---- mappings ---- */

static struct memory_mapping *mapping_at(struct memory_state *s, uint64_t address)
{
	struct memory_mapping *m = s->mappings;

	while (m && address - m->address >= m->size)
		m = m->next;
	return m;
}

static void insert_mapping(struct memory_state *s, struct memory_mapping *m)
{
	struct memory_mapping **p = &s->mappings;

	while (*p && (*p)->address < m->address)
		p = &(*p)->next;
	m->next = *p;
	*p = m;
}

static int map_physical(struct memory_state *s, struct memory_mapping *m, uint64_t handle)
{
	int r = real_cuMemMap(m->address, m->size, m->offset, real_handle(handle), m->flags);

	if (r) {
		m->next = s->spare_mappings;
		s->spare_mappings = m;
		return r;
	}
	m->physical = physical_of(handle);
	if (m->physical)
		m->physical->mappings++;
	insert_mapping(s, m);
	s->live++;
	return 0;
}

int body_cuMemMap(uint64_t address, size_t size, size_t offset, uint64_t handle, uint64_t flags)
{
	struct memory_state *s = memory_lock(1);
	struct memory_mapping *m = NULL;
	int r = s ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN;

	if (s)
		m = MEMORY_RECORD(s->spare_mappings);
	if (m) {
		m->address = address;
		m->size = size;
		m->offset = offset;
		m->flags = flags;
		r = map_physical(s, m, handle);
	}
	if (s)
		memory_unlock(s);
	return r;
}

static void drop_mappings(struct memory_state *s, uint64_t address, uint64_t size)
{
	struct memory_mapping **p = &s->mappings, *m;

	while ((m = *p)) {
		if (m->address < address || m->address - address >= size) {
			p = &m->next;
			continue;
		}
		*p = m->next;
		if (m->physical) {
			m->physical->mappings--;
			put_physical(s, m->physical);
		}
		s->live--;
		m->next = s->spare_mappings;
		s->spare_mappings = m;
	}
}

int body_cuMemUnmap(uint64_t address, size_t size)
{
	int r = real_cuMemUnmap(address, size);
	struct memory_state *s = r ? NULL : memory_lock(0);

	if (s) {
		drop_mappings(s, address, size);
		memory_unlock(s);
	}
	return r;
}

/* One location's access to @m from now on. Where it does not fit, the memory cannot
 * be made again. */
static void set_access(struct memory_mapping *m, const struct memory_access *access)
{
	uint32_t i = 0;

	while (i < m->access_count && (m->access[i].location_type != access->location_type ||
					      m->access[i].location != access->location))
		i++;
	if (i == MEMORY_ACCESSES) {
		if (m->physical)
			m->physical->foreign = 1;
		return;
	}
	m->access[i] = *access;
	if (i == m->access_count)
		m->access_count++;
}

int body_cuMemSetAccess(
	uint64_t address, size_t size, const struct memory_access *access, size_t count)
{
	int r = real_cuMemSetAccess(address, size, access, count);
	struct memory_state *s = r ? NULL : memory_lock(0);

	if (!s)
		return r;
	for (struct memory_mapping *m = s->mappings; m; m = m->next)
		for (size_t i = 0; m->address - address < size && i < count; i++)
			set_access(m, &access[i]);
	memory_unlock(s);
	return 0;
}

/* The program's own memory, or memory that we gave it, which it may then keep from being freed:
 * that cannot be made again, nor is it ours to release any more. */
int body_cuMemRetainAllocationHandle(uint64_t *handle, void *address)
{
	struct memory_mapping *m = NULL;
	struct memory_state *s;
	uint64_t real = 0;
	int r = handle ? real_cuMemRetainAllocationHandle(&real, address)
		       : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	s = memory_lock(0);
	if (s) {
		m = mapping_at(s, (uint64_t)address);
		if (m && m->physical) {
			m->physical->references++;
			m->physical->real = real;
			*handle = (uint64_t)m->physical;
		}
		memory_unlock(s);
	}
	return m && m->physical ? 0 : keep_physical(handle, real, 0, 0, NULL);
}
