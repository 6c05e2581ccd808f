/* heap.h - malloc for the libraries of the lower half (heap.c). */
#ifndef LOWER_HEAP_H
#define LOWER_HEAP_H

#include <stddef.h>
#include <stdint.h>

/* While this is set, what the thread allocates comes from the libc's own malloc: it takes no
 * place that something would have had that is made again after a restart. */
extern __thread int heap_aside;

/* It has memory of its own there. libc_overrides.c's, told to who keeps track of it. */
void heap_mapped(uintptr_t start, size_t size);

#endif
