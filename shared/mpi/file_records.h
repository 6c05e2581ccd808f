/*
 * file_records.h - files that the program has opened by MPI_File_open: recorded by the stub in the upper half
 * (stubs/mpi/files.h), completed by the lower half at a checkpoint and opened again by it at a restart
 * (lower/mpi/files_replay.c); the supervisor notes their names and sizes (supervisor/split/mpi_files.h).
 *
 * What the program holds as MPI_File is the address of a record, which is the same after a restart.
 */
#ifndef SHARED_MPI_FILE_RECORDS_H
#define SHARED_MPI_FILE_RECORDS_H

#define MPI_FILES      1024 /* that there can be at a time */
#define MPI_FILE_BYTES 192  /* of a record, whose first word is the library's handle */

#ifndef __ASSEMBLER__
#include <stdint.h>

#include "shared/mpi/message_records.h"
#include "shared/mpi/mpi_state.h"

/* Of MPICH's ABI. */
enum mpi_file_mode {
	MPI_MODE_CREATE = 1,
	MPI_MODE_RDONLY = 2,
	MPI_MODE_WRONLY = 4,
	MPI_MODE_RDWR = 8,
	MPI_MODE_EXCL = 64,
	MPI_MODE_APPEND = 128,
	MPI_MODE_SEQUENTIAL = 256,
};

/* A split collective call that has been begun. */
enum mpi_split {
	MPI_NO_SPLIT,
	MPI_SPLIT_READ_ALL,
	MPI_SPLIT_READ_AT_ALL,
	MPI_SPLIT_READ_ORDERED,
	MPI_SPLIT_WRITE_ALL,
	MPI_SPLIT_WRITE_AT_ALL,
	MPI_SPLIT_WRITE_ORDERED,
};

struct mpi_file {
	uint64_t real;   /* the library's handle; 0: this is the record of no file */
	uint64_t number; /* the same in all ranks, and of no other file or communicator */
	struct mpi_count *count; /* of collective calls; NULL: they are not counted */
	uint64_t dev, inode;     /* of what was opened */
	/* The program's directory, and the name that it gave, behind it. In the arena. */
	char *directory, *name;
	uint64_t names_room;
	int32_t amode; /* as the program gave it */
	int32_t rank;  /* of this process among all that have opened it together */
	void *split_buffer;
	uint8_t split;       /* enum mpi_split: what the program is to end */
	uint8_t split_held;  /* it was ended for a checkpoint, as these say: */
	uint8_t view_failed; /* the last MPI_File_set_view, which may have left anything */
	uint8_t reserved;
	int32_t error;
	int32_t status[MPI_STATUS_INTS];
	int32_t unused;
	struct mpi_saved_values saved;
	/* Of nonblocking collective calls, if its record is still that one's. */
	struct mpi_request *latest;
	uint64_t latest_posted;
};
_Static_assert(sizeof(struct mpi_file) <= MPI_FILE_BYTES,
	"the size of records is known to entry points");

union mpi_file_slot {
	struct mpi_file file;
	char bytes[MPI_FILE_BYTES];
};

struct mpi_files {
	union mpi_file_slot *slots;       /* MPI_FILES of them */
	uint32_t used;                    /* from the first on */
	uint32_t lock;                    /* of which are free */
	struct mpi_saved_values defaults; /* of MPI_FILE_NULL: its error handler */
};

/* The name of what was opened, as systems know it: ROMIO takes what stands before a colon for the kind
 * of file system, unless it is one letter (mpi-io/open.c). */
static inline const char *mpi_file_plain_name(const char *name)
{
	const char *at = name;

	while (*at && *at != ':')
		at++;
	return *at && at > name + 1 ? at + 1 : name;
}
#endif

#endif
