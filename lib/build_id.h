/*
 * build_id.h - the build-id of an ELF file (ld --build-id).
 *
 * By hand and not with libelf, as that and what it needs would double the time that the tools
 * take to start.
 */
#ifndef LIB_BUILD_ID_H
#define LIB_BUILD_ID_H

#include <stddef.h>
#include <stdint.h>

/* Read the build-id of the 64-bit file open as @fd, @room bytes at most. Returns its size; 0
 * when there is none, or no such file. */
size_t build_id_read(int fd, uint8_t *id, size_t room);

#endif
