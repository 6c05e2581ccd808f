/*
 * fd/signal_owner.h - who gets the signals of an open file (F_SETOWN, F_SETSIG): a process, a
 * group of processes, or a single thread (F_SETOWN_EX).
 */
#ifndef SUPERVISOR_FD_SIGNAL_OWNER_H
#define SUPERVISOR_FD_SIGNAL_OWNER_H

#include "supervisor/fd/fd.h"

/* Into @x. An error is the reason only. */
int fd_owner_dump(struct fd_dump *d, const struct fd_kind *kind, const struct fd_source *s,
	struct image_description *x, struct err *e);

/* Whether it is for a restart to set the owner of @description: the owner of a stream which is not
 * the program's alone may be elsewhere, and is not the program's doing. */
bool fd_owner_is_ours(const struct fd_restore *r, uint32_t description);

/* Set owner and signal of what @description has become; not yet an owner for which
 * restore/file_owners_restore.c is. */
int fd_owner_set(struct fd_restore *r, uint32_t description, struct err *e);

#endif
