/*
 * Attributes: values in Fortran, addresses in C. Which of the two languages has set one decides what the other one sees
 * (MPI 4.1, 19.3.7): Fortran sees an address of C's as a number, and C the address of a number that Fortran has set.
 * So what Fortran sets is the address of a box with the value, and what is no such address was set by C. The functions
 * of a keyval that Fortran has made are called by two of ours, with its record as their extra state.
 */
#include <stdlib.h>

#include "shared/raw.h"
#include "stubs/mpi/fortran/fortran.h"

/* ---- boxes ---- */

struct box {
	MPI_Aint value; /* the first 4 bytes are what an INTEGER has */
	struct box *next;
};

enum { BOX_CHAINS = 256 };

static struct box *boxes[BOX_CHAINS];
static uint32_t lock;

static struct box **chain_of(const void *box)
{
	return &boxes[(uintptr_t)box / sizeof(struct box) % BOX_CHAINS];
}

static struct box *box_new(MPI_Aint value)
{
	struct box *b = malloc(sizeof(*b)), **chain = chain_of(b);

	if (!b)
		return NULL;
	raw_lock(&lock);
	*b = (struct box){value, *chain};
	*chain = b;
	raw_unlock(&lock);
	return b;
}

/* Where the box at @address is linked, NULL if none is there. The lock is held. */
static struct box **find_box(const void *address)
{
	struct box **at = chain_of(address);

	while (*at && *at != address)
		at = &(*at)->next;
	return *at ? at : NULL;
}

static void box_free(void *address)
{
	struct box **at, *b = NULL;

	raw_lock(&lock);
	at = find_box(address);
	if (at) {
		b = *at;
		*at = b->next;
	}
	raw_unlock(&lock);
	free(b);
}

static MPI_Aint value_of(void *attribute)
{
	struct box **at;
	MPI_Aint value;

	raw_lock(&lock);
	at = find_box(attribute);
	value = at ? (*at)->value : (MPI_Aint)attribute;
	raw_unlock(&lock);
	return value;
}

/* ---- keyvals ---- */

/* MPI-1's functions take INTEGERs, those of MPI-2 addresses. */
typedef void narrow_copy(const int *object, const int *key, const int *extra, const int *was,
	int *becomes, int *flag, int *ierror);
typedef void wide_copy(const int *object, const int *key, const MPI_Aint *extra,
	const MPI_Aint *was, MPI_Aint *becomes, int *flag, int *ierror);
typedef void narrow_remove(
	const int *object, const int *key, const int *value, const int *extra, int *ierror);
typedef void wide_remove(const int *object, const int *key, const MPI_Aint *value,
	const MPI_Aint *extra, int *ierror);

/* One for all keyvals that are made alike; nobody says when a keyval is not needed any more. */
struct keyval {
	struct keyval *next;
	void *copy, *remove;
	MPI_Aint extra;
	int (*number)(void *object);
	int narrow;
};

static struct keyval *keyvals;

static int is_alike(const struct keyval *a, const struct keyval *b)
{
	return a->copy == b->copy && a->remove == b->remove && a->extra == b->extra &&
	       a->number == b->number && a->narrow == b->narrow;
}

/* NULL: there is no memory. */
static struct keyval *keyval_of(const struct keyval *wanted)
{
	struct keyval *k;

	raw_lock(&lock);
	for (k = keyvals; k && !is_alike(k, wanted);)
		k = k->next;
	if (!k && (k = malloc(sizeof(*k)))) {
		*k = *wanted;
		k->next = keyvals;
		keyvals = k;
	}
	raw_unlock(&lock);
	return k;
}

static MPI_Aint call_copy(
	const struct keyval *k, int object, int key, MPI_Aint was, int *flag, int *error)
{
	int extra = (int)k->extra, narrow_was = (int)was, narrow = 0;
	MPI_Aint wide = 0;

	if (!k->narrow) {
		((wide_copy *)k->copy)(&object, &key, &k->extra, &was, &wide, flag, error);
		return wide;
	}
	((narrow_copy *)k->copy)(&object, &key, &extra, &narrow_was, &narrow, flag, error);
	return narrow;
}

