/*
 * fd/pty.h - pseudo-terminals as objects that open files lead to.
 */
#ifndef SUPERVISOR_FD_PTY_H
#define SUPERVISOR_FD_PTY_H

#include "supervisor/fd/objects_dump.h"

/* At the end of a checkpoint, when both ends have been seen: fill o->bytes. */
int fd_pty_save(struct fd_object *o, struct err *e);
void fd_pty_free(struct fd_pty *p);

/* Give object @number of a restart its settings and contents, when all its ends are open. */
int fd_pty_settle(struct fd_restore *r, uint32_t number, struct err *e);

#endif
