/* handle_table.h - the objects behind the program's handles (shared/mpi/mpi_state.h). */
#ifndef STUBS_MPI_HANDLE_TABLE_H
#define STUBS_MPI_HANDLE_TABLE_H

#include "shared/mpi/mpi_state.h"
#include "stubs/library.h"

typedef int MPI_Comm, MPI_Info, MPI_Errhandler, MPI_Session, MPI_Fint, MPI_Keyval, MPI_Datatype,
	MPI_Op, MPI_Win, MPI_Group;
typedef long MPI_Count, MPI_Aint;

enum {
	MPI_ERR_BUFFER = 1,
	MPI_ERR_COMM = 5,
	MPI_ERR_RANK = 6,
	MPI_ERR_GROUP = 8,
	MPI_ERR_ARG = 12,
	MPI_ERR_TRUNCATE = 14,
	MPI_ERR_OTHER = 15,
	MPI_ERR_INTERN = 16,
	MPI_ERR_UNSUPPORTED_OPERATION = 44,
	MPI_ERR_LOCKTYPE = 47,
	MPI_ERR_RMA_SYNC = 50,
	MPI_ERR_SESSION = 75,
};

/* A function that is written by hand, and the real one. A macro, as both are declared by one name. */
#define BY_HAND(name, parameters)                                                              \
	extern STUB_HIDDEN int body_##name parameters, real_##name parameters

extern STUB_HIDDEN struct mpi_state mpi_state;
/* Addresses of the library's functions: code of our own that waits, while the library is reserved
 * (library_reserved.c). */
extern STUB_HIDDEN void *mpi_targets[];
STUB_HIDDEN void library_reserve(int begin);

/*
 * The error that the last function of the program's was told of in this thread, an error handler. MPICH 5.0.2 returns 0 from a call
 * that has failed, when such a function has returned: whether it has failed, what should be given out shows.
 */
static inline int error_told(void)
{
	return *crossing_thread_told();
}

static inline void tell_error(int code)
{
	*crossing_thread_told() = code;
}

/* What a call has come to, for its result @r; @given: what it was to give out is there. */
static inline int result_of(int r, int given)
{
	int told = r || given ? 0 : error_told();

	return r || given ? r : told ? told : MPI_ERR_OTHER;
}

/* In a process that has just come to have records. */
STUB_HIDDEN void objects_reset(void);

/* The object of a handle that the program gives; NULL: it has none. */
STUB_HIDDEN struct mpi_object *object_of(int32_t handle);

/* A new object for what the real library calls @real; NULL: there are too many. */
STUB_HIDDEN struct mpi_object *object_new(enum mpi_kind kind, int32_t real);

/* The real library has another handle for it now. */
STUB_HIDDEN void object_rename(struct mpi_object *o, int32_t real);

/* The library has destroyed it. */
STUB_HIDDEN void object_drop(struct mpi_object *o);

/* What the program knows @real by. */
STUB_HIDDEN int32_t handle_of(int32_t real);

/* The same for a handle that a call has given out and that need not be a new one. @counted: each
 * time it is given out, it is to be freed once. */
STUB_HIDDEN int32_t handle_given(enum mpi_kind kind, int32_t real, int counted);

/* Make the call with the program's arguments, with handles exchanged in both directions. */
STUB_HIDDEN int mpi_perform(unsigned index, const uint64_t *arguments);

/* Make a call with arguments that are the library's already. */
STUB_HIDDEN int mpi_call_words(void **slot, const uint64_t words[16]);

#endif
