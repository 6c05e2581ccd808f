/* Open MPI's library for callers of MPICH's ABI. */
#include "lower/mpi/openmpi/exchange.inc"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "lower/runtime.h"
#include "shared/raw.h"

int openmpi_unweighted, openmpi_weights_empty, openmpi_all_handles;

static uint32_t functions_lock;
extern char exchanged_op_thunks[], exchanged_error_thunks[], exchanged_file_error_thunks[];
void exchanged_op_called(
	void *in, void *out, void *count, INNER_MPI_Datatype const *type, unsigned which);
void exchanged_error_called(
	INNER_MPI_Comm const *handle, int *code, long first, long second, unsigned which);
void exchanged_file_error_called(
	INNER_MPI_File const *handle, int *code, long first, long second, unsigned which);
static size_t length_ranks(int in_place, INNER_MPI_Comm comm);
static size_t length_neighbours(int destinations, INNER_MPI_Comm comm);

#include "mpi.openmpi.inc"

#include "shared/mpi/exchanged_by_hand.inc"

/* The library writes the communicator's address when the request is complete, and not before. */
#define COPIES(name, parameters, ...)                                                          \
	ADAPTER(int, name, name, parameters)                                                   \
	{                                                                                      \
		void **place, *begun = NULL;                                                   \
		int handle = handle_later(&place), r;                                          \
                                                                                               \
		if (!handle)                                                                   \
			return NO_MEMORY;                                                      \
		r = CALL(name, name)(__VA_ARGS__, place, &begun);                              \
		if (r) {                                                                       \
			handle_never(handle);                                                  \
			return OUT_error(r);                                                   \
		}                                                                              \
		*made = handle;                                                                \
		*request = OUT_MPI_Request(begun);                                             \
		return 0;                                                                      \
	}
CALLEE(int, MPI_Comm_idup, MPI_Comm_idup, (void *, void **, void **))
COPIES(MPI_Comm_idup, (int comm, int *made, int *request), handle_pointer(comm))

static int (*library_MPI_Pcontrol)(int level, ...);
static int adapted_MPI_Pcontrol(int level, ...)
{
	return OUT_error(library_MPI_Pcontrol(level));
}

CALLEE(int, MPI_File_c2f, MPI_File_c2f, (void *))
ADAPTER(int, MPI_File_c2f, MPI_File_c2f, (void *file))
{
	return library_MPI_File_c2f(IN_MPI_File(file));
}

CALLEE(void *, MPI_File_f2c, MPI_File_f2c, (int))
ADAPTER(void *, MPI_File_f2c, MPI_File_f2c, (int number))
{
	return OUT_MPI_File(library_MPI_File_f2c(number));
}

/* ---- large counts, which the library does not have ---- */

enum { WORLD = 0x44000000 };

static int is_root(int root, int comm)
{
	enum { ROOT = -3, NO_ROOT = -1 };
	int rank = 0;

	if (root == ROOT || root == NO_ROOT)
		return root == ROOT;
	adapted_MPI_Comm_rank(comm, &rank);
	return rank == root;
}

/* Of a communicator between two groups those of the other one have the number of the root, whatever is theirs. */
static size_t at_root(int root, int comm, size_t length)
{
	int inter = 0;

	adapted_MPI_Comm_test_inter(comm, &inter);
	return (inter && root >= 0) || !is_root(root, comm) ? 0 : length;
}

/* Without the handler's error the program would continue as if it had been done. */
static int too_large(int comm)
{
	enum { ERR_COUNT = 2 };

	adapted_MPI_Comm_call_errhandler(comm, ERR_COUNT);
	return ERR_COUNT;
}

static size_t length_members(int comm)
{
	int size = 0;

	adapted_MPI_Comm_size(comm, &size);
	return size;
}

#define LENGTH_MEMBERS(comm)        length_members(comm)
#define AT_ROOT(root, comm, length) at_root(root, comm, length)
#define TOO_LARGE(comm)             return too_large(comm)
#include "mpi.narrowed.inc"

/* ---- answers that may be large, which what `gen narrowed` prints would cut ---- */

static int type_size_c(int type, MPI_Count *size)
{
	return adapted_MPI_Type_size_x(type, size);
}

static int get_elements_c(const struct mpich_status *status, int type, MPI_Count *count)
{
	return adapted_MPI_Get_elements_x(status, type, count);
}

/* The library says MPI_UNDEFINED of more than an int holds, too. */
static int get_count_c(const struct mpich_status *status, int type, MPI_Count *count)
{
	enum { UNDEFINED = -32766, BYTE = 0x4c00010d };
	MPI_Count bytes, size;
	int fitting = 0, r = adapted_MPI_Get_count(status, type, count ? &fitting : NULL);

	if (r || !count)
		return r;
	*count = fitting;
	if (fitting != UNDEFINED)
		return 0;
	r = adapted_MPI_Get_elements_x(status, BYTE, &bytes);
	if (!r)
		r = adapted_MPI_Type_size_x(type, &size);
	if (!r && size > 0 && bytes >= 0 && bytes % size == 0)
		*count = bytes / size;
	return r;
}

