/*
 * file_kinds/saved_files.h - files whose contents are saved with the program (--save-files): files that
 * it has open for writing, and those beside an SQLite database.
 */
#ifndef SUPERVISOR_FILE_KINDS_SAVED_FILES_H
#define SUPERVISOR_FILE_KINDS_SAVED_FILES_H

#include "supervisor/fd/fd.h"

struct vma;

/* At a checkpoint: @s is a regular file with a name. Saves it if that was asked for; tells
 * where it would be wise. */
int fd_saved_dump(struct fd_dump *d, const struct fd_source *s, struct err *e);

/* The same for a file that is mapped shared, to be written to. Without --save-files a small file in a
 * directory for temporary files is saved all the same, in case it is missing at the restart. */
void fd_saved_dump_mapped(struct fd_dump *d, const struct vma *v);

/* Whether the contents of @path are in the checkpoint, and a restart will put them there. */
bool fd_saved_in(const struct image *job, const char *path);

/* Whether a restart will put any file back. */
bool fd_saved_needed(const struct image *job);

/* At a restart: put back what has changed since, in the same file where that is there and may
 * be written to. What it holds now is kept as FILE.trecr-aside (.1, .2, ...). */
int fd_saved_put_back(const struct image *job, void (*notice)(const char *line), struct err *e);

#endif
