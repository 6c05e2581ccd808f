/* heap.h - malloc for the libraries of the lower half (heap.c). */
#ifndef LOWER_HEAP_H
#define LOWER_HEAP_H

#include <stddef.h>
#include <stdint.h>

/* While this is set, what the thread allocates comes from the libc's own malloc: it takes no
 * place that something would have had that is made again after a restart. */
extern __thread int heap_aside;

/*
 * For contexts, which the program knows by their addresses; also of another build of the driver, whose contexts are
 * of another size. For one thread, before others allocate blocks of such sizes.
 *
 * heap_keep(): the place that @block had is given to nobody, but by heap_move_next(). 0, or -1: it is no
 * place of a block, it is taken, or too many are kept. heap_release(): it is as any other place again, unless there is
 * a block that was moved to it. heap_move_next(): the next malloc() that would return
 * @from returns @to, which is kept, if there is room for it. NULL: none does. heap_block(): the block that
 * @address is in; NULL: none of ours.
 *
 * heap_fill(): free places between those of two blocks of one size are given to nobody until heap_unfill().
 */
int heap_keep(void *block);
void heap_release(void *block);
void heap_move_next(void *from, void *to);
void *heap_block(void *address);
void heap_fill(void *after, void *before);
void heap_unfill(void);

/* It has memory of its own there. libc_overrides.c's, told to who keeps track of it. */
void heap_mapped(uintptr_t start, size_t size);

#endif