static int attribute_copied(
	void *object, int key, void *extra, void *attribute, void *copy, int *flag)
{
	const struct keyval *k = extra;
	int is_copied = 0, error = 0;
	MPI_Aint value =
		call_copy(k, k->number(object), key, value_of(attribute), &is_copied, &error);
	struct box *b;

	*flag = !error && is_copied;
	if (!*flag)
		return error;
	b = box_new(value);
	if (!b)
		return MPI_ERR_NO_MEM;
	*(void **)copy = b;
	return 0;
}

static int attribute_removed(void *object, int key, void *attribute, void *extra)
{
	const struct keyval *k = extra;
	int number = k->number(object), error = 0, narrow_extra = (int)k->extra, narrow;
	MPI_Aint value = value_of(attribute);

	if (k->narrow) {
		narrow = (int)value;
		((narrow_remove *)k->remove)(&number, &key, &narrow, &narrow_extra, &error);
	} else {
		((wide_remove *)k->remove)(&number, &key, &value, &k->extra, &error);
	}
	if (!error)
		box_free(attribute);
	return error;
}

typedef int create_function(void *copy, void *remove, int *key, void *extra);
extern create_function PMPI_Keyval_create, PMPI_Comm_create_keyval, PMPI_Type_create_keyval,
	PMPI_Win_create_keyval;

static int create_keyval(create_function *create, const struct keyval *wanted, int *key)
{
	struct keyval *k = keyval_of(wanted);

	return k ? create(attribute_copied, attribute_removed, key, k) : MPI_ERR_NO_MEM;
}

FORTRAN_MPI(keyval_create, KEYVAL_CREATE, Keyval_create,
	(void *copy, void *remove, int *key, const int *extra, int *ierror))
{
	const struct keyval wanted = {NULL, copy, remove, *extra, PMPI_Comm_c2f, 1};

	GIVE(create_keyval(PMPI_Keyval_create, &wanted, key));
}

