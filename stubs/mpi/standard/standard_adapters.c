/* The functions that programs of the standard ABI call. */
#include "stubs/mpi/standard/exchange.inc"

#include "shared/records.h"

static uint32_t functions_lock;
extern STUB_HIDDEN char exchanged_op_thunks[], exchanged_error_thunks[],
	exchanged_file_error_thunks[];
STUB_HIDDEN void exchanged_op_called(
	void *in, void *out, void *count, INNER_MPI_Datatype const *type, unsigned which);
STUB_HIDDEN void exchanged_error_called(
	INNER_MPI_Comm const *handle, int *code, long first, long second, unsigned which);
STUB_HIDDEN void exchanged_file_error_called(
	INNER_MPI_File const *handle, int *code, long first, long second, unsigned which);
static size_t length_ranks(int in_place, INNER_MPI_Comm comm);
static size_t length_neighbours(int destinations, INNER_MPI_Comm comm);

#include "mpi.standard.inc"

#include "shared/mpi/exchanged_by_hand.inc"

/* ---- what Open MPI 4 does not have ---- */

CALLEE(int, MPI_Op_create_c, MPI_Op_create_c, (void *, int, int *))
ADAPTER(int, MPI_Op_create_c, MPI_Op_create_c, (void *function, int commute, void **op))
{
	void *thunk = callee_function(function, op_functions, exchanged_op_thunks);
	int made = 0, r;

	if (function && !thunk)
		return NO_MEMORY;
	r = CALL(MPI_Op_create_c, MPI_Op_create_c)(thunk, commute, op ? &made : NULL);
	if (op && made)
		*op = handle_out(made);
	return OUT_error(r);
}

CREATES_HANDLER(MPI_Session_create_errhandler, error)

CALLEE(int, MPI_Comm_idup, MPI_Comm_idup, (int, int *, int *))
ADAPTER(int, MPI_Comm_idup, MPI_Comm_idup, (void *comm, void **made, void **request))
{
	int in_made = 0, in_request = 0, r;

	r = CALL(MPI_Comm_idup, MPI_Comm_idup)(
		handle_in(comm), made ? &in_made : NULL, request ? &in_request : NULL);
	if (!r) {
		*made = handle_out(in_made);
		*request = handle_out(in_request);
	}
	return OUT_error(r);
}

CALLEE(int, MPI_Comm_idup_with_info, MPI_Comm_idup_with_info, (int, int, int *, int *))
ADAPTER(int, MPI_Comm_idup_with_info, MPI_Comm_idup_with_info,
	(void *comm, void *info, void **made, void **request))
{
	int in_made = 0, in_request = 0, r;

	r = CALL(MPI_Comm_idup_with_info, MPI_Comm_idup_with_info)(handle_in(comm),
		handle_in(info), made ? &in_made : NULL, request ? &in_request : NULL);
	if (!r) {
		*made = handle_out(in_made);
		*request = handle_out(in_request);
	}
	return OUT_error(r);
}

/* As MPI_Type_get_contents in exchanged_by_hand.inc. Constants are among the numbers, which a datatype with large counts
 * has at other places: the arrays of counts are not among them. */
static void exchange_numbers_of_large(int combiner, int *numbers)
{
	enum { SUBARRAY = 13, DARRAY = 14 };
	int n;

	if (combiner == SUBARRAY) {
		numbers[1] = OUT_order(numbers[1]);
	} else if (combiner == DARRAY) {
		n = numbers[2];
		for (int i = 0; i < n; i++) {
			numbers[3 + i] = OUT_distribution(numbers[3 + i]);
			numbers[3 + n + i] = OUT_argument(numbers[3 + n + i]);
		}
		numbers[3 + 3 * n] = OUT_order(numbers[3 + 3 * n]);
	}
}

CALLEE(int, MPI_Type_get_contents_c, MPI_Type_get_contents_c,
	(int, long, long, long, long, int *, long *, long *, int *))
