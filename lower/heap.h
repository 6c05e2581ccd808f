/* heap.h - malloc for the libraries of the lower half (heap.c). */
#ifndef LOWER_HEAP_H
#define LOWER_HEAP_H

/* While this is set, what the thread allocates comes from the libc's own malloc: it takes no
 * place that something would have had that is made again after a restart. */
extern __thread int heap_aside;

#endif
