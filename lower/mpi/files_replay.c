/*
 * files_replay.c - the library is asked for all that it knows of a file but its contents, which are in the file system.
 * A restart opens it again by the same calls in all ranks, in the order of the files' numbers.
 */
#include "lower/mpi/files_replay.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "lower/mpi/functions.h"
#include "lower/mpi/mpi_objects.h"
#include "lower/runtime.h"
#include "shared/mpi/file_records.h"

#define DATAREP_SIZE                                                                           \
	1024 /* MPI_MAX_DATAREP_STRING is 128 in MPICH, and less than this elsewhere */
#define LONG        0x4c000807
#define NO_POSITION (-1)
#define SEEK_TO     600 /* MPI_SEEK_SET */

enum { MPI_ERR_UNSUPPORTED_OPERATION = 44 };

#define FILE_FUNCTIONS(F)                                                                      \
	F(File_open, (int comm, const char *name, int amode, int info, void **file))           \
	F(File_get_group, (void *file, int *group))                                            \
	F(File_get_info, (void *file, int *info))                                              \
	F(File_get_view,                                                                       \
		(void *file, int64_t *disp, int *etype, int *filetype, char *datarep))         \
	F(File_set_view, (void *file, int64_t disp, int etype, int filetype,                   \
				 const char *datarep, int info))                               \
	F(File_get_position, (void *file, int64_t *position))                                  \
	F(File_get_position_shared, (void *file, int64_t *position))                           \
	F(File_seek, (void *file, int64_t position, int whence))                               \
	F(File_seek_shared, (void *file, int64_t position, int whence))                        \
	F(File_get_atomicity, (void *file, int *flag))                                         \
	F(File_set_atomicity, (void *file, int flag))                                          \
	F(File_get_errhandler, (void *file, int *handler))                                     \
	F(File_set_errhandler, (void *file, int handler))                                      \
	F(File_read_all_end, (void *file, void *buffer, int *status))                          \
	F(File_read_at_all_end, (void *file, void *buffer, int *status))                       \
	F(File_read_ordered_end, (void *file, void *buffer, int *status))                      \
	F(File_write_all_end, (void *file, void *buffer, int *status))                         \
	F(File_write_at_all_end, (void *file, void *buffer, int *status))                      \
	F(File_write_ordered_end, (void *file, void *buffer, int *status))                     \
	F(Error_string, (int error, char *text, int *length))

static struct {
#define F(name, parameters) int(*name) parameters;
	FILE_FUNCTIONS(F)
#undef F
} io;
#define IO(name, ...) mpi_failed("MPI_" #name, io.name(__VA_ARGS__))

