/*
 * fd_kinds/pty.h - pseudo-terminals as objects that open files lead to.
 */
#ifndef SUPERVISOR_FD_KINDS_PTY_H
#define SUPERVISOR_FD_KINDS_PTY_H

#include "supervisor/fd/objects_dump.h"

/* At the end of a checkpoint, when both ends of each have been seen: fill its o->bytes, which
 * fd_objects_write() writes. */
int fd_ptys_save(struct fd_dump *d, struct err *e);
void fd_ptys_free(struct fd_dump *d);

/* Give the terminals of a restart their settings and contents, when all their ends are open. */
int fd_ptys_finish(struct fd_restore *r, struct err *e);

/* Whether a descriptor of the tree leads to pseudo-terminal number @index. */
bool fd_dump_has_terminal(const struct fd_dump *d, int index);

/* A descriptor of pseudo-terminal @index, for the first of a session that it controls; -1:
 * there is none. Until fd_restore_process(). */
int fd_restore_terminal(const struct fd_restore *r, uint32_t index);

/* Number + 1 of a pseudo-terminal of the checkpoint that is in use here, as far as is to be
 * seen; 0: none. Whether it has any. */
uint64_t fd_terminal_in_use(const struct checkpoint *c);
bool fd_has_terminals(const struct checkpoint *c);

#endif
