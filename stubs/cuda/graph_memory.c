/*
 * Memory that nodes of graphs allocate and free. The driver would give addresses that a new driver does not give
 * again, and that kernels of the graph have among their arguments. So the memory is ours, as all that the program
 * allocates (doc/gpu-memory.md): it gets its address when the node is added, as natively, and is there as long as
 * the graph or an executable of it, or until it is freed after these. The nodes: graph_memory_nodes.c; launches:
 * graph_memory_launch.c.
 */
#include "stubs/cuda/graph_memory.h"

#include "shared/raw.h"

#include "cuda.index.h"

/* CUgraphMem_attribute */
enum { USED, USED_HIGH, RESERVED, RESERVED_HIGH };

/* ---- the memory ---- */

static uint64_t sum(uint32_t device, int attribute)
{
	uint64_t bytes = 0;

	for (const struct graph_memory *m = CUDA_STATE->graph_memory; m; m = m->next)
		if (m->id && m->params.device == device && (attribute == RESERVED || m->live))
			bytes += m->params.size;
	return bytes;
}

/* Under the lock. */
STUB_HIDDEN void graph_memory_note_high(uint32_t device)
{
	uint64_t *high = CUDA_STATE->graph_memory_high[device];

	for (int i = 0; i < 2; i++) {
		uint64_t now = sum(device, i ? RESERVED : USED);

		if (now > high[i])
			high[i] = now;
	}
}

STUB_HIDDEN int graph_memory_is_supported(const struct graph_allocation *p)
{
	return p->kind == PINNED && !p->handle_types && p->location == LOCATION_DEVICE &&
	       p->device < CUDA_STATE->device_count && p->device < DEVMEM_DEVICES && p->size;
}

static int grant(struct memory_state *s, const struct graph_allocation *p)
{
	uint32_t peers = s->devmem.devices[p->device].peers;

	for (uint64_t i = 0; i < p->access_count; i++)
		if (p->access[i].location == LOCATION_DEVICE &&
			p->access[i].device < DEVMEM_DEVICES &&
			p->access[i].device != p->device)
			peers |= 1u << p->access[i].device;
	return peers == s->devmem.devices[p->device].peers
		       ? 0
		       : devmem_set_peers(&s->devmem, &memory_driver, p->device, peers);
}

/* Of the graph that the caller adds a node to: one reference. */
STUB_HIDDEN int graph_memory_new(const struct graph_allocation *p, struct graph_memory **memory)
{
	struct graph_memory *m = block_new(sizeof(*m));
	struct memory_state *s = m ? memory_lock(1) : NULL;
	struct devmem_allocation *a = NULL;
	uint64_t mask;
	int r;

	if (s && s->pending)
		memory_collect(s, 0);
	r = s ? memory_new(s, p->device, p->size, current_context(), &a)
	      : CUDA_ERROR_OUT_OF_MEMORY;

	if (!r) {
		a->flags = MEMORY_OF_GRAPH;
		r = grant(s, p);
		if (r)
			memory_give(s, a);
	}
	if (s)
		memory_unlock(s);
	if (r) {
		if (m)
			block_free(m, sizeof(*m));
		return r;
	}
	*m = (struct graph_memory){.params = *p, .id = a->id, .references = 1};
	m->params.address = a->address;
	m->params.access = NULL;
	m->params.access_count = 0;
	mask = state_lock();
	m->next = CUDA_STATE->graph_memory;
	CUDA_STATE->graph_memory = m;
	graph_memory_note_high(p->device);
	state_unlock(mask);
	*memory = m;
	return 0;
}

static int is_there(const struct memory_state *s, const struct graph_memory *m)
{
	const struct devmem_allocation *a = devmem_find(&s->devmem, m->params.address);

	return a && a->id == m->id;
}

/* With a reference, which the caller drops; NULL: there is none. */
STUB_HIDDEN struct graph_memory *graph_memory_find(uint64_t address)
{
	uint64_t mask = state_lock();
	struct graph_memory *m = CUDA_STATE->graph_memory;

	while (m && (!m->id || m->params.address != address))
		m = m->next;
	if (m)
		m->references++;
	state_unlock(mask);
	return m;
}

/* Give the memory of @m back: at once, or when what may be using it has come to an end. */
static void leave_memory(const struct graph_memory *m)
{
	struct memory_state *s = memory_lock(0);
	struct devmem_allocation *a = s && m->id && is_there(s, m)
					      ? devmem_find(&s->devmem, m->params.address)
					      : NULL;
	int r = 0;

	if (a)
		a->flags &= ~MEMORY_OF_GRAPH;
	if (a && m->mark && m->mark->event) {
		a->state = DEVMEM_PENDING;
		r = memory_give_behind(s, a, m->mark);
		if (r)
			a->state = DEVMEM_LIVE;
		else
			memory_collect(s, 0);
	} else if (a && m->launched && !m->mark) {
		r = -1;
	} else if (a) {
		memory_give(s, a);
	}
	if (s)
		memory_unlock(s);
	if (r)
		memory_free(m->params.address); /* waits; what cannot be freed now stays */
}