ADAPTER(int, MPI_Type_get_contents_c, MPI_Type_get_contents_c,
	(void *type, long ints, long addresses, long counts, long types, int *i, long *a,
		long *c, void **t))
{
	WITH_MEMORY
	size_t length = LENGTH(t, types);
	int *in_t = ALLOC(t, length, int);
	int r, combiner = 0;
	long used[4] = {0};

	NO_MEMORY_FAILS
	for (size_t k = 0; k < length; k++)
		in_t[k] = 0;
	r = CALL(MPI_Type_get_contents_c, MPI_Type_get_contents_c)(
		handle_in(type), ints, addresses, counts, types, i, a, c, in_t);
	for (size_t k = 0; k < length && !r; k++)
		if (in_t[k])
			t[k] = handle_out(in_t[k]);
	if (!r && !CALL(MPI_Type_get_envelope_c, MPI_Type_get_envelope_c)(
			  handle_in(type), &used[0], &used[1], &used[2], &used[3], &combiner)) {
		if (used[2])
			exchange_numbers_of_large(combiner, i);
		else
			exchange_numbers(combiner, i);
	}
	DONE return OUT_error(r);
}

/* ---- buffers: MPI_BUFFER_AUTOMATIC is what comes out, too ---- */

#define DETACHES(name, number)                                                                 \
	CALLEE(int, name, name, (void *, number *))                                            \
	ADAPTER(int, name, name, (void *buffer, number *size))                                 \
	{                                                                                      \
		int r = CALL(name, name)(buffer, size);                                        \
                                                                                               \
		if (!r && buffer)                                                              \
			*(void **)buffer = OUT_buffer(*(void **)buffer);                       \
		return OUT_error(r);                                                           \
	}
DETACHES(MPI_Buffer_detach, int)
DETACHES(MPI_Buffer_detach_c, long)

#define DETACHES_FROM(name, number)                                                            \
	CALLEE(int, name, name, (int, void *, number *))                                       \
	ADAPTER(int, name, name, (void *of, void *buffer, number *size))                       \
	{                                                                                      \
		int r = CALL(name, name)(handle_in(of), buffer, size);                         \
                                                                                               \
		if (!r && buffer)                                                              \
			*(void **)buffer = OUT_buffer(*(void **)buffer);                       \
		return OUT_error(r);                                                           \
	}
DETACHES_FROM(MPI_Comm_detach_buffer, int)
DETACHES_FROM(MPI_Comm_detach_buffer_c, long)
DETACHES_FROM(MPI_Session_detach_buffer, int)
DETACHES_FROM(MPI_Session_detach_buffer_c, long)

/* ---- files ---- */

/* MPI_DISPLACEMENT_CURRENT */
CALLEE(int, MPI_File_set_view, MPI_File_set_view, (void *, long, int, int, const char *, int))
ADAPTER(int, MPI_File_set_view, MPI_File_set_view,
	(void *file, long place, void *type, void *part, const char *representation,
		void *info))
{
	enum { OUTER_CURRENT = -1, INNER_CURRENT = -54278278 };

	return OUT_error(CALL(MPI_File_set_view, MPI_File_set_view)(IN_MPI_File(file),
		place == OUTER_CURRENT ? INNER_CURRENT : place, handle_in(type),
		handle_in(part), representation, handle_in(info)));
}

struct representation_of_large {
	int (*read)(void *, void *, long, void *, long, void *);
	int (*write)(void *, void *, long, void *, long, void *);
	int (*extent)(void *, void *, void *);
	void *extra;
};

static int large_read(void *memory, int type, long count, void *file, long place, void *extra)
{
	const struct representation_of_large *f = extra;

	return IN_error(f->read(memory, handle_out(type), count, file, place, f->extra));
}

static int large_written(
	void *memory, int type, long count, void *file, long place, void *extra)
{
	const struct representation_of_large *f = extra;

	return IN_error(f->write(memory, handle_out(type), count, file, place, f->extra));
}

static int large_extent(int type, void *bytes, void *extra)
{
	const struct representation_of_large *f = extra;

	return IN_error(f->extent(handle_out(type), bytes, f->extra));
}

CALLEE(int, MPI_Register_datarep_c, MPI_Register_datarep_c,
	(const char *, void *, void *, void *, void *))
ADAPTER(int, MPI_Register_datarep_c, MPI_Register_datarep_c,
	(const char *name, void *read, void *write, void *extent, void *extra))
{
	struct representation_of_large *f = malloc(sizeof(*f));
	int r;

	if (!f)
		return NO_MEMORY;
	*f = (struct representation_of_large){read, write, extent, extra};
	r = CALL(MPI_Register_datarep_c, MPI_Register_datarep_c)(
		name, read ? large_read : NULL, write ? large_written : NULL, large_extent, f);
	if (r)
		free(f);
	return OUT_error(r);
}

