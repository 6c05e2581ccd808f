/*
 * files_split.c - split collective calls. What is under way between the two is ended by the lower half for a
 * checkpoint, and held in the file's record until the program ends it.
 */
#include "stubs/mpi/files.h"
#include "stubs/mpi/requests.h"

#include "mpi.index.h"

extern STUB_HIDDEN int real_MPI_File_call_errhandler(void *file, int error);

enum {
	MPI_ERR_IO = 32,
};

/* One is held, and so the library does not know that there is one already. */
static int is_held(const void *file)
{
	const struct mpi_file *f = file_of(file);

	return f && f->split_held;
}

static int refuse_second(void *file)
{
	real_MPI_File_call_errhandler(file, MPI_ERR_IO);
	return MPI_ERR_IO;
}

static int split_begun(void *file, const void *buffer, enum mpi_split what, int result)
{
	struct mpi_file *f = file_of(file);

	if (!f || result)
		return result;
	f->split = what;
	f->split_buffer = (void *)buffer;
	return 0;
}

static int split_ended(void *file, int result)
{
	struct mpi_file *f = file_of(file);

	if (f && !result)
		f->split = MPI_NO_SPLIT;
	return result;
}

static int end_held(void *file, int *status)
{
	struct mpi_file *f = file_of(file);

	f->split = MPI_NO_SPLIT;
	f->split_held = 0;
	if (status != STATUS_IGNORE)
		for (int i = 0; i < MPI_STATUS_ERROR; i++)
			status[i] = f->status[i];
	if (f->error)
		real_MPI_File_call_errhandler(file, f->error);
	return f->error;
}

#define END(name, what)                                                                        \
	BY_HAND(MPI_File_##name##_end, (void *file, void *buffer, int *status));               \
	int body_MPI_File_##name##_end(void *file, void *buffer, int *status)                  \
	{                                                                                      \
		if (is_held(file))                                                             \
			return end_held(file, status);                                         \
		return split_ended(file, real_MPI_File_##name##_end(file, buffer, status));    \
	}

#define BEGIN(name, what, count_type, suffix)                                                  \
	BY_HAND(MPI_File_##name##_begin##suffix,                                               \
		(void *file, void *buffer, count_type count, MPI_Datatype type));              \
	int body_MPI_File_##name##_begin##suffix(                                              \
		void *file, void *buffer, count_type count, MPI_Datatype type)                 \
	{                                                                                      \
		if (is_held(file))                                                             \
			return refuse_second(file);                                            \
		return split_begun(file, buffer, what,                                         \
			real_MPI_File_##name##_begin##suffix(file, buffer, count, type));      \
	}

#define BEGIN_AT(name, what, count_type, suffix)                                               \
	BY_HAND(MPI_File_##name##_begin##suffix,                                               \
		(void *file, MPI_Offset at, void *buffer, count_type count,                    \
			MPI_Datatype type));                                                   \
	int body_MPI_File_##name##_begin##suffix(                                              \
		void *file, MPI_Offset at, void *buffer, count_type count, MPI_Datatype type)  \
	{                                                                                      \
		if (is_held(file))                                                             \
			return refuse_second(file);                                            \
		return split_begun(file, buffer, what,                                         \
			real_MPI_File_##name##_begin##suffix(file, at, buffer, count, type));  \
	}

#define SPLIT(begin, name, what)                                                               \
	begin(name, what, int, ) begin(name, what, MPI_Count, _c) END(name, what)

SPLIT(BEGIN, read_all, MPI_SPLIT_READ_ALL)
SPLIT(BEGIN_AT, read_at_all, MPI_SPLIT_READ_AT_ALL)
SPLIT(BEGIN, read_ordered, MPI_SPLIT_READ_ORDERED)
SPLIT(BEGIN, write_all, MPI_SPLIT_WRITE_ALL)
SPLIT(BEGIN_AT, write_at_all, MPI_SPLIT_WRITE_AT_ALL)
SPLIT(BEGIN, write_ordered, MPI_SPLIT_WRITE_ORDERED)