#define KEYVALS(name, upper, own, number)                                                      \
	FORTRAN_MPI(name##_create_keyval, upper##_CREATE_KEYVAL, own##_create_keyval,          \
		(void *copy, void *remove, int *key, const MPI_Aint *extra, int *ierror))      \
	{                                                                                      \
		const struct keyval wanted = {NULL, copy, remove, *extra, number, 0};          \
                                                                                               \
		GIVE(create_keyval(PMPI_##own##_create_keyval, &wanted, key));                 \
	}
KEYVALS(comm, COMM, Comm, PMPI_Comm_c2f)
KEYVALS(type, TYPE, Type, PMPI_Type_c2f)
KEYVALS(win, WIN, Win, PMPI_Win_c2f)

/* ---- values ---- */

enum predefined_key { /* Open MPI's */
	KEY_WIN_BASE = 7,
	KEY_WIN_SIZE = 8,
	KEY_LAST = 11,
};

/* What the library says of an object: of what C has the address, Fortran has the value. */
static MPI_Aint predefined_value(int key, const void *attribute)
{
	if (key == KEY_WIN_BASE)
		return (MPI_Aint)attribute;
	return key == KEY_WIN_SIZE ? *(const MPI_Aint *)attribute : *(const int *)attribute;
}

static int is_predefined(int key)
{
	return key >= 0 && key <= KEY_LAST;
}

typedef int set_function(void *object, int key, void *attribute);
typedef int get_function(void *object, int key, void *attribute, int *flag);

static int set_value(set_function *set, void *object, int key, MPI_Aint value)
{
	struct box *b = box_new(value);
	int gave = b ? set(object, key, b) : MPI_ERR_NO_MEM;

	if (gave && b)
		box_free(b);
	return gave;
}

static int get_value(get_function *get, void *object, int key, MPI_Aint *value, int *flag)
{
	void *attribute = NULL;
	int gave;

	*flag = 0;
	gave = get(object, key, &attribute, flag);
	if (!gave && *flag)
		*value = is_predefined(key) ? predefined_value(key, attribute)
					    : value_of(attribute);
	return gave;
}

extern set_function PMPI_Attr_put, PMPI_Comm_set_attr, PMPI_Type_set_attr, PMPI_Win_set_attr;
extern get_function PMPI_Attr_get, PMPI_Comm_get_attr, PMPI_Type_get_attr, PMPI_Win_get_attr;

#define ATTRIBUTES(name, upper, own)                                                           \
	FORTRAN_MPI(name##_set_attr, upper##_SET_ATTR, own##_set_attr,                         \
		(const int *object, const int *key, const MPI_Aint *value, int *ierror))       \
	{                                                                                      \
		GIVE(set_value(                                                                \
			PMPI_##own##_set_attr, PMPI_##own##_f2c(*object), *key, *value));      \
	}                                                                                      \
	FORTRAN_MPI(name##_get_attr, upper##_GET_ATTR, own##_get_attr,                         \
		(const int *object, const int *key, MPI_Aint *value, int *flag, int *ierror))  \
	{                                                                                      \
		GIVE(get_value(                                                                \
			PMPI_##own##_get_attr, PMPI_##own##_f2c(*object), *key, value, flag)); \
	}
ATTRIBUTES(comm, COMM, Comm)
ATTRIBUTES(type, TYPE, Type)
ATTRIBUTES(win, WIN, Win)

FORTRAN_MPI(attr_put, ATTR_PUT, Attr_put,
	(const int *comm, const int *key, const int *value, int *ierror))
{
	GIVE(set_value(PMPI_Attr_put, PMPI_Comm_f2c(*comm), *key, *value));
}

FORTRAN_MPI(attr_get, ATTR_GET, Attr_get,
	(const int *comm, const int *key, int *value, int *flag, int *ierror))
{
	MPI_Aint whole = 0;
	int gave = get_value(PMPI_Attr_get, PMPI_Comm_f2c(*comm), *key, &whole, flag);

	if (!gave && *flag)
		*value = (int)whole;
	GIVE(gave);
}

/* ---- functions that programs name ---- */

#define CALLBACK(name, upper, parameters)                                                      \
	extern EXPORT void ompi_##name##_f parameters;                                         \
	NAMED(mpi_##name, ompi_##name##_f)                                                     \
	NAMED(mpi_##name##_, ompi_##name##_f)                                                  \
	NAMED(mpi_##name##__, ompi_##name##_f)                                                 \
	NAMED(MPI_##upper, ompi_##name##_f)                                                    \
	void ompi_##name##_f parameters

#define COPIES(name, upper, type)                                                              \
	CALLBACK(name, upper,                                                                  \
		(const int *object, const int *key, const type *extra, const type *was,        \
			type *becomes, int *flag, int *ierror))                                \
	{                                                                                      \
		*becomes = *was;                                                               \
		*flag = 1;                                                                     \
		*ierror = 0;                                                                   \
	}
#define COPIES_NOTHING(name, upper, type)                                                      \
	CALLBACK(name, upper,                                                                  \
		(const int *object, const int *key, const type *extra, const type *was,        \
			type *becomes, int *flag, int *ierror))                                \
	{                                                                                      \
		*flag = 0;                                                                     \
		*ierror = 0;                                                                   \
	}
#define REMOVES(name, upper, type)                                                             \
	CALLBACK(name, upper,                                                                  \
		(const int *object, const int *key, const type *value, const type *extra,      \
			int *ierror))                                                          \
	{                                                                                      \
		*ierror = 0;                                                                   \
	}
COPIES(dup_fn, DUP_FN, int)
COPIES(comm_dup_fn, COMM_DUP_FN, MPI_Aint)
COPIES(type_dup_fn, TYPE_DUP_FN, MPI_Aint)
COPIES(win_dup_fn, WIN_DUP_FN, MPI_Aint)
COPIES_NOTHING(null_copy_fn, NULL_COPY_FN, int)
COPIES_NOTHING(comm_null_copy_fn, COMM_NULL_COPY_FN, MPI_Aint)
COPIES_NOTHING(type_null_copy_fn, TYPE_NULL_COPY_FN, MPI_Aint)
COPIES_NOTHING(win_null_copy_fn, WIN_NULL_COPY_FN, MPI_Aint)
REMOVES(null_delete_fn, NULL_DELETE_FN, int)
REMOVES(comm_null_delete_fn, COMM_NULL_DELETE_FN, MPI_Aint)
REMOVES(type_null_delete_fn, TYPE_NULL_DELETE_FN, MPI_Aint)
REMOVES(win_null_delete_fn, WIN_NULL_DELETE_FN, MPI_Aint)
