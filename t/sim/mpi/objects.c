/* Handles, which have other values in each process; communicators, groups and infos. */
#include <stdlib.h>
#include <string.h>

#include "library.h"

#define SLOTS     4096 /* a power of two */
#define COMMS_MAX 64
#define TAG_UB    32767 /* as few as the standard allows */

/* ---- handles ---- */

static struct slot {
	int handle; /* 0: free */
	void *object;
} slots[SLOTS];
static unsigned counts[16];

/* MPICH's have the kind in bits 26 to 29, and never bit 25. Slots are taken in any order; a handle that was given
 * back is often given out again. */
int handle_make(enum kind kind, void *object)
{
	static const int fresh_of = 4;
	static int last[16];
	unsigned slot = (unsigned)last[kind] % SLOTS;
	int handle = last[kind];

	if (!handle || slots[slot].handle || !sim_chance(fresh_of)) {
		slot = sim_chance(SLOTS);
		while (slots[slot].handle)
			slot = (slot + 1) % SLOTS;
		handle = (int)(0x80000000u | (unsigned)kind << 26 | sim_chance(1 << 12) << 12 |
			       slot);
	}
	if (++counts[kind] >= SLOTS / 2)
		sim_fatal("too many objects of kind %d", kind);
	slots[slot] = (struct slot){handle, object};
	last[kind] = handle;
	return handle;
}

static int slot_of(enum kind kind, int handle)
{
	unsigned slot = (unsigned)handle % SLOTS;

	return handle < 0 && ((unsigned)handle >> 26 & 15) == kind &&
			       slots[slot].handle == handle
		       ? (int)slot
		       : -1;
}

void *handle_find(enum kind kind, int handle)
{
	int slot = slot_of(kind, handle);

	return slot < 0 ? NULL : slots[slot].object;
}

void handle_drop(enum kind kind, int handle)
{
	int slot = slot_of(kind, handle);

	if (slot < 0)
		sim_fatal(
			"a handle 0x%x of kind %d is dropped that there is not", handle, kind);
	slots[slot].handle = 0;
	counts[kind]--;
}

unsigned handle_count(enum kind kind)
{
	return counts[kind];
}

bool handle_left(enum kind kind)
{
	const char *requests = getenv("MPICH_SIM_REQUESTS");

	if (kind == COMM)
		return counts[COMM] < COMMS_MAX;
	return kind != REQUEST ||
	       counts[REQUEST] < (requests ? (unsigned)atoi(requests) : 1000);
}

/* ---- communicators ---- */

static struct comm world, self;

void comm_make_predefined(void)
{
	world = (struct comm){.handle = MPI_COMM_WORLD,
		.context = 1,
		.rank = sim_rank,
		.group.size = sim_size,
		.handler = MPI_ERRORS_ARE_FATAL,
		.name = "MPI_COMM_WORLD"};
	for (int i = 0; i < sim_size; i++)
		world.group.world[i] = i;
	self = (struct comm){.handle = MPI_COMM_SELF,
		.context = 2,
		.group = {1, {sim_rank}},
		.handler = MPI_ERRORS_ARE_FATAL,
		.name = "MPI_COMM_SELF"};
}

struct comm *comm_find(MPI_Comm comm)
{
	if (comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF)
		return comm == MPI_COMM_WORLD ? &world : &self;
	return handle_find(COMM, comm);
}

int comm_failed(struct comm *comm, int error)
{
	if (error && (comm ? comm : &world)->handler == MPI_ERRORS_ARE_FATAL)
		sim_fatal("error %d on a communicator whose errors are fatal", error);
	return error;
}

static struct comm *comm_make(
	const struct group *group, uint64_t context, MPI_Errhandler handler)
{
	struct comm *c = calloc(1, sizeof(*c));

	if (!c)
		sim_fatal("no memory for a communicator");
	c->group = *group;
	c->context = context;
	c->handler = handler;
	while (c->group.world[c->rank] != sim_rank)
		c->rank++;
	c->handle = handle_make(COMM, c);
	return c;
}

