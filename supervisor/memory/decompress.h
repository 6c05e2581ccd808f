/*
 * memory/decompress.h - compressed memory of an image, into a new process.
 */
#ifndef SUPERVISOR_MEMORY_DECOMPRESS_H
#define SUPERVISOR_MEMORY_DECOMPRESS_H

#include "supervisor/state/new_process.h"

/* Its memory is mapped: the compressed part of the contents (memory/decompress.c). */
int new_process_unpack(struct new_process *np);

#endif
