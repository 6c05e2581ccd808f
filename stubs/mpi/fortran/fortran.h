/*
 * fortran.h - how Open MPI's ABI differs between Fortran and C: the library for programs in Fortran
 * (libmpi_mpifh.so.40) is made of the functions for C, and of the constants of Fortran that libmpi.so.40 exports, so it
 * works over Open MPI's own and over the stub. It uses nothing else of its library.
 *
 * A LOGICAL is 0 or 1, as with gfortran; statuses and all constants are the same in both languages.
 */
#ifndef STUBS_MPI_FORTRAN_FORTRAN_H
#define STUBS_MPI_FORTRAN_FORTRAN_H

#include <stddef.h>
#include <stdint.h>

#include "shared/mpi/exchange_memory.h"

#define EXPORT      __attribute__((visibility("default")))
#define STUB_HIDDEN __attribute__((visibility("hidden")))

typedef long MPI_Aint, MPI_Offset, MPI_Count;

typedef void *C_MPI_Comm;
typedef void *C_MPI_Group;
typedef void *C_MPI_Datatype;
typedef void *C_MPI_Op;
typedef void *C_MPI_Info;
typedef void *C_MPI_Errhandler;
typedef void *C_MPI_Win;
typedef void *C_MPI_File;
typedef void *C_MPI_Request;
typedef void *C_MPI_Message;
typedef int C_MPI_Keyval;
typedef int C_MPI_Status; /* words, in both languages */

/* ---- names: one function has all that compilers and Open MPI's own modules know it by ---- */

#define NAMED(name, of) extern EXPORT __typeof__(of) name __attribute__((weak, alias(#of)));

