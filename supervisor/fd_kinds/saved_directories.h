/*
 * fd_kinds/saved_directories.h - directories whose files belong together, such as those of a database server:
 * some are open, the others are opened, rewritten, renamed and removed as it runs. With
 * --save-files all of them are saved.
 */
#ifndef SUPERVISOR_FD_KINDS_SAVED_DIRECTORIES_H
#define SUPERVISOR_FD_KINDS_SAVED_DIRECTORIES_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "lib/err.h"

/* The directory of the set to which @path, a file open for writing, belongs: the caller's to free. NULL: it belongs to
 * no set that is known and that only @owner (the file's), we and root can write to. */
char *fd_set_of(const char *path, uid_t owner);

/* Whether @directory is one, of @owner, us or root, to which not everybody may write. */
bool fd_set_is_own(const char *directory, uid_t owner);

struct fd_set_file {
	int in; /* the directory */
	const char *name, *path;
	struct stat st; /* of a symbolic link itself */
};

/* It may be renamed meanwhile. */
typedef int fd_set_found(void *arg, const struct fd_set_file *f, struct err *e);

struct fd_set_walk {
	fd_set_found *found;
	/* A directory that cannot be looked into; may be NULL. */
	void (*skipped)(void *arg, const char *path, const char *why);
	/* Whether to look into a directory below, which may be renamed; may be NULL. */
	bool (*enters)(void *arg, const struct fd_set_file *f);
	/* A directory below that is left out because of checkpoints, or members of a job, in it; may be NULL. */
	void (*left_out)(void *arg, const char *path);
	bool with_asides; /* also what a restart has moved aside */
	void *arg;
};

/* Call @w->found with all but directories in the directory @fd, which is closed, and below. Left out are files that a
 * restart has moved aside, checkpoints and directories of checkpoints below, checkpoints in @fd itself, and the files of a
 * job's members; no symbolic link is followed. With @w->skipped, a file or directory that cannot be looked at is reported to that, and is no
 * failure. */
int fd_set_walk(const struct fd_set_walk *w, int fd, const char *directory, struct err *e);

#endif
