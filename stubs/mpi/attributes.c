/*
 * Attributes. They are the library's, which calls functions of ours when one is copied or deleted,
 * with the object of the keyval: it knows the program's functions, and counts the attributes.
 */
#include "stubs/crossing/crossing.h"
#include "stubs/mpi/handle_table.h"

#include "mpi.index.h"

typedef int copy_function(
	int object, MPI_Keyval key, void *extra, void *value, void *copy, int *flag);
typedef int remove_function(int object, MPI_Keyval key, void *value, void *extra);

/* What Fortran's functions are called by (MPII_Keyval_set_proxy): values are words. */
typedef int copy_proxy(void *function, int object, MPI_Keyval key, void *extra, int type,
	void *value, void **copy, int *flag);
typedef int remove_proxy(
	void *function, int object, MPI_Keyval key, int type, void *value, void *extra);

enum {
	COMM_SELF = 0x44000001,
	TAG_UB = 0x64400001,
	FORTRANS_TAG_UB = 0x64400002, /* its value is the number itself */
};

enum attribute_type { /* as in MPICH */
	ATTRIBUTE_POINTER = 0,
	ATTRIBUTE_INTEGER = 1, /* a bit, whatever size it has */
};

/* The library hands on the address of what Fortran has set as an integer. */
static void *value_of(const struct mpi_object *o, void *value)
{
	return o->attribute_type & ATTRIBUTE_INTEGER ? *(void **)value : value;
}

static int call_copy(struct mpi_object *o, int object, void *value, void *copy, int *flag)
{
	if (!o->copy) { /* MPI_NULL_COPY_FN */
		*flag = 0;
		return 0;
	}
	if (o->copy_proxy)
		return ((copy_proxy *)o->copy_proxy)(o->copy, handle_of(object), o->handle,
			o->extra, o->attribute_type, value_of(o, value), copy, flag);
	return ((copy_function *)o->copy)(
		handle_of(object), o->handle, o->extra, value, copy, flag);
}

static int attribute_copied(
	int object, MPI_Keyval key, void *extra, void *value, void *copy, int *flag)
{
	struct mpi_object *o = extra;
	int r = call_copy(o, object, value, copy, flag);

	if (!r && *flag)
		__atomic_add_fetch(&o->attributes, 1, __ATOMIC_RELAXED);
	return r;
}

static int call_remove(struct mpi_object *o, int object, void *value)
{
	if (!o->remove)
		return 0;
	if (o->remove_proxy)
		return ((remove_proxy *)o->remove_proxy)(o->remove, handle_of(object),
			o->handle, o->attribute_type, value_of(o, value), o->extra);
	return ((remove_function *)o->remove)(handle_of(object), o->handle, value, o->extra);
}

extern STUB_HIDDEN int real_MPI_Comm_free_keyval(MPI_Keyval *key),
	real_MPI_Type_free_keyval(MPI_Keyval *key), real_MPI_Win_free_keyval(MPI_Keyval *key);

/* The program has freed it while there were attributes. */
static void last_removed(struct mpi_object *o)
{
	int32_t real = o->real;

	if (o->subject == MPI_OF_COMM)
		real_MPI_Comm_free_keyval(&real);
	else if (o->subject == MPI_OF_DATATYPE)
		real_MPI_Type_free_keyval(&real);
	else
		real_MPI_Win_free_keyval(&real);
	object_drop(o);
}

static int attribute_removed(int object, MPI_Keyval key, void *value, void *extra)
{
	struct mpi_object *o = extra;
	int r = call_remove(o, object, value);

	if (!r && !__atomic_sub_fetch(&o->attributes, 1, __ATOMIC_RELAXED) && !o->references)
		last_removed(o);
	return r;
}

/* ---- keyvals ---- */

