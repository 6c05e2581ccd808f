/* Variables of libmpi.so.40. A program at a fixed address has copies of them, as large as these are. */
#include "stubs/mpi/openmpi/predefined.h"

#include <stdbool.h>

#include "shared/records.h"

#define OBJECT(type, symbol, size, number, number_in_fortran)                                  \
	union variable_##symbol {                                                              \
		struct predefined head;                                                        \
		char room[size];                                                               \
	};                                                                                     \
	extern EXPORT union variable_##symbol symbol;                                          \
	union variable_##symbol symbol = {{(int)(number), (number_in_fortran)}};
#include "mpi.openmpi.h"
#undef OBJECT

/* MPI_MESSAGE_NULL has the number of MPI_REQUEST_NULL, and is looked at by itself. */
#define AT_MPI_Message(symbol, number)
#define AT(symbol, number)                [MPI_PLACE(number)] = &(symbol),
#define AT_MPI_Comm(symbol, number)       AT(symbol, number)
#define AT_MPI_Group(symbol, number)      AT(symbol, number)
#define AT_MPI_Datatype(symbol, number)   AT(symbol, number)
#define AT_MPI_Op(symbol, number)         AT(symbol, number)
#define AT_MPI_Info(symbol, number)       AT(symbol, number)
#define AT_MPI_Errhandler(symbol, number) AT(symbol, number)
#define AT_MPI_Win(symbol, number)        AT(symbol, number)
#define AT_MPI_File(symbol, number)       AT(symbol, number)
#define AT_MPI_Request(symbol, number)    AT(symbol, number)

#define OBJECT(type, symbol, size, number, number_in_fortran) AT_##type(symbol, number)
void *const predefined_handles[MPI_PLACES] = {
#include "mpi.openmpi.h"
};
#undef OBJECT

uintptr_t predefined_first = UINTPTR_MAX, predefined_last;
extern STUB_HIDDEN struct crossing_library mpi_library;

/* ---- constants of Fortran: addresses, which libraries for it look up here ---- */

#define FORTRAN_CONSTANT(name, words)                                                          \
	extern EXPORT int mpi_fortran_##name##_[words];                                        \
	int mpi_fortran_##name##_[words];
FORTRAN_CONSTANT(bottom, 1)
FORTRAN_CONSTANT(in_place, 1)
FORTRAN_CONSTANT(unweighted, 1)
FORTRAN_CONSTANT(weights_empty, 1)
FORTRAN_CONSTANT(status_ignore, 6)
FORTRAN_CONSTANT(statuses_ignore, 6)
FORTRAN_CONSTANT(errcodes_ignore, 1)
FORTRAN_CONSTANT(argv_null, 1)
FORTRAN_CONSTANT(argvs_null, 1)

/* What C compares statuses of Fortran with (libmpich.c): a program in Fortran may have its own constants, whose
 * addresses ld.so knows. */
extern EXPORT int *MPI_F_STATUS_IGNORE, *MPI_F_STATUSES_IGNORE;

static void __attribute__((constructor)) set_up(void)
{
	mpi_library.abi = MPI_ABI_OPENMPI;
	MPI_F_STATUS_IGNORE = mpi_fortran_status_ignore_;
	MPI_F_STATUSES_IGNORE = mpi_fortran_statuses_ignore_;
	for (size_t i = 0; i < MPI_PLACES; i++) {
		uintptr_t at = (uintptr_t)predefined_handles[i];

		if (at && at < predefined_first)
			predefined_first = at;
		if (at > predefined_last)
			predefined_last = at;
	}
}

/* ---- numbers that Fortran knows them by ---- */

enum kind {
	KIND_MPI_Comm,
	KIND_MPI_Group,
	KIND_MPI_Datatype,
	KIND_MPI_Op,
	KIND_MPI_Info,
	KIND_MPI_Errhandler,
	KIND_MPI_Win,
	KIND_MPI_File,
	KIND_MPI_Request,
	KIND_MPI_Message,
	KINDS,
};

enum { NUMBERS = 128 }; /* more than any kind has */

#define OBJECT(type, symbol, size, number, number_in_fortran)                                  \
	{KIND_##type, &(symbol), number_in_fortran},
static const struct {
	enum kind kind;
	void *handle;
	int number;
} numbers[] = {
#include "mpi.openmpi.h"
};
#undef OBJECT

static void *by_number[KINDS][NUMBERS];

/* Of those with one number, which versions have had, the first one counts. */
static void __attribute__((constructor)) set_numbers(void)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		void **at = &by_number[numbers[i].kind][numbers[i].number];

		if (!*at)
			*at = numbers[i].handle;
	}
}

static int to_fortran(const void *handle)
{
	uintptr_t value = (uintptr_t)handle;

	return value >> 31 == 1 || !value ? (int)value
					  : ((const struct predefined *)handle)->fortran;
}

static void *from_fortran(enum kind kind, int number)
{
	if (number < 0)
		return (void *)(uintptr_t)(uint32_t)number;
	return number < NUMBERS ? by_number[kind][number] : NULL;
}

#define NUMBERED(name, type)                                                                   \
	EXPORTED(int, name##_c2f, (const void *handle))                                        \
	{                                                                                      \
		return to_fortran(handle);                                                     \
	}                                                                                      \
	EXPORTED(void *, name##_f2c, (int number))                                             \
	{                                                                                      \
		return from_fortran(KIND_##type, number);                                      \
	}
NUMBERED(MPI_Comm, MPI_Comm)
NUMBERED(MPI_Errhandler, MPI_Errhandler)
NUMBERED(MPI_Group, MPI_Group)
NUMBERED(MPI_Info, MPI_Info)
NUMBERED(MPI_Message, MPI_Message)
NUMBERED(MPI_Op, MPI_Op)
NUMBERED(MPI_Request, MPI_Request)
NUMBERED(MPI_Type, MPI_Datatype)
NUMBERED(MPI_Win, MPI_Win)

extern STUB_HIDDEN int mpich_MPI_File_c2f(void *file);
extern STUB_HIDDEN void *mpich_MPI_File_f2c(int number);

EXPORTED(int, MPI_File_c2f, (void *file))
{
	return file == &ompi_mpi_file_null ? 0 : mpich_MPI_File_c2f(file);
}

EXPORTED(void *, MPI_File_f2c, (int number))
{
	return number ? mpich_MPI_File_f2c(number) : &ompi_mpi_file_null;
}

/* ---- statuses ---- */

enum { MPI_ERR_IN_STATUS = 18 };

extern int PMPI_Comm_call_errhandler(void *comm, int code);

static bool is_ignored(const int *status)
{
	return !status || status == MPI_F_STATUS_IGNORE || status == MPI_F_STATUSES_IGNORE;
}

/* One of Fortran is the same words. */
static int copy_status(int *to, const int *from)
{
	if (is_ignored(to) || is_ignored(from)) {
		PMPI_Comm_call_errhandler(&ompi_mpi_comm_world, MPI_ERR_IN_STATUS);
		return MPI_ERR_IN_STATUS;
	}
	for (size_t i = 0; i < sizeof(struct openmpi_status) / sizeof(*to); i++)
		to[i] = from[i];
	return 0;
}

EXPORTED(int, MPI_Status_c2f, (const int *from, int *to))
{
	return copy_status(to, from);
}

EXPORTED(int, MPI_Status_f2c, (const int *from, int *to))
{
	return copy_status(to, from);
}