/* The same in all members of what is made, and of no other: bit 63 is left for collective calls. */
static uint64_t context_of(uint64_t of, uint64_t a, uint64_t b)
{
	const uint64_t words[] = {of, a, b};
	uint64_t hash = 0xcbf29ce484222325u;

	for (int i = 0; i < 3; i++)
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u, hash ^= hash >> 29;
	return hash >> 1 | 4;
}

static const struct group *group_find(MPI_Group group)
{
	static const struct group empty;

	return group == MPI_GROUP_EMPTY ? &empty : handle_find(GROUP, group);
}

static int place_in(const struct group *g, int world)
{
	for (int i = 0; i < g->size; i++)
		if (g->world[i] == world)
			return i;
	return MPI_UNDEFINED;
}

static int no_room(struct comm *comm)
{
	return comm_failed(comm, MPI_ERR_OTHER);
}

struct part {
	int color, key, rank;
};

static int by_key(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : x->rank - y->rank;
}

static int split(struct comm *comm, int color, int key, MPI_Comm *made)
{
	struct part own = {color, key, comm->rank}, all[RANKS_MAX] = {0};
	struct group group = {0};
	uint64_t number = comm->made++;
	int r;

	*made = MPI_COMM_NULL;
	r = collective_gather_all(comm, &own, all, sizeof(own));
	if (r || color == MPI_UNDEFINED)
		return r;
	if (!handle_left(COMM))
		return no_room(comm);
	qsort(all, comm->group.size, sizeof(*all), by_key);
	for (int i = 0; i < comm->group.size; i++)
		if (all[i].color == color)
			group.world[group.size++] = comm->group.world[all[i].rank];
	*made = comm_make(&group, context_of(comm->context, number, color), comm->handler)
			->handle;
	return 0;
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made)
{
	struct comm *c;
	int r;

	sim_lock();
	c = comm_find(comm);
	r = c ? split(c, color, key, made) : comm_failed(NULL, MPI_ERR_COMM);
	sim_unlock();
	return r;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made)
{
	int rank, r = MPI_Comm_rank(comm, &rank);

	return r ? r : MPI_Comm_split(comm, 0, rank, made);
}

/* Of the members in @group, in their order there. */
static int create(struct comm *comm, const struct group *group, MPI_Comm *made)
{
	uint64_t number = comm->made++;
	bool here = place_in(group, sim_rank) >= 0;
	int r = collective_barrier(comm);

	*made = MPI_COMM_NULL;
	if (r || !here)
		return r;
	if (!handle_left(COMM))
		return no_room(comm);
	*made = comm_make(group, context_of(comm->context, number, 1ul << 40), comm->handler)
			->handle;
	return 0;
}

int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *made)
{
	struct comm *c;
	const struct group *g;
	int r;

	sim_lock();
	c = comm_find(comm);
	g = group_find(group);
	r = c && g ? create(c, g, made) : comm_failed(NULL, MPI_ERR_GROUP);
	sim_unlock();
	return r;
}

static int compare(const struct comm *a, const struct comm *b)
{
	if (a == b)
		return MPI_IDENT;
	if (a->group.size == b->group.size &&
		!memcmp(a->group.world, b->group.world, a->group.size * sizeof(int)))
		return MPI_CONGRUENT;
	for (int i = 0; i < a->group.size; i++)
		if (place_in(&b->group, a->group.world[i]) < 0)
			return MPI_UNEQUAL;
	return a->group.size == b->group.size ? MPI_SIMILAR : MPI_UNEQUAL;
}

int MPI_Comm_compare(MPI_Comm a, MPI_Comm b, int *result)
{
	struct comm *x, *y;

	sim_lock();
	x = comm_find(a);
	y = comm_find(b);
	if (x && y)
		*result = compare(x, y);
	sim_unlock();
	return x && y ? 0 : comm_failed(NULL, MPI_ERR_COMM);
}

