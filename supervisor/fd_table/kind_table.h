/*
 * fd_table/kind_table.h - the table of the kinds of open files (fd/fd.h).
 */
#ifndef SUPERVISOR_FD_TABLE_KIND_TABLE_H
#define SUPERVISOR_FD_TABLE_KIND_TABLE_H

#include "supervisor/fd_kinds/fd_kinds.h"

/* The row whose match() says yes, or NULL: then fd_unsupported() has the reason. */
const struct fd_kind *fd_kind_match(const struct fd_dump *d, const struct fd_source *s);

/* The row of @kind; NULL for a number that is none. */
const struct fd_kind *fd_kind_find(uint32_t kind);

/* One line about a description ("pipe, write end, 17 bytes in it") into @out. */
void fd_show(const struct image *job, const struct image_description *x, struct buf *out);

#endif