static int pack_size_c(MPI_Count count, int type, int comm, MPI_Count *size)
{
	MPI_Count each = 0, all;
	int r = narrowed_MPI_Pack_size_c(count, type, comm, size);

	if (r || !size)
		return r;
	r = adapted_MPI_Type_size_x(type, &each);
	if (!r && (__builtin_mul_overflow(each, count, &all) || all > INT32_MAX || *size < 0))
		return too_large(comm);
	return r;
}

/* ---- the table ---- */

#define ENTRY(name, own)                                                                       \
	{#name, #own, (void *)adapted_##name, (void **)(void *)&library_##name},
static const struct entry {
	const char *name, *own;
	void *adapted, **library;
} entries[] = {
#include "mpi.openmpi.inc"
#define NARROWED(name, own, plain)                                                             \
	{#name, #own, (void *)narrowed_##name, (void **)(void *)&library_##plain},
#include "mpi.narrowed.inc"
#undef NARROWED
};
#undef ENTRY

/* ---- what is done otherwise ---- */

/* Without a launcher the library starts a daemon, a child of the program's, to be able to start more processes. */
static void begin_alone(void)
{
	static const char *const launchers[] = {"PMIX_RANK", "PMI_RANK", "PMI_FD",
		"OMPI_COMM_WORLD_RANK", "SLURM_STEP_NUM_TASKS"};

	for (size_t i = 0; i < sizeof(launchers) / sizeof(*launchers); i++)
		if (getenv(launchers[i]))
			return;
	(void)setenv(
		"OMPI_MCA_ess_singleton_isolated", "1", 0); /* without: as it says itself */
}

static int init_library(int *argc, char ***argv)
{
	begin_alone();
	return adapted_MPI_Init(argc, argv);
}

static int init_library_thread(int *argc, char ***argv, int required, int *provided)
{
	begin_alone();
	return adapted_MPI_Init_thread(argc, argv, required, provided);
}

/* ---- errors that are added ---- */

static int add_class(int *errorclass)
{
	int own, r;

	if (!added_error_has_class()) {
		adapted_MPI_Comm_call_errhandler(WORLD, NO_MEMORY);
		return NO_MEMORY;
	}
	r = library_MPI_Add_error_class(&own);
	if (!r)
		*errorclass = added_error(own, 0);
	return r ? OUT_error(r) : *errorclass < 0 ? NO_MEMORY : 0;
}

static int add_code(int errorclass, int *errorcode)
{
	int own, r = library_MPI_Add_error_code(IN_error(errorclass), &own);

	if (!r)
		*errorcode = added_error(own, errorclass);
	return r ? OUT_error(r) : *errorcode < 0 ? NO_MEMORY : 0;
}

/* MPICH allows 512 characters. */
static int add_string(int errorcode, const char *text)
{
	char cut[256];

	if (text)
		cut_text(cut, NULL, text, sizeof(cut));
	return adapted_MPI_Add_error_string(errorcode, text ? cut : NULL);
}

/* ---- what the library says of itself ---- */

static void limit_value(int key, void **value, const int *flag)
{
	enum { LASTUSEDCODE = 0x6440000b };
	static int last;

	if (key != LASTUSEDCODE || !*flag)
		return;
	last = added_error_last();
	*value = &last;
}

static int comm_get_attr(int comm, int key, void *value, int *flag)
{
	int r = adapted_MPI_Comm_get_attr(comm, key, value, flag);

	if (!r)
		limit_value(key, value, flag);
	return r;
}

static int attr_get(int comm, int key, void *value, int *flag)
{
	int r = adapted_MPI_Attr_get(comm, key, value, flag);

	if (!r)
		limit_value(key, value, flag);
	return r;
}

/* ---- names: the library keeps 63 characters, and MPICH 127 ---- */

#define KEEPS_NAMES(object, lower, kind)                                                       \
	static int lower##_set_name(int of, const char *name)                                  \
	{                                                                                      \
		int r = adapted_##object##_set_name(of, name);                                 \
                                                                                               \
		return !r && handle_keep_name(kind, handle_pointer(of), name) < 0 ? NO_MEMORY  \
										  : r;         \
	}                                                                                      \
	static int lower##_get_name(int of, char *name, int *length)                           \
	{                                                                                      \
		int r = adapted_##object##_get_name(of, name, length);                         \
		const char *whole = handle_name(kind, handle_pointer(of));                     \
                                                                                               \
		if (!r && whole)                                                               \
			cut_text(name, length, whole, OUTER_OBJECT_NAME);                      \
		return r;                                                                      \
	}
KEEPS_NAMES(MPI_Comm, comm, MPI_COMM)
KEEPS_NAMES(MPI_Type, type, MPI_DATATYPE)
KEEPS_NAMES(MPI_Win, win, HANDLE_WIN)

/* ---- generalised requests ---- */

static int grequest_start(void *query, void *free, void *cancel, void *extra, int *request)
{
	int r = adapted_MPI_Grequest_start(query, free, cancel, extra, request);

	if (!r)
		request_hold(*request);
	return r;
}

static int grequest_complete(int request)
{
	int r = adapted_MPI_Grequest_complete(request);

	if (!r)
		request_let_go(request);
	return r;
}

static void *instead_of(const struct entry *e)
{
	static const struct {
		const char *name;
		void *function;
	} others[] = {
		{"MPI_Init", (void *)init_library},
		{"MPI_Init_thread", (void *)init_library_thread},
		{"MPI_Add_error_class", (void *)add_class},
		{"MPI_Add_error_code", (void *)add_code},
		{"MPI_Add_error_string", (void *)add_string},
		{"MPI_Type_size_c", (void *)type_size_c},
		{"MPI_Get_elements_c", (void *)get_elements_c},
		{"MPI_Get_count_c", (void *)get_count_c},
		{"MPI_Pack_size_c", (void *)pack_size_c},
		{"MPI_Comm_get_attr", (void *)comm_get_attr},
		{"MPI_Attr_get", (void *)attr_get},
		{"MPI_Comm_set_name", (void *)comm_set_name},
		{"MPI_Comm_get_name", (void *)comm_get_name},
		{"MPI_Type_set_name", (void *)type_set_name},
		{"MPI_Type_get_name", (void *)type_get_name},
		{"MPI_Win_set_name", (void *)win_set_name},
		{"MPI_Win_get_name", (void *)win_get_name},
		{"MPI_Grequest_start", (void *)grequest_start},
		{"MPI_Grequest_complete", (void *)grequest_complete},
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (!strcmp(e->name, others[i].name))
			return others[i].function;
	return e->adapted;
}

/* ---- what is found of the library ---- */

static void *library;

int openmpi_is(void *handle)
{
	return dlsym(handle, "ompi_mpi_comm_world") != NULL;
}

int openmpi_is_used(void)
{
	return library != NULL;
}

static void *library_variable(const char *name)
{
	return dlsym(library, name);
}

int openmpi_begin(void *handle)
{
	library = handle;
	return handles_begin(library_variable);
}

static void *find_variable(const char *name)
{
	static int *unweighted = &openmpi_unweighted, *weights_empty = &openmpi_weights_empty,
		   *all_handles = &openmpi_all_handles;

	if (!strcmp(name, "MPI_UNWEIGHTED"))
		return &unweighted;
	if (!strcmp(name, "MPI_WEIGHTS_EMPTY"))
		return &weights_empty;
	return strcmp(name, "MPI_T_PVAR_ALL_HANDLES") ? NULL : &all_handles;
}

/* Of functions with large counts the plain one's, which the library has: MPIX_Bcast_init is MPI_Bcast_init. */
static const char *standard_name(const struct entry *e)
{
	static char name[64];

	if (strncmp(e->own, "MPIX_", 5))
		return e->own;
	snprintf(name, sizeof(name), "MPI_%s", e->own + 5);
	return name;
}

/* Names are asked for in the order of the table, mostly. */
void *openmpi_symbol(const char *name)
{
	static size_t next;
	const size_t count = sizeof(entries) / sizeof(*entries);

	for (size_t i = 0; i < count; i++) {
		const struct entry *e = &entries[(next + i) % count];

		if (strcmp(e->name, name))
			continue;
		next = (next + i + 1) % count;
		*e->library = dlsym(library, e->own);
		if (!*e->library) /* Open MPI 5 has its name of MPI 4.0 */
			*e->library = dlsym(library, standard_name(e));
		return *e->library ? instead_of(e) : NULL;
	}
	return find_variable(name);
}

/* ---- what the library does not have, and nothing stands for ---- */

static int unsupported_comm(int comm)
{
	enum { ERR_UNSUPPORTED_OPERATION = 44 };

	adapted_MPI_Comm_call_errhandler(comm, ERR_UNSUPPORTED_OPERATION);
	return ERR_UNSUPPORTED_OPERATION;
}

static int unsupported_of_none(void)
{
	return unsupported_comm(WORLD);
}

void *openmpi_unsupported(const char *name)
{
	if (!strcmp(name, "MPI_Comm_idup_with_info"))
		return (void *)unsupported_comm;
	if (!strcmp(name, "MPI_Type_get_envelope_c") ||
		!strcmp(name, "MPI_Type_get_contents_c"))
		return (void *)unsupported_of_none;
	return NULL;
}
