/*
 * fd_kinds/rollback.h - move what a file has gained since the checkpoint into a file beside it.
 */
#ifndef SUPERVISOR_FD_KINDS_ROLLBACK_H
#define SUPERVISOR_FD_KINDS_ROLLBACK_H

#include <stdint.h>

#include "lib/err.h"

/* Copy what the file that is open as @checked has from byte @from on to a fresh PATH.trecr-tail
 * (.1, .2, ...), bring that to disk, and cut the file. It is not opened by its name again, which
 * may lead to another file by now. *tail is the new file's name, the caller's to free. */
int fd_rollback(int checked, const char *path, uint64_t from, char **tail, struct err *e);

#endif