/* The first member tells the others which one it is. */
static int create_group(struct comm *comm, const struct group *group, int tag, MPI_Comm *made)
{
	static uint64_t number;
	uint64_t context = context_of(sim_rank + 3, ++number, sim_now());
	struct request *r;
	int error = 0;

	if (tag < 0 || tag > TAG_UB)
		return comm_failed(comm, MPI_ERR_TAG);
	if (!handle_left(COMM))
		return no_room(comm);
	for (int i = 1; i < group->size && !error; i++) {
		bool first = group->world[0] == sim_rank;
		int peer = 0;

		if (!first && group->world[i] != sim_rank)
			continue;
		while (comm->group.world[peer] != group->world[first ? i : 0])
			peer++;
		r = first ? message_send(comm, comm->context | 1ul << 62, &context,
				    sizeof(context), peer, tag)
			  : message_receive(comm, comm->context | 1ul << 62, &context,
				    sizeof(context), peer, tag);
		while (!r->done)
			sim_pause();
		error = r->error;
		request_drop(r);
	}
	if (!error)
		*made = comm_make(group, context, comm->handler)->handle;
	return error;
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made)
{
	struct comm *c;
	struct group *g;
	int r;

	sim_lock();
	c = comm_find(comm);
	g = handle_find(GROUP, group);
	r = c && g && g->size ? create_group(c, g, tag, made)
			      : comm_failed(NULL, MPI_ERR_GROUP);
	sim_unlock();
	return r;
}

int MPI_Comm_free(MPI_Comm *comm)
{
	struct comm *c;

	sim_lock();
	c = handle_find(COMM, *comm);
	if (c) {
		handle_drop(COMM, *comm);
		free(c);
		*comm = MPI_COMM_NULL;
	}
	sim_unlock();
	return c ? 0 : comm_failed(NULL, MPI_ERR_COMM);
}

/* ---- what is asked of them ---- */

#define OF_COMM(name, parameters, ...)                                                         \
	int name parameters                                                                    \
	{                                                                                      \
		struct comm *c;                                                                \
                                                                                               \
		sim_lock();                                                                    \
		c = comm_find(comm);                                                           \
		if (c)                                                                         \
			__VA_ARGS__;                                                           \
		sim_unlock();                                                                  \
		return c ? 0 : comm_failed(NULL, MPI_ERR_COMM);                                \
	}

static MPI_Group group_make(const struct group *of)
{
	struct group *g = malloc(sizeof(*g));

	if (!g)
		sim_fatal("no memory for a group");
	*g = *of;
	return handle_make(GROUP, g);
}

static MPI_Info info_make(void)
{
	static int none;

	return handle_make(INFO, &none);
}

static void get_attribute(int key, void *value, int *flag)
{
	static int tag_ub = TAG_UB;

	*flag = key == MPI_TAG_UB;
	if (*flag)
		*(int **)value = &tag_ub;
}

OF_COMM(MPI_Comm_rank, (MPI_Comm comm, int *rank), *rank = c->rank)
OF_COMM(MPI_Comm_size, (MPI_Comm comm, int *size), *size = c->group.size)
OF_COMM(MPI_Comm_test_inter, (MPI_Comm comm, int *inter), *inter = 0)
OF_COMM(MPI_Comm_group, (MPI_Comm comm, MPI_Group *group), *group = group_make(&c->group))
OF_COMM(MPI_Comm_get_name, (MPI_Comm comm, char *name, int *length),
	*length = (int)strlen(strcpy(name, c->name)))
OF_COMM(MPI_Comm_set_name, (MPI_Comm comm, const char *name),
	*stpncpy(c->name, name, sizeof(c->name) - 1) = 0)
OF_COMM(MPI_Comm_get_attr, (MPI_Comm comm, int key, void *value, int *flag),
	get_attribute(key, value, flag))
OF_COMM(MPI_Comm_get_errhandler, (MPI_Comm comm, MPI_Errhandler *handler),
	*handler = c->handler)
