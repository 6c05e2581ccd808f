/* files.h - the records of files that the program has opened (shared/mpi/file_records.h). */
#ifndef STUBS_MPI_FILES_H
#define STUBS_MPI_FILES_H

#include "shared/mpi/file_records.h"
#include "stubs/mpi/handle_table.h"

typedef long MPI_Offset;

/* In a process that has just come to have records. */
STUB_HIDDEN void files_reset(void);

/* The file of a handle that the program gives; NULL: none that there is a record of. */
STUB_HIDDEN struct mpi_file *file_of(const void *handle);
/* What the library knows that handle by. */
STUB_HIDDEN uint64_t file_real(const void *handle);
/* What the program knows the library's handle by. */
STUB_HIDDEN void *file_handle_of(const void *real);

/* In a guarded body: a nonblocking collective call on @f has given out @r. */
STUB_HIDDEN void request_is_of_all(struct mpi_request *r, struct mpi_file *f);

#endif
