/*
 * Memory that ranks share: a ring for each rank and peer. What comes out of it is held back for a moment, so that
 * messages of different peers and communicators overtake each other.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "library.h"

#define RING (16 << 10)

struct ring {
	_Atomic uint64_t written, read;
	char bytes[RING];
};

/* By receiver and sender. */
static struct ring (*rings)[RANKS_MAX];

struct parcel {
	struct parcel *next;
	struct frame frame;
	const char *payload;
	void *own; /* to be freed then */
	bool *sent;
};

static struct parcel *outbox[RANKS_MAX]; /* the oldest first */
static struct arrival *inbox[RANKS_MAX];

int wire_open(const char *path)
{
	size_t size = sizeof(struct ring) * RANKS_MAX * RANKS_MAX;
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	int flags = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;

	if (path && (fd < 0 || ftruncate(fd, size) < 0))
		return -1;
	rings = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (fd >= 0)
		close(fd);
	return rings == MAP_FAILED ? -1 : 0;
}

void wire_close(void)
{
	munmap(rings, sizeof(struct ring) * RANKS_MAX * RANKS_MAX);
	rings = NULL;
}

static void put(struct ring *r, uint64_t at, const void *bytes, size_t n)
{
	size_t first = RING - at % RING < n ? RING - at % RING : n;

	memcpy(r->bytes + at % RING, bytes, first);
	memcpy(r->bytes, (const char *)bytes + first, n - first);
}

static void get(struct ring *r, uint64_t at, void *bytes, size_t n)
{
	size_t first = RING - at % RING < n ? RING - at % RING : n;

	memcpy(bytes, r->bytes + at % RING, first);
	memcpy((char *)bytes + first, r->bytes, n - first);
}

/* ---- out ---- */

static struct parcel *add_parcel(int world, const struct frame *f)
{
	struct parcel *p = calloc(1, sizeof(*p)), **at = &outbox[world];

	if (!p)
		sim_fatal("no memory for a frame");
	p->frame = *f;
	while (*at)
		at = &(*at)->next;
	*at = p;
	return p;
}

void wire_send(int world, const struct frame *f, const void *payload, bool *sent)
{
	struct parcel *p = add_parcel(world, f);

	p->payload = payload;
	p->sent = sent;
}

void wire_send_own(int world, const struct frame *f, void *payload)
{
	struct parcel *p = add_parcel(world, f);

	p->payload = p->own = payload;
}

bool wire_is_empty(void)
{
	for (int i = 0; i < sim_size; i++)
		if (outbox[i])
			return false;
	return true;
}

static bool push(struct ring *r, const struct parcel *p)
{
	uint64_t at = atomic_load(&r->written);
	size_t n = sizeof(p->frame) + p->frame.bytes;

	if (at + n - atomic_load(&r->read) > RING)
		return false;
	put(r, at, &p->frame, sizeof(p->frame));
	if (p->frame.bytes)
		put(r, at + sizeof(p->frame), p->payload, p->frame.bytes);
	atomic_store(&r->written, at + n);
	return true;
}

static void push_all(int to)
{
	while (outbox[to] && push(&rings[to][sim_rank], outbox[to])) {
		struct parcel *p = outbox[to];

		outbox[to] = p->next;
		if (p->sent)
			*p->sent = true;
		free(p->own);
		free(p);
	}
}

/* ---- in ---- */

static bool is_message(const struct frame *f)
{
	return f->kind == EAGER || f->kind == REQUEST_TO_SEND;
}

static bool pull(int from)
{
	struct ring *r = &rings[sim_rank][from];
	uint64_t at = atomic_load(&r->read);
	struct arrival *a, **end = &inbox[from];
	struct frame f;

	if (at == atomic_load(&r->written))
		return false;
	get(r, at, &f, sizeof(f));
	a = malloc(sizeof(*a) + f.bytes);
	if (!a)
		sim_fatal("no memory for %u bytes", f.bytes);
	*a = (struct arrival){.from = from, .frame = f};
	get(r, at + sizeof(f), a->bytes, f.bytes);
	atomic_store(&r->read, at + sizeof(f) + f.bytes);
	if (is_message(&f)) {
		a->visible = sim_later();
		while (*end)
			end = &(*end)->next;
		*end = a;
	} else if (f.kind == OPERATION) {
		window_operation(a);
	} else {
		message_control(a);
		free(a);
	}
	return true;
}

/* An older one of its communicator is held back. */
static bool is_behind(const struct arrival *first, const struct arrival *a)
{
	for (; first != a; first = first->next)
		if (first->frame.context == a->frame.context)
			return true;
	return false;
}

static void deliver(int from)
{
	struct arrival **at = &inbox[from];

	while (*at) {
		struct arrival *a = *at;

		if (sim_now() < a->visible || is_behind(inbox[from], a)) {
			at = &a->next;
			continue;
		}
		*at = a->next;
		a->next = NULL;
		message_arrived(a);
	}
}

void wire_progress(void)
{
	unsigned first = sim_chance(sim_size);

	for (int i = 0; i < sim_size; i++) {
		int peer = (first + i) % sim_size;

		push_all(peer);
		for (int k = 0; k < 64 && pull(peer); k++)
			;
		deliver(peer);
	}
}
