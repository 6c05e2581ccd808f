/*
 * Managed memory: it is the driver's. Recorded are the allocations, in their order, what was
 * advised of them (the last of each kind for a range), and which stream they are attached to.
 */
#include "stubs/cuda/memory.h"
#include "stubs/cuda/objects.h"

int body_cuMemAllocManaged(uint64_t *address, size_t size, unsigned flags)
{
	struct memory_managed *record, **end;
	struct memory_state *s;
	void *context = NULL;
	int device = 0, r;

	do
		r = real_cuMemAllocManaged(address, size, flags);
	while (r == CUDA_ERROR_OUT_OF_MEMORY && snapshot_wait());

	if (r)
		return r;
	/* There is one: it has just allocated. */
	real_cuCtxGetCurrent(&context);
	real_cuCtxGetDevice(&device);
	s = memory_lock(1);
	record = NULL;
	if (s)
		record = MEMORY_RECORD(s->spare_managed);
	if (record) {
		record->address = *address;
		record->size = size;
		record->flags = flags;
		record->context = context;
		record->device = device;
		record->sequence = object_sequence();
		for (end = &s->managed; *end; end = &(*end)->next)
			;
		*end = record;
		s->live++;
	}
	if (s)
		memory_unlock(s);
	if (record)
		return 0;
	real_cuMemFree_v2(*address); /* allocated above */
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- no more ---- */

static void drop_managed(struct memory_state *s, struct memory_managed **at)
{
	struct memory_managed *m = *at;
	struct memory_advice *a;

	while ((a = m->advice)) {
		m->advice = a->next;
		a->next = s->spare_advice;
		s->spare_advice = a;
	}
	*at = m->next;
	m->next = s->spare_managed;
	s->spare_managed = m;
	s->live--;
}

void memory_managed_freed(uint64_t address)
{
	struct memory_state *s = memory_lock(0);
	struct memory_managed **p;

	if (!s)
		return;
	for (p = &s->managed; *p && (*p)->address != address; p = &(*p)->next)
		;
	if (*p)
		drop_managed(s, p);
	memory_unlock(s);
}

static int is_attached(const struct memory_managed *m)
{
	return m->attached_flags &&
	       (!in_records_window((uintptr_t)m->stream) || !is_dead(object_real(m->stream)));
}

void memory_managed_gone(struct memory_state *s, const void *context)
{
	struct memory_managed **p = &s->managed, *m;

	while ((m = *p)) {
		if (m->context == context) {
			drop_managed(s, p);
			continue;
		}
		if (!is_attached(m) || m->attached_in == context)
			m->attached_flags = 0;
		p = &m->next;
	}
}

/* What was attached to it is as it was at first. */
void memory_managed_detached(struct memory_state *s, const void *stream)
{
	for (struct memory_managed *m = s->managed; m; m = m->next)
		if (m->stream == stream)
			m->attached_flags = 0;
}

/* ---- advice ---- */

static int is_alike(const struct memory_advice *a, const struct memory_advice *b)
{
	return a->address == b->address && a->size == b->size && a->advice == b->advice &&
	       a->with_location == b->with_location && a->where == b->where;
}

/* The part of @given that is about @m, last in its list. 0 or -1. */
static int add_advice(
	struct memory_state *s, struct memory_managed *m, const struct memory_advice *given)
{
	uint64_t start = given->address > m->address ? given->address : m->address;
	uint64_t end = given->address + given->size, m_end = m->address + m->size;
	struct memory_advice part = *given, *a = NULL, **at = &m->advice;

	if (end > m_end)
		end = m_end;
	if (start >= end)
		return 0;
	part.address = start;
	part.size = end - start;
	while (*at) {
		if (!is_alike(*at, &part)) {
			at = &(*at)->next;
			continue;
		}
		a = *at;
		*at = a->next;
	}
	if (!a)
		a = MEMORY_RECORD(s->spare_advice);
	if (!a)
		return -1;
	*a = part;
	a->next = NULL;
	*at = a;
	return 0;
}

/* Of other memory (the host's own, variables of modules) it is not kept: it changes nothing but
 * how long things take. */
static int note_advice(int r, const struct memory_advice *given)
{
	struct memory_state *s = r ? NULL : memory_lock(0);

	if (!s)
		return r;
	for (struct memory_managed *m = s->managed; m && !r; m = m->next)
		r = add_advice(s, m, given);
	memory_unlock(s);
	return r ? CUDA_ERROR_OUT_OF_MEMORY : 0;
}

int body_cuMemAdvise(uint64_t address, size_t size, int advice, int device)
{
	const struct memory_advice given = {
		.address = address, .size = size, .advice = advice, .where = (unsigned)device};

	return note_advice(real_cuMemAdvise(address, size, advice, device), &given);
}

int body_cuMemAdvise_v2(uint64_t address, size_t size, int advice, uint64_t location)
{
	const struct memory_advice given = {.address = address,
		.size = size,
		.advice = advice,
		.with_location = 1,
		.where = location};

	return note_advice(real_cuMemAdvise_v2(address, size, advice, location), &given);
}

/* ---- streams ---- */

/* Each thread's own default stream is known by nothing that would mean it after a restart. */
static int note_attached(int r, void *stream, uint64_t address, unsigned flags)
{
	void *context = r ? NULL : current_context();
	struct memory_state *s = r ? NULL : memory_lock(0);
	struct memory_managed *m;

	if (!s)
		return r;
	for (m = s->managed; m && address - m->address >= m->size; m = m->next)
		;
	if (m) {
		m->stream = stream;
		m->attached_in = context;
		m->attached_flags = flags;
	}
	memory_unlock(s);
	return m && stream == STREAM_PER_THREAD && flags == ATTACH_SINGLE
		       ? setting_lost(context, CUDA_SETTING_STREAM)
		       : 0;
}

int body_cuStreamAttachMemAsync(void *stream, uint64_t address, size_t size, unsigned flags)
{
	return note_attached(real_cuStreamAttachMemAsync(stream, address, size, flags), stream,
		address, flags);
}

int body_cuStreamAttachMemAsync_ptsz(
	void *stream, uint64_t address, size_t size, unsigned flags)
{
	return note_attached(real_cuStreamAttachMemAsync_ptsz(stream, address, size, flags),
		stream ? stream : STREAM_PER_THREAD, address, flags);
}
