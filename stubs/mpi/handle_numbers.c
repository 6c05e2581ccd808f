/*
 * handle_numbers.c - what Fortran and other languages know handles by: in MPICH's ABI handles are numbers in C, too, but
 * for those of files.
 */
#include "stubs/mpi/files.h"
#include "stubs/mpi/handle_table.h"

#define SAME(name)                                                                             \
	extern STUB_HIDDEN int body_##name(int handle);                                        \
	int body_##name(int handle)                                                            \
	{                                                                                      \
		return handle;                                                                 \
	}
#define NUMBERED(name)                                                                         \
	SAME(name##_toint)                                                                     \
	SAME(name##_fromint)
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

extern STUB_HIDDEN int body_MPI_File_c2f(void *file), body_MPI_File_toint(void *file);
int body_MPI_File_toint(void *file)
{
	return body_MPI_File_c2f(file);
}

extern STUB_HIDDEN void *body_MPI_File_f2c(int number), *body_MPI_File_fromint(int number);
void *body_MPI_File_fromint(int number)
{
	return body_MPI_File_f2c(number);
}
