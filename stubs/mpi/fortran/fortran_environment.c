/* The start and the end, time, memory, and arithmetic. */
#include "stubs/mpi/fortran/fortran.h"

extern int PMPI_Init(int *argc, char ***argv),
	PMPI_Init_thread(int *argc, char ***argv, int required, int *provided),
	PMPI_Pcontrol(int level, ...), PMPI_Alloc_mem(MPI_Aint size, void *info, void *base),
	PMPI_Buffer_detach(void *buffer, int *size);
extern double PMPI_Wtime(void), PMPI_Wtick(void);

FORTRAN_MPI(init, INIT, Init, (int *ierror))
{
	int argc = 0;
	char **argv = NULL;

	GIVE(PMPI_Init(&argc, &argv));
}

FORTRAN_MPI(init_thread, INIT_THREAD, Init_thread,
	(const int *required, int *provided, int *ierror))
{
	int argc = 0;
	char **argv = NULL;

	GIVE(PMPI_Init_thread(&argc, &argv, *required, provided));
}

FORTRAN_MPI(pcontrol, PCONTROL, Pcontrol, (const int *level))
{
	PMPI_Pcontrol(*level);
}

FORTRAN_RETURNS(double, ompi, mpi, MPI, wtime, WTIME, Wtime, (void))
{
	return PMPI_Wtime();
}

FORTRAN_RETURNS(double, ompi, mpi, MPI, wtick, WTICK, Wtick, (void))
{
	return PMPI_Wtick();
}

FORTRAN_RETURNS(MPI_Aint, ompi, mpi, MPI, aint_add, AINT_ADD, Aint_add,
	(const MPI_Aint *base, const MPI_Aint *displacement))
{
	return *base + *displacement;
}

FORTRAN_RETURNS(MPI_Aint, ompi, mpi, MPI, aint_diff, AINT_DIFF, Aint_diff,
	(const MPI_Aint *a, const MPI_Aint *b))
{
	return *a - *b;
}

FORTRAN_MPI(alloc_mem, ALLOC_MEM, Alloc_mem,
	(const MPI_Aint *size, const int *info, void *base, int *ierror))
{
	GIVE(PMPI_Alloc_mem(*size, PMPI_Info_f2c(*info), base));
}

/* The program has its buffer, as only C tells its address. */
FORTRAN_MPI(buffer_detach, BUFFER_DETACH, Buffer_detach, (void *buffer, int *size, int *ierror))
{
	void *address;

	GIVE(PMPI_Buffer_detach(&address, size));
}

/* A compiler must think that it looks at the argument. */
FORTRAN_MPI(f_sync_reg, F_SYNC_REG, F_sync_reg, (void *buffer))
{
}

/* ---- what gives a C_PTR has a second name in the interfaces ---- */

#define POINTER_NAME(name, upper, own)                                                         \
	ALSO_NAMED(ompi, mpi, MPI, name##_cptr, upper##_CPTR, own##_cptr, ompi, mpi, MPI,      \
		name, upper, own)
POINTER_NAME(alloc_mem, ALLOC_MEM, Alloc_mem)

extern int PMPI_Win_allocate(
	MPI_Aint size, int unit, void *info, void *comm, void *base, void **win),
	PMPI_Win_allocate_shared(
		MPI_Aint size, int unit, void *info, void *comm, void *base, void **win),
	PMPI_Win_shared_query(void *win, int rank, MPI_Aint *size, int *unit, void *base);

FORTRAN_MPI(win_allocate, WIN_ALLOCATE, Win_allocate,
	(const MPI_Aint *size, const int *unit, const int *info, const int *comm, void *base,
		int *win, int *ierror))
{
	void *made = NULL;
	int gave = PMPI_Win_allocate(
		*size, *unit, PMPI_Info_f2c(*info), PMPI_Comm_f2c(*comm), base, &made);

	if (!gave)
		*win = PMPI_Win_c2f(made);
	GIVE(gave);
}
POINTER_NAME(win_allocate, WIN_ALLOCATE, Win_allocate)

FORTRAN_MPI(win_allocate_shared, WIN_ALLOCATE_SHARED, Win_allocate_shared,
	(const MPI_Aint *size, const int *unit, const int *info, const int *comm, void *base,
		int *win, int *ierror))
{
	void *made = NULL;
	int gave = PMPI_Win_allocate_shared(
		*size, *unit, PMPI_Info_f2c(*info), PMPI_Comm_f2c(*comm), base, &made);

	if (!gave)
		*win = PMPI_Win_c2f(made);
	GIVE(gave);
}
POINTER_NAME(win_allocate_shared, WIN_ALLOCATE_SHARED, Win_allocate_shared)

FORTRAN_MPI(win_shared_query, WIN_SHARED_QUERY, Win_shared_query,
	(const int *win, const int *rank, MPI_Aint *size, int *unit, void *base, int *ierror))
{
	GIVE(PMPI_Win_shared_query(PMPI_Win_f2c(*win), *rank, size, unit, base));
}
POINTER_NAME(win_shared_query, WIN_SHARED_QUERY, Win_shared_query)

/* ---- how large a variable is, by its type and rank ---- */

#define SIZEOF_NAME(type, rank, size)                                                          \
	extern EXPORT void mpi_sizeof_##type##_##rank##_(void *, int *, int *);                \
	extern EXPORT void pmpi_sizeof_##type##_##rank##_(void *, int *, int *)                \
		__attribute__((alias("mpi_sizeof_" #type "_" #rank "_")));                     \
	void mpi_sizeof_##type##_##rank##_(void *variable, int *gives, int *ierror)            \
	{                                                                                      \
		*gives = (size);                                                               \
		give_error(ierror, 0);                                                         \
	}
#define SIZEOF(type, size)                                                                     \
	SIZEOF_NAME(type, scalar, size)                                                        \
	SIZEOF_NAME(type, r1, size)                                                            \
	SIZEOF_NAME(type, r2, size)                                                            \
	SIZEOF_NAME(type, r3, size)                                                            \
	SIZEOF_NAME(type, r4, size)                                                            \
	SIZEOF_NAME(type, r5, size)                                                            \
	SIZEOF_NAME(type, r6, size)                                                            \
	SIZEOF_NAME(type, r7, size)                                                            \
	SIZEOF_NAME(type, r8, size)                                                            \
	SIZEOF_NAME(type, r9, size)                                                            \
	SIZEOF_NAME(type, r10, size)                                                           \
	SIZEOF_NAME(type, r11, size)                                                           \
	SIZEOF_NAME(type, r12, size)                                                           \
	SIZEOF_NAME(type, r13, size)                                                           \
	SIZEOF_NAME(type, r14, size)                                                           \
	SIZEOF_NAME(type, r15, size)
SIZEOF(character, 1)
SIZEOF(logical, 4)
SIZEOF(int8, 1)
SIZEOF(int16, 2)
SIZEOF(int32, 4)
SIZEOF(int64, 8)
SIZEOF(real32, 4)
SIZEOF(real64, 8)
SIZEOF(real128, 16) SIZEOF(complex32, 8) SIZEOF(complex64, 16) SIZEOF(complex128, 32)
