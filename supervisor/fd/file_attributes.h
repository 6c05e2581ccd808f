/*
 * fd/file_attributes.h - what a file has besides its contents, owner and mode, of files that a restart
 * makes anew: times, extended attributes, inode flags, the hint about how long what is written will live.
 */
#ifndef SUPERVISOR_FD_FILE_ATTRIBUTES_H
#define SUPERVISOR_FD_FILE_ATTRIBUTES_H

#include "ckpt/image_read.h"
#include "ckpt/image_write.h"

/* At a checkpoint: the attributes of @path, which is object @number. What cannot be read is left out. */
void fd_attributes_dump(struct image_writer *job, uint32_t number, const char *path);

/* At a restart, when the owner has been set: what needs the mode with which we have made it. */
void fd_attributes_restore_extended(const struct image *job, uint32_t number, int fd);
/* When all else is done: times, the hint, and flags, which may forbid everything that follows. */
void fd_attributes_restore(const struct image *job, uint32_t number, int fd);

#endif
