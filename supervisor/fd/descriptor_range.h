/*
 * fd/descriptor_range.h - the numbers of descriptors that a restart may use for what is
 * temporary: where no process of the checkpoint has any, and as the resource limit lets it.
 */
#ifndef SUPERVISOR_FD_DESCRIPTOR_RANGE_H
#define SUPERVISOR_FD_DESCRIPTOR_RANGE_H

#include "supervisor/fd/kinds.h"

/* Set @r->base and @r->ceiling, between which they are. */
int descriptor_range_find(struct fd_restore *r, struct err *e);

/* Let those numbers be used, and not one above; then any number, for what goes to its place;
 * and put the limit back. */
int descriptor_range_begin(struct fd_restore *r, struct err *e);
int descriptor_range_open(const struct fd_restore *r, struct err *e);
int descriptor_range_close(const struct fd_restore *r, struct err *e);

/* Say that there are not enough of them: @code is that of fcntl(F_DUPFD). -1. */
int descriptor_range_none(const struct fd_restore *r, int code, struct err *e);

/* Whether a restart can have @count descriptors in one process, if it is allowed as many as we.
 */
int descriptor_range_check(uint64_t count, struct err *e);

#endif