OF_COMM(MPI_Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler handler), c->handler = handler)
OF_COMM(MPI_Comm_call_errhandler, (MPI_Comm comm, int error), comm_failed(c, error))
OF_COMM(MPI_Comm_get_info, (MPI_Comm comm, MPI_Info *info), *info = info_make())
OF_COMM(MPI_Comm_set_info, (MPI_Comm comm, MPI_Info info), (void)info)
OF_COMM(MPI_Topo_test, (MPI_Comm comm, int *what), *what = MPI_UNDEFINED)

int MPI_Errhandler_free(MPI_Errhandler *handler)
{
	*handler = MPI_ERRHANDLER_NULL;
	return 0;
}

/* ---- groups ---- */

int MPI_Group_size(MPI_Group group, int *size)
{
	const struct group *g;

	sim_lock();
	g = group_find(group);
	if (g)
		*size = g->size;
	sim_unlock();
	return g ? 0 : comm_failed(NULL, MPI_ERR_GROUP);
}

int MPI_Group_translate_ranks(
	MPI_Group group, int count, const int *ranks, MPI_Group other, int *others)
{
	const struct group *of, *to;
	int r = MPI_ERR_GROUP;

	sim_lock();
	of = group_find(group);
	to = group_find(other);
	if (of && to)
		r = 0;
	for (int i = 0; i < count && !r; i++) {
		if (ranks[i] != MPI_PROC_NULL && (ranks[i] < 0 || ranks[i] >= of->size))
			r = MPI_ERR_RANK;
		else
			others[i] = ranks[i] < 0 ? ranks[i] : place_in(to, of->world[ranks[i]]);
	}
	sim_unlock();
	return comm_failed(NULL, r);
}

int MPI_Group_incl(MPI_Group group, int count, const int *ranks, MPI_Group *made)
{
	struct group some = {.size = count};
	const struct group *g;

	sim_lock();
	g = group_find(group);
	for (int i = 0; g && i < count; i++)
		if (ranks[i] < 0 || ranks[i] >= g->size)
			g = NULL;
		else
			some.world[i] = g->world[ranks[i]];
	if (g)
		*made = count ? group_make(&some) : MPI_GROUP_EMPTY;
	sim_unlock();
	return g ? 0 : comm_failed(NULL, MPI_ERR_GROUP);
}

int MPI_Group_free(MPI_Group *group)
{
	struct group *g;

	sim_lock();
	g = handle_find(GROUP, *group);
	if (g) {
		handle_drop(GROUP, *group);
		free(g);
	}
	*group = MPI_GROUP_NULL;
	sim_unlock();
	return 0;
}

/* ---- infos, which have no keys; types, which are predefined ---- */

int MPI_Info_create(MPI_Info *info)
{
	sim_lock();
	*info = info_make();
	sim_unlock();
	return 0;
}

int MPI_Info_free(MPI_Info *info)
{
	sim_lock();
	handle_drop(INFO, *info);
	*info = MPI_INFO_NULL;
	sim_unlock();
	return 0;
}

int MPI_Info_get_nkeys(MPI_Info info, int *count)
{
	(void)info;
	*count = 0;
	return 0;
}

int64_t type_bytes(MPI_Datatype type, int count)
{
	return (unsigned)type >> 16 == 0x4c00 && count >= 0
		       ? (int64_t)(type >> 8 & 0xff) * count
		       : -1;
}

int MPI_Type_size(MPI_Datatype type, int *bytes)
{
	*bytes = (int)type_bytes(type, 1);
	return *bytes < 0 ? comm_failed(NULL, MPI_ERR_TYPE) : 0;
}

int MPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count)
{
	int bytes = (int)type_bytes(type, 1);

	if (bytes <= 0)
		return comm_failed(NULL, MPI_ERR_TYPE);
	*count = status->count_lo % bytes ? MPI_UNDEFINED : status->count_lo / bytes;
	return 0;
}
