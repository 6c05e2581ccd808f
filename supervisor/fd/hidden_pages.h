/*
 * fd/hidden_pages.h - memory that only its mappings lead to (without CAP_CHECKPOINT_RESTORE),
 * and what it has that is mapped nowhere at the moment: behind a mapping that was made smaller,
 * where a part was unmapped, or between pages that are put in another order (mremap(2),
 * remap_file_pages(2)). The program can map it again.
 */
#ifndef SUPERVISOR_FD_HIDDEN_PAGES_H
#define SUPERVISOR_FD_HIDDEN_PAGES_H

#include "supervisor/fd/objects_dump.h"

/* When all mappings are known: whether objects end where these do. Before the next. */
int fd_hidden_look(struct fd_dump *d, struct err *e);

/* Save what is mapped nowhere of object @number, and note how large it is. */
int fd_hidden_save(struct fd_dump *d, uint32_t number, struct err *e);

#endif