#define FORTRAN_NAMES(m, mm, name, upper, own, of)                                             \
	NAMED(m##_##name, of)                                                                  \
	NAMED(m##_##name##_, of)                                                               \
	NAMED(m##_##name##__, of)                                                              \
	NAMED(mm##_##upper, of)                                                                \
	NAMED(mm##_##own##_f, of)                                                              \
	NAMED(mm##_##own##_f08, of)

#define FORTRAN_RETURNS(result, o, m, mm, name, upper, own, parameters)                        \
	extern EXPORT result o##_##name##_f parameters;                                        \
	FORTRAN_NAMES(m, mm, name, upper, own, o##_##name##_f)                                 \
	FORTRAN_NAMES(p##m, P##mm, name, upper, own, o##_##name##_f)                           \
	result o##_##name##_f parameters

#define FORTRAN(o, m, mm, name, upper, own, parameters)                                        \
	FORTRAN_RETURNS(void, o, m, mm, name, upper, own, parameters)

/* MPI's own functions, by hand. */
#define FORTRAN_MPI(name, upper, own, parameters)                                              \
	FORTRAN(ompi, mpi, MPI, name, upper, own, parameters)

#define ALSO_NAMED(o, m, mm, name, upper, own, other_o, other_m, other_mm, other_name,         \
	other_upper, other_own)                                                                \
	NAMED(o##_##name##_f, other_o##_##other_name##_f)                                      \
	FORTRAN_NAMES(m, mm, name, upper, own, other_o##_##other_name##_f)                     \
	FORTRAN_NAMES(p##m, P##mm, name, upper, own, other_o##_##other_name##_f)

/* ---- handles ---- */

#define HANDLE(type, name)                                                                     \
	extern void *PMPI_##name##_f2c(int number);                                            \
	extern int PMPI_##name##_c2f(void *handle);
HANDLE(MPI_Comm, Comm)
HANDLE(MPI_Group, Group)
HANDLE(MPI_Datatype, Type)
HANDLE(MPI_Op, Op)
HANDLE(MPI_Info, Info)
HANDLE(MPI_Errhandler, Errhandler)
HANDLE(MPI_Win, Win)
HANDLE(MPI_File, File)
HANDLE(MPI_Request, Request)
HANDLE(MPI_Message, Message)

#define TO_C_MPI_Comm(n)             PMPI_Comm_f2c(n)
#define TO_C_MPI_Group(n)            PMPI_Group_f2c(n)
#define TO_C_MPI_Datatype(n)         PMPI_Type_f2c(n)
#define TO_C_MPI_Op(n)               PMPI_Op_f2c(n)
#define TO_C_MPI_Info(n)             PMPI_Info_f2c(n)
#define TO_C_MPI_Errhandler(n)       PMPI_Errhandler_f2c(n)
#define TO_C_MPI_Win(n)              PMPI_Win_f2c(n)
#define TO_C_MPI_File(n)             PMPI_File_f2c(n)
#define TO_C_MPI_Request(n)          PMPI_Request_f2c(n)
#define TO_C_MPI_Message(n)          PMPI_Message_f2c(n)
#define TO_FORTRAN_MPI_Comm(h)       PMPI_Comm_c2f(h)
#define TO_FORTRAN_MPI_Group(h)      PMPI_Group_c2f(h)
#define TO_FORTRAN_MPI_Datatype(h)   PMPI_Type_c2f(h)
#define TO_FORTRAN_MPI_Op(h)         PMPI_Op_c2f(h)
#define TO_FORTRAN_MPI_Info(h)       PMPI_Info_c2f(h)
#define TO_FORTRAN_MPI_Errhandler(h) PMPI_Errhandler_c2f(h)
#define TO_FORTRAN_MPI_Win(h)        PMPI_Win_c2f(h)
#define TO_FORTRAN_MPI_File(h)       PMPI_File_c2f(h)
#define TO_FORTRAN_MPI_Request(h)    PMPI_Request_c2f(h)
#define TO_FORTRAN_MPI_Message(h)    PMPI_Message_c2f(h)

/* ---- addresses that are constants: those of libmpi.so.40, or of the program, whose definitions come first ---- */

extern int mpi_fortran_bottom_[], mpi_fortran_in_place_[], mpi_fortran_unweighted_[],
	mpi_fortran_weights_empty_[], mpi_fortran_status_ignore_[],
	mpi_fortran_statuses_ignore_[], mpi_fortran_errcodes_ignore_[],
	mpi_fortran_argv_null_[], mpi_fortran_argvs_null_[];

static inline void *BUFFER(const void *address)
{
	return address == mpi_fortran_bottom_     ? NULL
	       : address == mpi_fortran_in_place_ ? (void *)1
						  : (void *)address;
}

static inline int *WEIGHTS(const int *weights)
{
	return weights == mpi_fortran_unweighted_      ? (int *)2
	       : weights == mpi_fortran_weights_empty_ ? (int *)3
						       : (int *)weights;
}

static inline int *STATUS(const int *status)
{
	return status == mpi_fortran_status_ignore_ || status == mpi_fortran_statuses_ignore_
		       ? NULL
		       : (int *)status;
}

/* ---- numbers ---- */

enum {
	MPI_UNDEFINED = -32766,
	MPI_ERR_TYPE = 3,
	MPI_ERR_ARG = 13,
	MPI_ERR_IN_STATUS = 18,
	MPI_ERR_NO_MEM = 39,
};

static inline int FROM_ONE(int index)
{
	return index == MPI_UNDEFINED ? index : index + 1;
}

/* Whether a call that gives several indexes has given them. */
#define HAS_INDEXES(gave) (!(gave) || (gave) == MPI_ERR_IN_STATUS)

/* The optional argument for the error. */
static inline void give_error(int *ierror, int error)
{
	if (ierror)
		*ierror = error;
}

#define GIVE(error)                                                                            \
	do {                                                                                   \
		give_error(ierror, error);                                                     \
	} while (0)

/* ---- memory of a call ---- */

#define NO_MEMORY_GIVES(ierror)                                                                \
	if (memory.failed) {                                                                   \
		exchange_free(&memory);                                                        \
		give_error(ierror, MPI_ERR_NO_MEM);                                            \
		return;                                                                        \
	}

/* A request of Open MPI's own library looks at its arrays until it is complete, and nobody says when that is. The
 * stub of that library has copied them. */
extern char trecr_mpi_found[] __attribute__((weak));

#define WITH_BEGUN_MEMORY                                                                      \
	struct exchange_memory memory = {                                                      \
		.used = 0, .mores = 0, .kept = !trecr_mpi_found, .failed = 0};
#define DONE_BEGUN                                                                             \
	if (!memory.kept)                                                                      \
		exchange_free(&memory);

/* ---- strings: padded with blanks in Fortran ---- */

/* The most that a string from the library has, with its terminating NUL (MPI_MAX_PORT_NAME). */
enum { STRING_MAX = 1024 };

/* A copy without blanks at either end, ended by NUL, in the memory of the call. NULL: there is no memory. */
STUB_HIDDEN char *string_for_c(struct exchange_memory *memory, const char *text, int length);
/* Copy @from to @text, cut to @length or filled up with blanks. */
STUB_HIDDEN void string_for_fortran(char *text, int length, const char *from);

#define STRING_FOR_C(text, length)      string_for_c(&memory, text, length)
#define GIVE_STRING(text, length, from) string_for_fortran(text, length, from)

#endif
