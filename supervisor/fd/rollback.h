/*
 * fd/rollback.h - move what a file has gained since the checkpoint into a file beside it.
 */
#ifndef SUPERVISOR_FD_ROLLBACK_H
#define SUPERVISOR_FD_ROLLBACK_H

#include <stdint.h>

#include "lib/err.h"

/* Copy bytes @from to @to of @path to a fresh PATH.trecr-tail (.1, .2, ...), bring that to
 * disk, and cut @path to @from bytes. *tail is the new file's name, the caller's to free. */
int fd_rollback(const char *path, uint64_t from, uint64_t to, char **tail, struct err *e);

#endif