static int create_keyval(unsigned index, enum mpi_subject subject, void *copy, void *remove,
	MPI_Keyval *key, void *extra)
{
	/* It must be there before the real library knows its address. */
	struct mpi_object *o = object_new(MPI_KEYVAL, MPI_KIND_NULL(MPI_KEYVAL));
	uint64_t words[16] = {0};
	int32_t real = 0;
	int r;

	if (!o)
		return MPI_ERR_INTERN;
	o->subject = subject;
	o->copy = copy;
	o->remove = remove;
	o->extra = extra;
	o->lower_copy = crossing_callback_pointer(attribute_copied);
	o->lower_remove = crossing_callback_pointer(attribute_removed);
	words[0] = (uint64_t)o->lower_copy;
	words[1] = (uint64_t)o->lower_remove;
	words[2] = (uint64_t)&real;
	words[3] = (uint64_t)o;
	r = mpi_call_words(&mpi_targets[index], words);
	if (r) {
		object_drop(o);
		return r;
	}
	object_rename(o, real);
	*key = o->handle;
	return 0;
}

BY_HAND(MPI_Comm_create_keyval, (void *copy, void *remove, MPI_Keyval *key, void *extra));
int body_MPI_Comm_create_keyval(void *copy, void *remove, MPI_Keyval *key, void *extra)
{
	return create_keyval(
		INDEX_MPI_Comm_create_keyval, MPI_OF_COMM, copy, remove, key, extra);
}

BY_HAND(MPI_Keyval_create, (void *copy, void *remove, MPI_Keyval *key, void *extra));
int body_MPI_Keyval_create(void *copy, void *remove, MPI_Keyval *key, void *extra)
{
	return create_keyval(INDEX_MPI_Keyval_create, MPI_OF_COMM, copy, remove, key, extra);
}

BY_HAND(MPI_Type_create_keyval, (void *copy, void *remove, MPI_Keyval *key, void *extra));
int body_MPI_Type_create_keyval(void *copy, void *remove, MPI_Keyval *key, void *extra)
{
	return create_keyval(
		INDEX_MPI_Type_create_keyval, MPI_OF_DATATYPE, copy, remove, key, extra);
}

BY_HAND(MPI_Win_create_keyval, (void *copy, void *remove, MPI_Keyval *key, void *extra));
int body_MPI_Win_create_keyval(void *copy, void *remove, MPI_Keyval *key, void *extra)
{
	return create_keyval(
		INDEX_MPI_Win_create_keyval, MPI_OF_WINDOW, copy, remove, key, extra);
}

STUB_HIDDEN int body_MPII_Keyval_set_proxy(MPI_Keyval key, void *copy, void *remove);
int body_MPII_Keyval_set_proxy(MPI_Keyval key, void *copy, void *remove)
{
	struct mpi_object *o = object_of(key);

	if (o) {
		o->copy_proxy = copy;
		o->remove_proxy = remove;
	}
	return 0;
}

/* ---- values ---- */

/* The function that deletes an attribute which is there already has counted that. */
static int is_set(MPI_Keyval key, int type, int r)
{
	struct mpi_object *o = object_of(key);

	if (r || !o)
		return r;
	o->attribute_type = type;
	__atomic_add_fetch(&o->attributes, 1, __ATOMIC_RELAXED);
	return 0;
}

extern STUB_HIDDEN int real_MPI_Comm_get_attr(
	MPI_Comm comm, MPI_Keyval key, void **value, int *flag);

/* Where the attribute of MPI_COMM_SELF that is to be set stands among the others; 0: there is none yet. */
static uint64_t place_before(int object, MPI_Keyval key)
{
	struct mpi_object *o = object_of(key);
	void *value;
	int flag = 0;

	if (object != COMM_SELF || !o || real_MPI_Comm_get_attr(object, key, &value, &flag))
		return 0;
	return flag ? o->self_order : 0;
}

/* A value that is changed leaves the attribute where it is. */
static int is_set_of_comm(int object, MPI_Keyval key, uint64_t before, int type, int r)
{
	static uint64_t last;
	struct mpi_object *o = object_of(key);

	if (!r && o && object == COMM_SELF)
		o->self_order =
			before ? before : __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	return is_set(key, type, r);
}

BY_HAND(MPI_Comm_set_attr, (int object, MPI_Keyval key, void *value));
int body_MPI_Comm_set_attr(int object, MPI_Keyval key, void *value)
{
	uint64_t before = place_before(object, key);

	return is_set_of_comm(object, key, before, ATTRIBUTE_POINTER,
		real_MPI_Comm_set_attr(object, key, value));
}

