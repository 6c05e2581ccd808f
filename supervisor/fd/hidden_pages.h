/*
 * fd/hidden_pages.h - pages of shared memory that no mapping shows at the moment, where only
 * mappings lead to the memory (without CAP_CHECKPOINT_RESTORE): they are behind a mapping that was made
 * smaller, where a part was unmapped, or between pages that are in another order (mremap(2),
 * remap_file_pages(2)). The program can map them again.
 */
#ifndef SUPERVISOR_FD_HIDDEN_PAGES_H
#define SUPERVISOR_FD_HIDDEN_PAGES_H

#include "supervisor/fd/objects_dump.h"

/* Find out whether objects end where their mappings do. When all mappings are known, before fd_hidden_save(). */
int fd_hidden_look(struct fd_dump *d, struct err *e);

/* Save the pages of object @number that are mapped nowhere, and note the size of the object. */
int fd_hidden_save(struct fd_dump *d, uint32_t number, struct err *e);

#endif
