/*
 * files.c - files are opened and closed, and what of them the stub answers itself. All other calls are passed on,
 * with the library's handle in place of the record's address (stubs/mpi/mpi_entry_macros.inc).
 */
#include "stubs/mpi/files.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/raw.h"
#include "stubs/crossing/crossing.h"
#include "stubs/mpi/collective_gate.h"

#include "mpi.index.h"

/* Entry points know where it is. */
STUB_HIDDEN union mpi_file_slot mpi_file_slots[MPI_FILES];
static struct mpi_files files = {.slots = mpi_file_slots};

STUB_HIDDEN void files_reset(void)
{
	raw_zero(mpi_file_slots, files.used * sizeof(*mpi_file_slots));
	files = (struct mpi_files){.slots = mpi_file_slots};
	mpi_state.files = &files;
}

/* ---- handles ---- */

static struct mpi_file *file_number(unsigned long number)
{
	struct mpi_file *f = number < MPI_FILES ? &mpi_file_slots[number].file : NULL;

	return f && f->real ? f : NULL;
}

STUB_HIDDEN struct mpi_file *file_of(const void *handle)
{
	uint64_t at = (uint64_t)handle - (uint64_t)mpi_file_slots;

	return at % MPI_FILE_BYTES ? NULL : file_number(at / MPI_FILE_BYTES);
}

STUB_HIDDEN uint64_t file_real(const void *handle)
{
	const struct mpi_file *f = file_of(handle);

	return f ? f->real : (uint64_t)handle;
}

STUB_HIDDEN void *file_handle_of(const void *real)
{
	for (uint32_t i = 0; real && i < files.used; i++)
		if (mpi_file_slots[i].file.real == (uint64_t)real)
			return &mpi_file_slots[i].file;
	return (void *)real;
}

/* Fortran's: their numbers, from 1 on. */
BY_HAND(MPI_File_c2f, (void *file));
int body_MPI_File_c2f(void *file)
{
	const struct mpi_file *f = file_of(file);

	return f ? (int)((const union mpi_file_slot *)f - mpi_file_slots) + 1
		 : real_MPI_File_c2f(file);
}

extern STUB_HIDDEN void *body_MPI_File_f2c(int file), *real_MPI_File_f2c(int file);
void *body_MPI_File_f2c(int file)
{
	struct mpi_file *f = file_number(file - 1u);

	return f ? f : real_MPI_File_f2c(file);
}

BY_HAND(MPI_File_get_amode, (void *file, int *amode));
int body_MPI_File_get_amode(void *file, int *amode)
{
	const struct mpi_file *f = file_of(file);
	int r = real_MPI_File_get_amode(file, amode);

	/* A restart opens it without some of that. */
	if (f && !r)
		*amode = f->amode;
	return r;
}

/* ---- opened ---- */

extern STUB_HIDDEN int real_MPI_Comm_rank(MPI_Comm comm, int *rank);

/* Others have no use for it until it has the library's handle. */
static struct mpi_file *take_slot(const void *real)
{
	struct mpi_file *f = NULL;

	raw_lock(&files.lock);
	for (uint32_t i = 0; i < MPI_FILES && !f; i++)
		if (!mpi_file_slots[i].file.real)
			f = &mpi_file_slots[i].file;
	if (f) {
		uint32_t number = (union mpi_file_slot *)f - mpi_file_slots;

		if (number >= files.used)
			files.used = number + 1;
		f->real = (uint64_t)real;
		f->split = f->split_held = f->view_failed = 0;
		f->latest = NULL;
	}
	raw_unlock(&files.lock);
	return f;
}

/* The directory and the name, as the program may have another one when the name is needed. */
static int keep_names(struct mpi_file *f, const char *name)
{
	char directory[4096];
	size_t first, second = strlen(name) + 1;

	if (!getcwd(directory, sizeof(directory)))
		directory[0] = 0;
	first = strlen(directory) + 1;
	if (f->names_room < first + second) {
		f->names_room = 0;
		f->directory = records_alloc(2 * (first + second));
		if (!f->directory)
			return -1;
		f->names_room = 2 * (first + second);
	}
	f->name = f->directory + first;
	raw_copy(f->directory, directory, first);
	raw_copy(f->name, name, second);
	return 0;
}

/* Which file the name leads to now; a checkpoint looks whether it still does. */
static void keep_identity(struct mpi_file *f)
{
	struct stat st;

	f->dev = f->inode = 0;
	if (stat(mpi_file_plain_name(f->name), &st))
		return;
	f->dev = st.st_dev;
	f->inode = st.st_ino;
}

static void *file_given(MPI_Comm comm, const char *name, int amode, void *real)
{
	struct mpi_count *count = mpi_state.lower_is_openmpi ? NULL : gate_number_file(comm);
	struct mpi_file *f = mpi_state.lower_is_openmpi ? NULL : take_slot(real);

	if (!f || keep_names(f, name)) {
		if (f)
			f->real = 0;
		mpi_state.called[INDEX_MPI_File_open] = MPI_CALLED_UNSAVED;
		return real;
	}
	f->count = count;
	f->number = count ? count->number : 0;
	f->amode = amode;
	f->rank = 0;
	real_MPI_Comm_rank(comm, &f->rank);
	keep_identity(f);
	return f;
}

BY_HAND(MPI_File_open,
	(MPI_Comm comm, const char *name, int amode, MPI_Info info, void **file));
int body_MPI_File_open(MPI_Comm comm, const char *name, int amode, MPI_Info info, void **file)
{
	static char untouched;
	void *real = &untouched;
	int r = real_MPI_File_open(comm, name, amode, info, &real);

	r = result_of(r, real && real != &untouched);
	if (!r)
		*file = file_given(comm, name, amode, real);
	else if (real != &untouched)
		*file = real;
	return r;
}

/* ROMIO checks a view when it has been set. */
BY_HAND(MPI_File_set_view, (void *file, MPI_Offset disp, MPI_Datatype etype,
				   MPI_Datatype filetype, const char *datarep, MPI_Info info));
int body_MPI_File_set_view(void *file, MPI_Offset disp, MPI_Datatype etype,
	MPI_Datatype filetype, const char *datarep, MPI_Info info)
{
	struct mpi_file *f = file_of(file);
	int r = real_MPI_File_set_view(file, disp, etype, filetype, datarep, info);

	if (f)
		f->view_failed = r != 0;
	return r;
}

/* ---- closed ---- */

BY_HAND(MPI_File_close, (void **file));
int body_MPI_File_close(void **file)
{
	struct mpi_file *f = file ? file_of(*file) : NULL;
	void *real;
	int r;

	if (!f)
		return real_MPI_File_close(file);
	real = (void *)f->real;
	r = real_MPI_File_close(&real);
	if (r)
		return r;
	*file = NULL;
	__atomic_store_n(&f->real, 0, __ATOMIC_RELEASE);
	return 0;
}
