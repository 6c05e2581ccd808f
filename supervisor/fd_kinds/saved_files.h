/*
 * fd_kinds/saved_files.h - files whose contents are saved with the program (--save-files): files that
 * it has open for writing, and files that belong to them (an SQLite database's, saved_directories.h).
 */
#ifndef SUPERVISOR_FD_KINDS_SAVED_FILES_H
#define SUPERVISOR_FD_KINDS_SAVED_FILES_H

#include <sys/stat.h>

#include "supervisor/fd/fd.h"

struct vma;

/* At a checkpoint: @s is a regular file with a name. Saves it if that was asked for; tells
 * where it would be wise. */
int fd_saved_dump(struct fd_dump *d, const struct fd_source *s, struct err *e);

/* The same for a file that is mapped shared, to be written to. Without --save-files a small file in a
 * directory for temporary files is saved all the same, in case it is missing at the restart. */
void fd_saved_dump_mapped(struct fd_dump *d, const struct vma *v);

/* Adds the file @path to the image. @file is a path that leads to its contents, or @path itself; @st is NULL where
 * there is no such file. */
void fd_saved_add(struct fd_dump *d, const char *path, const char *file, const struct stat *st);

/* Whether it is small enough to be saved; tells if not. */
bool fd_saved_is_small(const struct fd_dump *d, const char *path, const struct stat *st);

/* A restart that puts @path back needs to make a file beside it with the contents, and another for those of
 * then. -1 with errno where it could not. */
int fd_saved_check_room(const char *path);

/* Tells that the file is not saved for that reason, which is in errno. */
void fd_saved_tell_no_room(const char *path);

/* The time of the last change of the contents, in nanoseconds since the epoch, as it is in the image. */
static inline uint64_t fd_saved_changed_at(const struct stat *st)
{
	return st->st_mtim.tv_sec * 1000000000ull + st->st_mtim.tv_nsec;
}

#endif
