/* The table of handles: what the program holds, and what the real library knows it by. */
#include "stubs/mpi/handle_table.h"

#include "shared/raw.h"
#include "stubs/crossing/crossing.h"

/* Entry points read it (stubs/mpi/mpi_entry_macros.inc). */
STUB_HIDDEN int32_t mpi_reals[MPI_HANDLES];
static struct mpi_object *objects[MPI_HANDLES];

enum {
	COMM_WORLD = 0x44000000,
	COMM_SELF = 0x44000001,
	FIRST_PAIR = (int32_t)0x8c000000, /* MPI_FLOAT_INT */
	LAST_PAIR = (int32_t)0x8c000004,  /* MPI_LONG_DOUBLE_INT */
};

static void link_object(struct mpi_object *o)
{
	struct mpi_object **bucket = mpi_bucket(&mpi_state, o->real);

	o->next = *bucket;
	*bucket = o;
}

static void unlink_object(struct mpi_object *o)
{
	struct mpi_object **at = mpi_bucket(&mpi_state, o->real);

	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
}

static void add_predefined(struct mpi_object *o, int32_t handle)
{
	o->kind = MPI_COMM;
	o->handle = o->real = handle;
	o->references = 1;
	link_object(o);
}

STUB_HIDDEN void objects_reset(void)
{
	struct mpi_state *s = &mpi_state;

	raw_zero(mpi_reals, s->count * sizeof(*mpi_reals));
	raw_zero(objects, s->count * sizeof(*objects));
	raw_zero(s->buckets, sizeof(s->buckets));
	raw_zero(&s->world, sizeof(s->world));
	raw_zero(&s->self, sizeof(s->self));
	s->count = s->sequence = s->lock = 0;
	s->free = NULL;
	s->reals = mpi_reals;
	s->objects = objects;
	add_predefined(&s->world, COMM_WORLD);
	add_predefined(&s->self, COMM_SELF);
}

STUB_HIDDEN struct mpi_object *object_of(int32_t handle)
{
	uint32_t index = handle & MPI_HANDLES_MASK;
	struct mpi_object *o = mpi_is_virtual(handle) ? objects[index] : NULL;

	return o && o->handle == handle && o->real ? o : NULL;
}

/* Under the lock. */
static struct mpi_object *new_object(void)
{
	struct mpi_state *s = &mpi_state;
	struct mpi_object *o = s->free;
	uint32_t index;

	if (o) {
		s->free = o->next;
		index = o->index;
		raw_zero(o, offsetof(struct mpi_object, saved)); /* its room is used again */
		o->index = index;
		return o;
	}
	if (s->count == MPI_HANDLES)
		return NULL;
	o = records_alloc(sizeof(*o));
	if (!o)
		return NULL;
	o->index = s->count++;
	objects[o->index] = o;
	return o;
}

STUB_HIDDEN struct mpi_object *object_new(enum mpi_kind kind, int32_t real)
{
	struct mpi_state *s = &mpi_state;
	struct mpi_object *o;

	raw_lock(&s->lock);
	o = new_object();
	if (o) {
		o->kind = kind;
		o->handle = MPI_VIRTUAL | kind << MPI_KIND_SHIFT | o->index;
		o->real = real;
		o->references = 1;
		o->sequence = ++s->sequence;
		link_object(o);
		mpi_reals[o->index] = real;
	}
	raw_unlock(&s->lock);
	return o;
}

STUB_HIDDEN void object_rename(struct mpi_object *o, int32_t real)
{
	raw_lock(&mpi_state.lock);
	unlink_object(o);
	o->real = mpi_reals[o->index] = real;
	link_object(o);
	raw_unlock(&mpi_state.lock);
}

STUB_HIDDEN void object_drop(struct mpi_object *o)
{
	raw_lock(&mpi_state.lock);
	mpi_reals[o->index] = 0;
	unlink_object(o);
	o->real = 0;
	o->next = mpi_state.free;
	mpi_state.free = o;
	raw_unlock(&mpi_state.lock);
}

/* It has the same value in every process. */
static int is_predefined(int32_t real)
{
	return real >= 0 || (real >= FIRST_PAIR && real <= LAST_PAIR);
}

static struct mpi_object *find_real(int32_t real)
{
	struct mpi_object *o;

	raw_lock(&mpi_state.lock);
	o = mpi_find(&mpi_state, real);
	raw_unlock(&mpi_state.lock);
	return o;
}

STUB_HIDDEN int32_t handle_of(int32_t real)
{
	struct mpi_object *o = is_predefined(real) ? NULL : find_real(real);

	return o ? o->handle : real;
}

extern STUB_HIDDEN int real_MPI_Type_free(MPI_Datatype *type),
	real_MPI_Errhandler_free(MPI_Errhandler *errhandler),
	real_MPI_Group_free(MPI_Group *group);

/* The real library counts one reference for an object of ours, however many the program has. */
static void give_back(enum mpi_kind kind, int32_t real)
{
	if (kind == MPI_ERRHANDLER)
		real_MPI_Errhandler_free(&real);
	else if (kind == MPI_GROUP)
		real_MPI_Group_free(&real);
	else
		real_MPI_Type_free(&real);
}

STUB_HIDDEN int32_t handle_given(enum mpi_kind kind, int32_t real, int counted)
{
	struct mpi_object *o;

	if (is_predefined(real))
		return real;
	o = find_real(real);
	if (!o || o->dying)
		o = object_new(kind, real);
	else if (counted) {
		__atomic_add_fetch(&o->references, 1, __ATOMIC_RELAXED);
		give_back(kind, real);
	}
	return o ? o->handle : MPI_KIND_NULL(kind);
}
