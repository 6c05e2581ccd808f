/* The functions that programs of Open MPI's ABI call. */
#include "stubs/mpi/openmpi/exchange.inc"

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

#include "mpi.openmpi.inc"

#include "shared/mpi/exchanged_by_hand.inc"

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

/* ---- variable arguments ---- */

extern STUB_HIDDEN int mpich_MPI_Pcontrol(int level, ...);
EXPORTED(int, MPI_Pcontrol, (int level, ...))
{
	return mpich_MPI_Pcontrol(level);
}

/* ---- what programs name MPI_COMM_DUP_FN and the like ---- */

#define COPIES(name)                                                                           \
	extern EXPORT int OMPI_C_MPI_##name(                                                   \
		void *object, int key, void *extra, void *value, void *copy, int *flag)

#define DUPLICATES(name)                                                                       \
	COPIES(name);                                                                          \
	int OMPI_C_MPI_##name(                                                                 \
		void *object, int key, void *extra, void *value, void *copy, int *flag)        \
	{                                                                                      \
		*flag = 1;                                                                     \
		*(void **)copy = value;                                                        \
		return 0;                                                                      \
	}
#define COPIES_NOTHING(name)                                                                   \
	COPIES(name);                                                                          \
	int OMPI_C_MPI_##name(                                                                 \
		void *object, int key, void *extra, void *value, void *copy, int *flag)        \
	{                                                                                      \
		*flag = 0;                                                                     \
		return 0;                                                                      \
	}
#define DELETES_NOTHING(name)                                                                  \
	extern EXPORT int OMPI_C_MPI_##name(void *object, int key, void *value, void *extra);  \
	int OMPI_C_MPI_##name(void *object, int key, void *value, void *extra)                 \
	{                                                                                      \
		return 0;                                                                      \
	}
DUPLICATES(DUP_FN)
DUPLICATES(COMM_DUP_FN)
DUPLICATES(TYPE_DUP_FN)
DUPLICATES(WIN_DUP_FN)
COPIES_NOTHING(NULL_COPY_FN)
COPIES_NOTHING(COMM_NULL_COPY_FN)
COPIES_NOTHING(TYPE_NULL_COPY_FN)
COPIES_NOTHING(WIN_NULL_COPY_FN)
DELETES_NOTHING(NULL_DELETE_FN)
DELETES_NOTHING(COMM_NULL_DELETE_FN)
DELETES_NOTHING(TYPE_NULL_DELETE_FN)
DELETES_NOTHING(WIN_NULL_DELETE_FN)