/* ---- variable arguments ---- */

extern STUB_HIDDEN int mpich_MPI_Pcontrol(int level, ...);
EXPORTED(int, MPI_Pcontrol, (int level, ...))
{
	return OUT_error(mpich_MPI_Pcontrol(level));
}

/* ---- numbers that other languages know handles by ---- */

#define NUMBERED(name)                                                                         \
	EXPORTED(int, name##_toint, (const void *handle))                                      \
	{                                                                                      \
		return (int)(uintptr_t)handle;                                                 \
	}                                                                                      \
	EXPORTED(void *, name##_fromint, (int number))                                         \
	{                                                                                      \
		return (void *)(uintptr_t)(uint32_t)number;                                    \
	}
NUMBERED(MPI_Comm)
NUMBERED(MPI_Errhandler)
NUMBERED(MPI_Group)
NUMBERED(MPI_Info)
NUMBERED(MPI_Message)
NUMBERED(MPI_Op)
NUMBERED(MPI_Request)
NUMBERED(MPI_Session)
NUMBERED(MPI_Type)
NUMBERED(MPI_Win)

extern STUB_HIDDEN int mpich_MPI_File_c2f(void *file);
extern STUB_HIDDEN void *mpich_MPI_File_f2c(int number);

EXPORTED(int, MPI_File_toint, (void *file))
{
	return file == (void *)STANDARD_FILE_NULL ? STANDARD_FILE_NULL
						  : mpich_MPI_File_c2f(file);
}

EXPORTED(void *, MPI_File_fromint, (int number))
{
	return number == STANDARD_FILE_NULL ? (void *)STANDARD_FILE_NULL
					    : OUT_MPI_File(mpich_MPI_File_f2c(number));
}

/* ---- the ABI itself ---- */

EXPORTED(int, MPI_Abi_get_version, (int *major, int *minor))
{
	*major = 1;
	*minor = 0;
	return 0;
}

/* ---- tools ---- */

/* No number is left out here when it is 0, as one of a handle is by `gen adapter`. */
CALLEE(int, MPI_T_source_get_info, MPI_T_source_get_info,
	(int, char *, int *, char *, int *, int *, long *, long *, int *))
ADAPTER(int, MPI_T_source_get_info, MPI_T_source_get_info,
	(int source, char *name, int *name_length, char *text, int *text_length, int *ordering,
		long *ticks, long *most_ticks, void **info))
{
	int made = 0;
	int r = CALL(MPI_T_source_get_info, MPI_T_source_get_info)(source, name, name_length,
		text, text_length, ordering, ticks, most_ticks, info ? &made : NULL);

	if (!r && ordering)
		*ordering = ordering_to_own(*ordering);
	if (!r && info)
		*info = handle_out(made);
	return OUT_error(r);
}

/* There are as many datatypes as there is room for; NULL: none are asked for. */
CALLEE(int, MPI_T_event_get_info, MPI_T_event_get_info,
	(int, char *, int *, int *, int *, long *, int *, void **, int *, char *, int *, int *))
ADAPTER(int, MPI_T_event_get_info, MPI_T_event_get_info,
	(int event, char *name, int *name_length, int *verbosity, void **types, long *places,
		int *elements, void **values, void **info, char *text, int *text_length,
		int *binding))
{
	WITH_MEMORY
	size_t length = elements ? LENGTH(types, *elements) : 0;
	int *in_types = ALLOC(types, length, int);
	int made = 0, r;

	NO_MEMORY_FAILS
	for (size_t k = 0; k < length; k++)
		in_types[k] = 0;
	r = CALL(MPI_T_event_get_info, MPI_T_event_get_info)(event, name, name_length,
		verbosity, in_types, places, elements, values, info ? &made : NULL, text,
		text_length, binding);
	for (size_t k = 0; k < length && !r; k++)
		if (in_types[k])
			types[k] = handle_out(in_types[k]);
	if (!r && verbosity)
		*verbosity = OUT_verbosity(*verbosity);
	if (!r && binding)
		*binding = OUT_binding(*binding);
	if (!r && info)
		*info = handle_out(made);
	DONE return OUT_error(r);
}
