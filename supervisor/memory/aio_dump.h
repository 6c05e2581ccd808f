/*
 * memory/aio_dump.h - contexts of asynchronous I/O (io_setup(2)) of a frozen process.
 */
#ifndef SUPERVISOR_MEMORY_AIO_DUMP_H
#define SUPERVISOR_MEMORY_AIO_DUMP_H

#include "supervisor/state/dump.h"

/* Whether @v is a context of asynchronous I/O. */
bool dump_is_aio(const struct vma *v);

/* Wait until requests in the contexts of @p have ended, that do not wait for a file. */
int dump_settle_aio(const struct process *p, struct err *e);

/* Its memory is saved as any other's. */
int dump_aio(const struct dump *d, const struct vma *v, struct image_region *r, struct err *e);

#endif