BY_HAND(MPI_Attr_put, (int object, MPI_Keyval key, void *value));
int body_MPI_Attr_put(int object, MPI_Keyval key, void *value)
{
	uint64_t before = place_before(object, key);

	return is_set_of_comm(
		object, key, before, ATTRIBUTE_POINTER, real_MPI_Attr_put(object, key, value));
}

BY_HAND(MPI_Type_set_attr, (int object, MPI_Keyval key, void *value));
int body_MPI_Type_set_attr(int object, MPI_Keyval key, void *value)
{
	return is_set(key, ATTRIBUTE_POINTER, real_MPI_Type_set_attr(object, key, value));
}

BY_HAND(MPI_Win_set_attr, (int object, MPI_Keyval key, void *value));
int body_MPI_Win_set_attr(int object, MPI_Keyval key, void *value)
{
	return is_set(key, ATTRIBUTE_POINTER, real_MPI_Win_set_attr(object, key, value));
}

BY_HAND(MPII_Comm_set_attr, (int object, MPI_Keyval key, void *value, int type));
int body_MPII_Comm_set_attr(int object, MPI_Keyval key, void *value, int type)
{
	uint64_t before = place_before(object, key);

	return is_set_of_comm(
		object, key, before, type, real_MPII_Comm_set_attr(object, key, value, type));
}

BY_HAND(MPII_Type_set_attr, (int object, MPI_Keyval key, void *value, int type));
int body_MPII_Type_set_attr(int object, MPI_Keyval key, void *value, int type)
{
	return is_set(key, type, real_MPII_Type_set_attr(object, key, value, type));
}

BY_HAND(MPII_Win_set_attr, (int object, MPI_Keyval key, void *value, int type));
int body_MPII_Win_set_attr(int object, MPI_Keyval key, void *value, int type)
{
	return is_set(key, type, real_MPII_Win_set_attr(object, key, value, type));
}

/* ---- what the library says of itself ---- */

/* Its values have places of ours, since the program may keep their addresses. */
static void *own_place(MPI_Keyval key, int *value)
{
	static int values[16];
	int *place = &values[key & 0xf];

	__atomic_store_n(place, *value, __ATOMIC_RELAXED);
	return place;
}

static int is_predefined(MPI_Keyval key)
{
	return (unsigned)key >> 30 == 1;
}

static int give_value(MPI_Keyval key, void **value, const int *flag, int r)
{
	int told;

	if (r || !*flag || !is_predefined(key) || !*value)
		return r;
	told = key == TAG_UB && mpi_state.tag_ub ? mpi_state.tag_ub : *(int *)*value;
	*value = own_place(key, &told);
	return r;
}

BY_HAND(MPI_Comm_get_attr, (MPI_Comm comm, MPI_Keyval key, void **value, int *flag));
int body_MPI_Comm_get_attr(MPI_Comm comm, MPI_Keyval key, void **value, int *flag)
{
	return give_value(key, value, flag, real_MPI_Comm_get_attr(comm, key, value, flag));
}

BY_HAND(MPI_Attr_get, (MPI_Comm comm, MPI_Keyval key, void **value, int *flag));
int body_MPI_Attr_get(MPI_Comm comm, MPI_Keyval key, void **value, int *flag)
{
	return give_value(key, value, flag, real_MPI_Attr_get(comm, key, value, flag));
}

BY_HAND(MPII_Comm_get_attr, (MPI_Comm comm, MPI_Keyval key, void **value, int *flag, int type));
int body_MPII_Comm_get_attr(MPI_Comm comm, MPI_Keyval key, void **value, int *flag, int type)
{
	int r;

	/* Not all libraries have this function. */
	if (key == FORTRANS_TAG_UB && mpi_state.tag_ub && value && flag) {
		*(intptr_t *)value = mpi_state.tag_ub;
		*flag = 1;
		return 0;
	}
	r = real_MPII_Comm_get_attr(comm, key, value, flag, type);
	return type == ATTRIBUTE_POINTER ? give_value(key, value, flag, r) : r;
}
