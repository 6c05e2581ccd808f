/*
 * fd/page_order.h - memory that only its mappings lead to (without CAP_CHECKPOINT_RESTORE),
 * whose pages have been put in another order by remap_file_pages(2) or mremap(2). Such a
 * program sees to it that all pages come back to be mapped; in between one may be mapped
 * nowhere, and only the object itself has it.
 */
#ifndef SUPERVISOR_FD_PAGE_ORDER_H
#define SUPERVISOR_FD_PAGE_ORDER_H

#include "supervisor/fd/objects_dump.h"
#include "supervisor/target/process.h"

/* Take note of @v, a mapping of @p, which is the last one in @o->mapped. Where it may be that
 * the object is larger than all that is mapped of it, find out, for @o->o.size. */
int fd_page_order_note(
	struct fd_object *o, struct process *p, const struct vma *v, struct err *e);

/* -1 when there is a page that is mapped nowhere. All mappings have been noted. */
int fd_page_order_check(struct fd_object *o, struct err *e);

#endif
