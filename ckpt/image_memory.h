/*
 * image_memory.h - memory for the metadata of open images. A restart opens the images of all processes, and then makes
 * these as copies of itself: of private memory fork(2) copies the page tables, for each process those of all images. Of
 * memory that all share it copies none.
 */
#ifndef CKPT_IMAGE_MEMORY_H
#define CKPT_IMAGE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Whether memory for images is, from now on, shared with the processes that this one makes. They do not get any more of
 * what is shared. */
void image_memory_share(bool on);

/* @size bytes, aligned as malloc(3)'s; NULL: there is no memory. Any thread may call these. */
void *image_memory_get(size_t size);
/* NULL: nothing. */
void image_memory_free(void *memory);

#endif
