/* mpi_files.c - reads the records of shared/mpi/file_records.h, which are not trusted. */
#include "supervisor/split/mpi_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "shared/mpi/file_records.h"
#include "supervisor/split/lower_half.h"

static int read_files(const struct running_mpi *m, struct mpi_files *files, struct err *e)
{
	if (lower_peek(m->pid, (uint64_t)m->state.files, files, sizeof(*files)) ||
		files->used > MPI_FILES)
		return lower_damaged(m->pid, e);
	return 0;
}

int mpi_files_count(const struct running_mpi *m, uint32_t *count, struct err *e)
{
	struct mpi_files files;

	*count = 0;
	if (!m->pid || !m->state.files || !m->state.initialised || m->state.finalized)
		return 0;
	if (read_files(m, &files, e))
		return -1;
	*count = files.used;
	return 0;
}

/* Up to its end; pages behind it may not be there. */
static int read_text(
	const struct running_mpi *m, uint64_t at, char *text, size_t room, struct err *e)
{
	for (size_t i = 0; i < room; i++) {
		if (lower_peek(m->pid, at + i, text + i, 1))
			return lower_damaged(m->pid, e);
		if (!text[i])
			return 0;
	}
	return lower_damaged(m->pid, e);
}

static int make_path(
	const struct running_mpi *m, const struct mpi_file *f, char *path, struct err *e)
{
	char directory[PATH_MAX], name[PATH_MAX];
	const char *plain;

	if (read_text(m, (uint64_t)f->directory, directory, sizeof(directory), e) ||
		read_text(m, (uint64_t)f->name, name, sizeof(name), e))
		return -1;
	plain = mpi_file_plain_name(name);
	if (*plain == '/')
		snprintf(path, PATH_MAX, "%s", plain);
	else if (snprintf(path, PATH_MAX, "%s/%s", directory, plain) >= PATH_MAX)
		return err_set(e, ENAMETOOLONG, "%s/%s", directory, plain);
	return 0;
}

static int check_identity(
	const struct running_mpi *m, const struct mpi_file *f, const char *path, struct err *e)
{
	struct stat st;

	if (!f->inode || stat(path, &st) || st.st_dev != f->dev || st.st_ino != f->inode)
		return err_set(e, 0,
			"process %d has opened %s by MPI_File_open, and that name does not "
			"lead to "
			"the file any more: a restart could not open it again",
			m->pid, path);
	return S_ISREG(st.st_mode) ? 0
				   : err_set(e, 0,
					     "process %d has opened %s by MPI_File_open, which "
					     "is no regular file",
					     m->pid, path);
}

int mpi_file_name(
	const struct running_mpi *m, uint32_t i, struct mpi_file_name *name, struct err *e)
{
	struct mpi_files files;
	struct mpi_file f;

	if (read_files(m, &files, e))
		return -1;
	if (lower_peek(m->pid, (uint64_t)(files.slots + i), &f, sizeof(f)))
		return lower_damaged(m->pid, e);
	if (!f.real)
		return 0;
	if (make_path(m, &f, name->path, e) || check_identity(m, &f, name->path, e))
		return -1;
	name->flags = f.amode & MPI_MODE_RDONLY   ? O_RDONLY
		      : f.amode & MPI_MODE_WRONLY ? O_WRONLY
						  : O_RDWR;
	name->is_ours = f.rank == 0;
	return 1;
}