STUB_HIDDEN void graph_memory_drop(struct graph_memory *m)
{
	uint64_t mask = state_lock();
	struct graph_memory **at = &CUDA_STATE->graph_memory;
	int last = !--m->references;

	while (last && *at != m)
		at = &(*at)->next;
	if (last)
		*at = m->next;
	state_unlock(mask);
	if (!last)
		return;
	leave_memory(m);
	graph_mark_release(m->mark, cuda_call_down);
	block_free(m, sizeof(*m));
}

STUB_HIDDEN void graph_memory_set_mark(
	struct graph_memory *m, struct graph_mark *mark, driver_call *call)
{
	struct graph_mark *old;
	uint64_t mask;

	if (mark)
		graph_mark_hold(mark);
	mask = state_lock();
	old = m->mark;
	m->mark = mark;
	m->launched = 1;
	state_unlock(mask);
	graph_mark_release(old, call);
}

STUB_HIDDEN void graph_memory_refer(struct graph_memory *m)
{
	uint64_t mask = state_lock();

	m->references++;
	state_unlock(mask);
}

/* ---- freed by the program ---- */

/* Until nothing uses memory of the context that has it: where it is not known how far a stream has come. */
static int wait_for_users(const struct graph_memory *m)
{
	struct memory_state *s = memory_lock(0);
	const struct devmem_allocation *a =
		s ? devmem_find(&s->devmem, m->params.address) : NULL;
	void *context = a ? a->context : NULL;

	if (s)
		memory_unlock(s);
	return memory_synchronise(context);
}

/* The caller has a reference of its own. */
static int end_life(struct graph_memory *m)
{
	uint64_t mask = state_lock();
	int r = m->live ? 0 : CUDA_ERROR_INVALID_VALUE;

	m->references -= m->live != 0;
	m->live = 0;
	state_unlock(mask);
	return r;
}

/* As memory of pools, it is freed without waiting for what may still use it (cuda.h, cuMemFree). But a context in ruins,
 * and a capture, are told of. */
STUB_HIDDEN int graph_memory_freed(uint64_t address)
{
	struct graph_memory *m = graph_memory_find(address);
	int device, r = m && m->live ? 0 : CUDA_ERROR_INVALID_VALUE;
	void *context;

	if (!r)
		r = memory_context(&context, &device);
	if (!r)
		r = end_life(m);
	if (m)
		graph_memory_drop(m);
	return r;
}

STUB_HIDDEN int graph_memory_freed_behind(uint64_t address, void *stream)
{
	struct graph_memory *m = graph_memory_find(address);
	struct graph_mark *mark = NULL;
	int r = m && m->live ? 0 : CUDA_ERROR_INVALID_VALUE;

	if (!r) {
		mark = graph_mark_new(object_real(stream), cuda_call_down);
		r = mark ? 0 : wait_for_users(m);
	}
	if (!r)
		r = end_life(m);
	if (!r && mark)
		graph_memory_set_mark(m, mark, cuda_call_down);
	graph_mark_release(mark, cuda_call_down);
	if (m)
		graph_memory_drop(m);
	return r;
}

/* One whose memory is no more, with a reference; NULL: there is none. */
static struct graph_memory *take_gone(const struct memory_state *s)
{
	uint64_t mask = state_lock();
	struct graph_memory *m = CUDA_STATE->graph_memory;

	while (m && (!m->id || is_there(s, m)))
		m = m->next;
	if (m) {
		m->references += !m->live;
		m->live = 0;
		m->id = 0;
	}
	state_unlock(mask);
	return m;
}

STUB_HIDDEN void graph_memory_context_gone(void)
{
	struct graph_memory *m = NULL;
	struct memory_state *s;

	do {
		s = memory_lock(0);
		m = s ? take_gone(s) : NULL;
		if (s)
			memory_unlock(s);
		if (m)
			graph_memory_drop(m);
	} while (m);
}

/* ---- attributes ---- */

int body_cuDeviceGetGraphMemAttribute(int device, int attribute, uint64_t *value)
{
	int r = real_cuDeviceGetGraphMemAttribute(device, attribute, value);
	uint64_t mask;

	if (r || (unsigned)device >= CUDA_DEVICES || !state_usable())
		return r;
	mask = state_lock();
	if (attribute == USED || attribute == RESERVED)
		*value += sum(device, attribute);
	else if (attribute == USED_HIGH || attribute == RESERVED_HIGH)
		*value += CUDA_STATE->graph_memory_high[device][attribute == RESERVED_HIGH];
	state_unlock(mask);
	return 0;
}

/* They can be set to 0 only. */
int body_cuDeviceSetGraphMemAttribute(int device, int attribute, const uint64_t *value)
{
	int r = real_cuDeviceSetGraphMemAttribute(device, attribute, value);
	uint64_t mask;

	if (r || (unsigned)device >= CUDA_DEVICES || !state_usable())
		return r;
	mask = state_lock();
	CUDA_STATE->graph_memory_high[device][attribute == RESERVED_HIGH] =
		sum(device, attribute == RESERVED_HIGH ? RESERVED : USED);
	state_unlock(mask);
	return 0;
}