static int find_functions(void)
{
#define F(name, parameters)                                                                    \
	io.name = library_symbol("MPI_" #name);                                                \
	if (!io.name)                                                                          \
		return agent_fail("the MPI library has no MPI_" #name);
	FILE_FUNCTIONS(F)
#undef F
	return mpi_functions_find();
}

static struct mpi_file *file_number(const struct mpi_files *files, uint32_t i)
{
	struct mpi_file *f = &files->slots[i].file;

	return f->real ? f : NULL;
}

/* A library may have been built without MPI-IO. */
static int has_none(const struct mpi_files *files)
{
	return !files->used && !library_symbol("MPI_File_open");
}

/* ---- directories ---- */

/*
 * ROMIO opens a file's hidden one, of the shared pointer, by a name that counts from the working directory, when the
 * rank first needs it: all must do so in the one in which the file was opened. 0, -1 when there is no such directory.
 */
static int enter_directory(const struct mpi_file *f, int *here)
{
	*here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* A name that needs no directory is found in any. */
	if (!f->directory[0] || mpi_file_plain_name(f->name)[0] == '/')
		return 0;
	return chdir(f->directory);
}

static int go_back(int here)
{
	int r = here >= 0 ? fchdir(here) : 0;

	if (here >= 0)
		close(here);
	return r ? agent_fail("it cannot enter its working directory again") : 0;
}

/* ---- a checkpoint ---- */

/* As the program knows it; *real is what is to be set again, and freed then. */
static int save_handler(struct mpi_state *s, struct mpi_saved_values *v, void *file, int *real)
{
	const struct mpi_object *handler;

	if (IO(File_get_errhandler, file, real))
		return -1;
	handler = mpi_object_of_real(s, *real);
	return saved_put(v, handler ? handler->handle : *real);
}

static int free_handler(struct mpi_state *s, int real)
{
	return mpi_object_of_real(s, real) ? MPI_DO(Errhandler_free, &real) : 0;
}

static int save_group(struct mpi_file *f)
{
	int group, r;

	if (IO(File_get_group, (void *)f->real, &group))
		return -1;
	r = group_save(&f->saved, group);
	return MPI_DO(Group_free, &group) ? -1 : r;
}

static int save_hints(struct mpi_file *f)
{
	int info, r;

	if (IO(File_get_info, (void *)f->real, &info))
		return -1;
	r = info_save(&f->saved, info);
	return MPI_DO(Info_free, &info) ? -1 : r;
}

/*
 * MPICH 4.0.2 reports a wrong position in a view of datatypes that were resized to begin behind their first data
 * (ADIOI_Get_position()), and divides by the size of an empty one, in which there are no positions.
 */
static int check_view(const struct mpi_file *f, int etype, int filetype, int *has_positions)
{
	int behind = 0, small, large;

	if (datatype_begins_behind(filetype, &behind) < 0 || MPI_DO(Type_size, etype, &small) ||
		MPI_DO(Type_size, filetype, &large))
		return -1;
	*has_positions = small && large;
	return behind ? agent_fail("it has set a view of %s whose datatype was resized to "
				   "begin behind the "
				   "first of its data, for which MPICH reports a wrong file "
				   "position",
				f->name)
		      : 0;
}

static int save_view(struct mpi_state *s, struct mpi_file *f, int *has_positions)
{
	int64_t disp;
	int etype, filetype;
	char datarep[DATAREP_SIZE] = "";

	if (f->view_failed)
		return agent_fail("MPI_File_set_view has failed for %s, and it is not known "
				  "what view that has "
				  "left: setting one again helps",
			f->name);
	if (IO(File_get_view, (void *)f->real, &disp, &etype, &filetype, datarep) ||
		check_view(f, etype, filetype, has_positions) < 0)
		return -1;
	return saved_put(&f->saved, disp) < 0 || datatype_save_part(s, &f->saved, etype) < 0 ||
			       datatype_save_part(s, &f->saved, filetype) < 0 ||
			       saved_put_text(&f->saved, datarep) < 0
		       ? -1
		       : 0;
}

/* Asked for the shared pointer, ROMIO makes a file for it: so it is asked only in a program that uses such. */
static int uses_shared(const struct mpi_state *s, const struct mpi_file *f)
{
	if (f->amode & MPI_MODE_APPEND)
		return 1;
	for (uint32_t i = 0; i < s->calls; i++)
		if (s->called[i] == MPI_CALLED_SHARED)
			return 1;
	return 0;
}

/* Where a file system has no locks, ROMIO has no shared pointer, and says so. */
static int find_shared(const struct mpi_state *s, const struct mpi_file *f, int64_t *shared)
{
	int here, error, class = 0;

	*shared = NO_POSITION;
	if (!uses_shared(s, f))
		return 0;
	(void)enter_directory(
		f, &here); /* without it, the hidden file has been opened before */
	error = io.File_get_position_shared((void *)f->real, shared);
	if (go_back(here) < 0)
		return -1;
	if (!error)
		return 0;
	*shared = NO_POSITION;
	if (!mpi.Error_class(error, &class) && class == MPI_ERR_UNSUPPORTED_OPERATION)
		return 0;
	return mpi_failed("MPI_File_get_position_shared", error);
}

static int save_position(const struct mpi_state *s, struct mpi_file *f, int has_positions)
{
	int64_t position = NO_POSITION, shared;
	int atomic;

	if (f->amode & MPI_MODE_SEQUENTIAL)
		return agent_fail("it has opened %s with MPI_MODE_SEQUENTIAL, and the place in "
				  "such a file cannot be set again",
			f->name);
	if (find_shared(s, f, &shared) < 0)
		return -1;
	if ((has_positions && IO(File_get_position, (void *)f->real, &position)) ||
		IO(File_get_atomicity, (void *)f->real, &atomic))
		return -1;
	return saved_put(&f->saved, position) < 0 || saved_put(&f->saved, shared) < 0 ||
			       saved_put(&f->saved, atomic) < 0
		       ? -1
		       : 0;
}

/* In ROMIO all is done when it has been begun, and ending it waits for nobody. */
static void end_split(struct mpi_file *f)
{
	int (*const ends[])(void *, void *, int *) = {
		[MPI_SPLIT_READ_ALL] = io.File_read_all_end,
		[MPI_SPLIT_READ_AT_ALL] = io.File_read_at_all_end,
		[MPI_SPLIT_READ_ORDERED] = io.File_read_ordered_end,
		[MPI_SPLIT_WRITE_ALL] = io.File_write_all_end,
		[MPI_SPLIT_WRITE_AT_ALL] = io.File_write_at_all_end,
		[MPI_SPLIT_WRITE_ORDERED] = io.File_write_ordered_end};

	if (!f->split || f->split_held)
		return;
	f->error = ends[f->split]((void *)f->real, f->split_buffer, f->status);
	if (f->error)
		(void)mpi.Error_class(f->error, &f->error); /* it stays what it is */
	f->split_held = 1;
}

/* The program's handler is not to be called for what we ask. */
static int save_file(struct mpi_state *s, struct mpi_file *f)
{
	int handler, has_positions, r;

	f->saved.size = 0;
	if (save_handler(s, &f->saved, (void *)f->real, &handler) < 0 ||
		IO(File_set_errhandler, (void *)f->real, MPI_ERRORS_RETURN))
		return -1;
	end_split(f);
	r = save_group(f) < 0 || save_hints(f) < 0 || save_view(s, f, &has_positions) < 0 ||
	    save_position(s, f, has_positions) < 0;
	return IO(File_set_errhandler, (void *)f->real, handler) || free_handler(s, handler) ||
			       r
		       ? -1
		       : 0;
}

int files_save(struct mpi_state *s)
{
	struct mpi_files *files = s->files;
	int handler;

	if (!s->initialised || has_none(files))
		return 0;
	if (find_functions() < 0)
		return -1;
	files->defaults.size = 0;
	if (save_handler(s, &files->defaults, NULL, &handler) < 0 || free_handler(s, handler))
		return -1;
	for (uint32_t i = 0; i < files->used; i++) {
		struct mpi_file *f = file_number(files, i);

		if (f && save_file(s, f) < 0)
			return -1;
	}
	return 0;
}

/* ---- a restart ---- */

static int fail_open(const struct mpi_file *f, int error)
{
	char text[1024] = "";
	int length;

	if (io.Error_string(error, text, &length))
		text[0] = 0;
	return agent_fail("it cannot open %s again (MPI_File_open: %s)", f->name, text);
}

/* By the name that the program gave. */
static int open_file(const struct mpi_file *f, int comm, int info, void **file)
{
	int error = io.File_open(comm, f->name,
		f->amode & ~(MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_APPEND), info, file);

	return error ? fail_open(f, error) : 0;
}

static int make_view(struct mpi_state *s, struct saved_reader *r, void *file, int info)
{
	int64_t disp = saved_get(r);
	int etype, filetype, etype_ours, filetype_ours;
	const char *datarep;

	if (datatype_make_part(s, r, &etype, &etype_ours) < 0 ||
		datatype_make_part(s, r, &filetype, &filetype_ours) < 0)
		return -1;
	datarep = saved_get_text(r);
	if (IO(File_set_view, file, disp, etype, filetype, datarep, info))
		return -1;
	return (etype_ours && MPI_DO(Type_free, &etype)) ||
			       (filetype_ours && MPI_DO(Type_free, &filetype))
		       ? -1
		       : 0;
}

/* The shared pointer may be known to some ranks only, and is the same for all. */
static int make_position(struct saved_reader *r, void *file, int comm)
{
	enum { MPI_MAX = 0x58000001 };
	int64_t position = saved_get(r), shared = saved_get(r), all;
	int atomic = saved_get(r);

	if (MPI_DO(Allreduce, &shared, &all, 1, LONG, MPI_MAX, comm) ||
		(all != NO_POSITION && (IO(File_seek_shared, file, all, SEEK_TO) ||
					       IO(File_get_position_shared, file, &all))) ||
		(position != NO_POSITION && IO(File_seek, file, position, SEEK_TO)))
		return -1;
	return atomic ? IO(File_set_atomicity, file, atomic) : 0;
}

static int make_comm(struct saved_reader *r, const struct mpi_file *f, int *comm)
{
	int group;

	return group_make(r, &group) < 0 ||
			       MPI_DO(Comm_create_group, MPI_COMM_WORLD, group,
				       (int)(f->number & 0x7fff), comm) ||
			       MPI_DO(Group_free, &group)
		       ? -1
		       : 0;
}

/* In the directory that the program had when it opened the file. */
static int make_there(
	struct mpi_state *s, struct mpi_file *f, struct saved_reader *r, int comm, void **file)
{
	int info, here, failed;

	if (info_make(r, &info) < 0)
		return -1;
	if (enter_directory(f, &here) < 0)
		failed = agent_fail(
			"it cannot enter %s, where it has opened %s", f->directory, f->name);
	else
		failed = open_file(f, comm, info, file) < 0 ||
			 make_view(s, r, *file, info) < 0 || make_position(r, *file, comm) < 0;
	return go_back(here) < 0 || MPI_DO(Info_free, &info) || failed ? -1 : 0;
}

static int make_file(struct mpi_state *s, struct mpi_file *f)
{
	struct saved_reader r = {f->saved.bytes};
	int handler = mpi_real(s, saved_get(&r)), comm;
	void *file;

	if (make_comm(&r, f, &comm) < 0 || make_there(s, f, &r, comm, &file) < 0)
		return -1;
	f->real = (uint64_t)file;
	return IO(File_set_errhandler, file, handler) || MPI_DO(Comm_free, &comm) ? -1 : 0;
}

static int by_number(const void *a, const void *b)
{
	const struct mpi_file *x = *(struct mpi_file *const *)a;
	const struct mpi_file *y = *(struct mpi_file *const *)b;

	return x->number < y->number ? -1 : x->number > y->number;
}

static int make_all(struct mpi_state *s, struct mpi_file **sorted)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < s->files->used; i++)
		if (file_number(s->files, i))
			sorted[count++] = file_number(s->files, i);
	qsort(sorted, count, sizeof(struct mpi_file *), by_number);
	for (uint32_t i = 0; i < count; i++)
		if (make_file(s, sorted[i]) < 0)
			return -1;
	return 0;
}

int files_make(struct mpi_state *s)
{
	struct saved_reader r = {s->files->defaults.bytes};
	struct mpi_file **sorted;
	int failed;

	if (!s->initialised || has_none(s->files))
		return 0;
	if (find_functions() < 0)
		return -1;
	sorted = calloc(s->files->used + 1ul, sizeof(struct mpi_file *));
	if (!sorted)
		return agent_fail("no memory for %u files", s->files->used);
	failed = make_all(s, sorted) < 0 ||
		 IO(File_set_errhandler, NULL, mpi_real(s, saved_get(&r)));
	free(sorted);
	return failed ? -1 : 0;
}
