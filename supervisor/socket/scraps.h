/*
 * socket/scraps.h - directories in which socket files lie for a moment at a restart: those that
 * nobody is to find, and those that get another name in the end.
 *
 * They have one name (fd_restore_options), which the supervisor knows, too: a process that is
 * killed cannot clean up.
 */
#ifndef SUPERVISOR_SOCKET_SCRAPS_H
#define SUPERVISOR_SOCKET_SCRAPS_H

#include "ckpt/image_read.h"
#include "lib/err.h"

/* Path of the one in the directory for what is temporary, or of the one beside @file. Made when
 * it is not there yet; the caller's to free. NULL on failure. */
char *socket_scraps(const char *name, struct err *e);
char *socket_scraps_beside(const char *file, const char *name, struct err *e);

/* Remove all that there may be for the sockets of @job. */
void socket_scraps_remove(const struct image *job, const char *name);

#endif
