/*
 * fd/descriptor_range.h - the numbers of descriptors that a restart may use for what is
 * temporary: as long as there is room, where no process of the checkpoint has any.
 */
#ifndef SUPERVISOR_FD_DESCRIPTOR_RANGE_H
#define SUPERVISOR_FD_DESCRIPTOR_RANGE_H

#include "supervisor/fd/fd.h"

/* Set @r->base. */
int descriptor_range_find(struct fd_restore *r, struct err *e);

/* Let as many numbers be used as can be; and put the limit back. */
int descriptor_range_begin(struct fd_restore *r, struct err *e);
int descriptor_range_close(const struct fd_restore *r, struct err *e);

/* Duplicate @fd by @command, F_DUPFD or F_DUPFD_CLOEXEC, to a number at or above r->base; where
 * there is none, to any. */
int descriptor_range_dup(const struct fd_restore *r, int fd, int command);

/* Say that this has failed with @code; -1. */
int descriptor_range_none(const struct fd_restore *r, int code, struct err *e);

/* Whether a restart can have @count descriptors in one process, if it is allowed as many as we.
 */
int descriptor_range_check(uint64_t count, struct err *e);

#endif
