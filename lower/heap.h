/* heap.h - malloc for the libraries of the lower half (heap.c). */
#ifndef LOWER_HEAP_H
#define LOWER_HEAP_H

#include <stddef.h>
#include <stdint.h>

/* While this is set, what the thread allocates comes from the libc's own malloc: it takes no
 * place that something would have had that is made again after a restart. */
extern __thread int heap_aside;

/*
 * For contexts that another build of the driver makes, of another size, where the program knows them. For
 * one thread, before others allocate blocks of such sizes.
 *
 * heap_keep(): the place that @block had is given to nobody, but by heap_move_next(). 0, or -1: it is no
 * place of a block, it is taken, or too many are kept. heap_move_next(): the next malloc() that would return
 * @from returns @to, which is kept, if there is room for it. NULL: none does. heap_block(): the block that
 * @address is in; NULL: none of ours.
 */
int heap_keep(void *block);
void heap_move_next(void *from, void *to);
void *heap_block(void *address);

/* It has memory of its own there. libc_overrides.c's, told to who keeps track of it. */
void heap_mapped(uintptr_t start, size_t size);

#endif
